#include "ompi-component/hook/request_watch.hpp"

#include <gtest/gtest.h>

#include <set>

#include "ompi-component/hook/hook.hpp"
#include "ompi-component/hook/layouts.hpp"
#include "ompi-component/hook/redirect_calls.hpp"

namespace weft::ompi {
namespace {

// A transport whose windows are numbers.
std::set<void*> windows;
bool no_window_left = false;

const ucx::TransportApi fake_transport{
    .version = ucx::TransportApi::current_version,
    .active = []() noexcept { return true; },
    .bind = [](void*, const hca::Layout&) noexcept -> void* {
      static char numbers[1024];
      if (no_window_left) return nullptr;
      for (char& number : numbers)
        if (windows.insert(&number).second) return &number;
      return nullptr;
    },
    .release = [](void* window) noexcept { windows.erase(window); },
    .max_window_size = []() noexcept -> std::uint64_t { return 1 << 20; },
    .why_inactive = []() noexcept { return ""; },
    .window_addresses = []() noexcept { return ucx::TransportApi::Addresses{}; },
    .window_memory_type = UCS_MEMORY_TYPE_HOST,
    .memory_type_for_send = [](const void*,
                               std::uint64_t) noexcept { return UCS_MEMORY_TYPE_HOST; },
    .announce = []() noexcept {},
    .take_turns = []() noexcept {},
};

// What a pml would have made: enough of a request for those who wait for it and free it.
int freed = 0;
int started = 0;

int free_of_pml(ompi_request_t** request) {
  ++freed;
  *request = MPI_REQUEST_NULL;
  return OMPI_SUCCESS;
}

int start_of_pml(size_t count, ompi_request_t** /*requests*/) {
  started += static_cast<int>(count);
  return OMPI_SUCCESS;
}

class RequestWatchTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(open_layouts()); }
  static void TearDownTestSuite() { close_layouts(); }

  void SetUp() override {
    hook = Hook{};
    hook.transport = &fake_transport;
    hook.max_window = fake_transport.max_window_size();
    hook.offloads = true;
    original = mca_pml;
    original.pml_start = start_of_pml;
    windows.clear();
    no_window_left = false;
    freed = started = 0;
    MPI_Type_vector(rows, 1, 2, MPI_INT, &type_);
    MPI_Type_commit(&type_);
    request_.req_free = free_of_pml;
    request_.req_start = start_of_pml;
    request_.super.ptr = this;
    request_.req_complete = REQUEST_PENDING;
    request_.req_status._ucount = 4 * rows;
  }
  void TearDown() override {
    MPI_Type_free(&type_);
    hook = Hook{};
  }

  Binding bind(Direction direction) { return Binding::make(direction, memory_, 1, type_); }
  void complete() { request_.req_complete = REQUEST_COMPLETED; }
  [[nodiscard]] bool request_is_as_before() const {
    return request_.req_free == free_of_pml && request_.req_start == start_of_pml &&
           request_.super.ptr == this && request_.req_complete_cb_data == nullptr;
  }
  int free_request() {
    handle_ = &request_;
    return ompi_request_free(&handle_);
  }
  Tally& strided(Direction direction) { return counters.of(direction, hca::LayoutKind::strided); }

  static constexpr int rows = 10;
  int memory_[2 * rows] = {};
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  ompi_request_t request_{};
  ompi_request_t* handle_ = nullptr;
};

TEST_F(RequestWatchTest, CompleteRequestIsNotTouched) {
  complete();
  RequestWatch watch(Direction::send, bind(Direction::send));
  ASSERT_TRUE(watch);
  EXPECT_EQ(windows.size(), 1u);
  watch.follow(&request_);
  EXPECT_TRUE(windows.empty());
  EXPECT_TRUE(request_is_as_before());
}

TEST_F(RequestWatchTest, BindingEndsWhenTheCompleteRequestIsFreed) {
  const auto bytes = strided(Direction::receive).bytes();
  RequestWatch(Direction::receive, bind(Direction::receive)).follow(&request_);
  EXPECT_EQ(windows.size(), 1u);
  complete();
  EXPECT_EQ(windows.size(), 1u);
  free_request();
  EXPECT_TRUE(windows.empty());
  EXPECT_EQ(freed, 1);
  EXPECT_EQ(handle_, MPI_REQUEST_NULL);
  EXPECT_TRUE(request_is_as_before());
  EXPECT_EQ(strided(Direction::receive).bytes(), bytes + 4 * rows);
}

TEST_F(RequestWatchTest, RequestFreedWhileActiveIsFreedAfterItsCompletion) {
  RequestWatch(Direction::send, bind(Direction::send)).follow(&request_);
  free_request();
  EXPECT_EQ(handle_, MPI_REQUEST_NULL);
  for (int i = 0; i < 20; ++i) opal_progress();
  EXPECT_EQ(freed, 0);
  EXPECT_EQ(windows.size(), 1u);
  complete();
  for (int i = 0; i < 20; ++i) opal_progress();
  EXPECT_EQ(freed, 1);
  EXPECT_TRUE(windows.empty());
  EXPECT_TRUE(request_is_as_before());
  close_request_watch();
}

TEST_F(RequestWatchTest, RequestMayBeFreedInItsCompletionCallback) {
  RequestWatch(Direction::receive, bind(Direction::receive)).follow(&request_);
  int context = 0;
  ompi_request_set_callback(
      &request_,
      [](ompi_request_t* request) {
        ompi_request_free(&request);
        return 1;
      },
      &context);
  EXPECT_EQ(windows.size(), 1u);
  ompi_request_complete(&request_, true);
  EXPECT_EQ(freed, 1);
  EXPECT_TRUE(windows.empty());
  EXPECT_TRUE(request_is_as_before());
}

TEST_F(RequestWatchTest, CallbackSetByOthersStillRuns) {
  RequestWatch(Direction::receive, bind(Direction::receive)).follow(&request_);
  int calls = 0;
  ompi_request_set_callback(
      &request_,
      [](ompi_request_t* request) {
        ++*static_cast<int*>(request->req_complete_cb_data);
        return 0;
      },
      &calls);
  ompi_request_complete(&request_, true);
  EXPECT_EQ(calls, 1);
  free_request();
  EXPECT_EQ(freed, 1);
  EXPECT_TRUE(windows.empty());
}

TEST_F(RequestWatchTest, CancelledReceiveIsNotCounted) {
  const auto messages = strided(Direction::receive).messages();
  RequestWatch(Direction::receive, bind(Direction::receive)).follow(&request_);
  request_.req_status._cancelled = 1;
  complete();
  free_request();
  EXPECT_TRUE(windows.empty());
  EXPECT_EQ(strided(Direction::receive).messages(), messages);
}

TEST_F(RequestWatchTest, PersistentRequestKeepsItsBindingAndCountsItsStarts) {
  const auto before = strided(Direction::receive).bytes();
  request_.req_persistent = true;
  complete();
  RequestWatch(Direction::receive, bind(Direction::receive)).follow_persistent(&request_);
  EXPECT_EQ(windows.size(), 1u);
  ompi_request_t* request = &request_;
  for (int round = 1; round <= 3; ++round) {
    request_.req_start(1, &request);
    EXPECT_EQ(started, round);
  }
  EXPECT_EQ(strided(Direction::receive).bytes(), before + 3 * 4 * rows);
  // The last message was shorter than the buffer.
  request_.req_status._ucount = 8;
  free_request();
  EXPECT_EQ(strided(Direction::receive).bytes(), before + 2 * 4 * rows + 8);
  EXPECT_TRUE(windows.empty());
  EXPECT_EQ(freed, 1);
  EXPECT_TRUE(request_is_as_before());
}

TEST_F(RequestWatchTest, LayoutOutlivesItsDatatype) {
  RequestWatch watch(Direction::send, bind(Direction::send));
  MPI_Type_free(&type_);
  MPI_Type_vector(rows, 1, 3, MPI_INT, &type_);
  MPI_Type_commit(&type_);
  EXPECT_EQ(watch.binding().bytes(), 4u * rows);
  watch.follow(&request_);
  complete();
  free_request();
  EXPECT_TRUE(windows.empty());
}

TEST_F(RequestWatchTest, FallsBackWithoutAWindow) {
  const auto before = counters.of(Direction::send, Fallback::no_window).messages();
  no_window_left = true;
  EXPECT_FALSE(RequestWatch(Direction::send, bind(Direction::send)));
  EXPECT_EQ(counters.of(Direction::send, Fallback::no_window).messages(), before + 1);
}

TEST_F(RequestWatchTest, FreedDatatypeIsForgotten) {
  const Binding one = bind(Direction::send);
  const void* address = type_;
  for (int i = 0; i < 100; ++i) {
    MPI_Type_free(&type_);
    MPI_Type_vector(rows + 1 + i, 1, 2, MPI_INT, &type_);
    MPI_Type_commit(&type_);
    ASSERT_EQ(bind(Direction::send).bytes(), 4u * (rows + 1 + i)) << (type_ == address);
  }
}

}  // namespace
}  // namespace weft::ompi
