// Tagged messages between windows and host memory over UCP, without MPI: two processes (or one,
// with itself), every pair of {window, host}, sizes across all protocols. What UCX makes of it is
// steered by its environment (UCX_TLS, UCX_RNDV_THRESH, UCX_RNDV_SCHEME, UCX_PROTO_ENABLE).
//
//   ucp_windows LIBRARY [self] [copy-only] [coarse]
//
// LIBRARY is libuct_weft.so; with copy-only the transport weft may be closed (between two nodes UCX
// has another wire, and windows go through weft_cp alone); with coarse windows are sent as the
// other of their two memory types, whatever their size. Prints one line of TAP for each size and
// pair; exit status 1 when one is wrong.
#include <dlfcn.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "hca/layout.hpp"
#include "ucx-tl/transport_api.hpp"
#include "ucx-tl/window_memory_type.hpp"

namespace {

using weft::hca::Dimension;
using weft::hca::Layout;
using weft::hca::LayoutPtr;

const weft::ucx::TransportApi* api = nullptr;

[[noreturn]] void die(const std::string& what) {
  std::printf("Bail out! %s\n", what.c_str());
  std::fflush(stdout);
  std::_Exit(2);
}

void check(ucs_status_t status, const char* what) {
  if (status != UCS_OK) die(std::string(what) + ": " + ucs_status_string(status));
}

void full_write(int fd, const void* data, std::size_t length) {
  if (write(fd, data, length) != static_cast<ssize_t>(length)) die("write");
}
void full_read(int fd, void* data, std::size_t length) {
  for (std::size_t done = 0; done < length;) {
    const ssize_t n = read(fd, static_cast<char*>(data) + done, length - done);
    if (n <= 0) die("the other process is gone");
    done += static_cast<std::size_t>(n);
  }
}

/// One process's UCP objects, connected to the other's.
struct Node {
  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;
  ucp_ep_h ep = nullptr;
  int fd;  // to the other process

  explicit Node(int socket) : fd(socket) {
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG;
    check(ucp_init(&params, nullptr, &context), "ucp_init");
    api->announce();  // nothing here says what a buffer is
    ucp_worker_params_t worker_params{};
    worker_params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker_params.thread_mode = UCS_THREAD_MODE_SINGLE;
    check(ucp_worker_create(context, &worker_params, &worker), "ucp_worker_create");
    ucp_address_t* address;
    std::size_t length;
    check(ucp_worker_get_address(worker, &address, &length), "ucp_worker_get_address");
    full_write(fd, &length, sizeof length);
    full_write(fd, address, length);
    ucp_worker_release_address(worker, address);
    full_read(fd, &length, sizeof length);
    std::vector<char> peer(length);
    full_read(fd, peer.data(), length);
    ucp_ep_params_t ep_params{};
    ep_params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    ep_params.address = reinterpret_cast<const ucp_address_t*>(peer.data());
    check(ucp_ep_create(worker, &ep_params, &ep), "ucp_ep_create");
  }

  void wait(void* request, const char* what) {
    if (request == nullptr) return;
    if (UCS_PTR_IS_ERR(request)) check(UCS_PTR_STATUS(request), what);
    ucs_status_t status;
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
      // Cores may be shared with the peer and with strangers.
      if (ucp_worker_progress(worker) == 0) sched_yield();
    }
    ucp_request_free(request);
    check(status, what);
  }

  void close() {
    ucp_request_param_t param{};
    wait(ucp_ep_close_nbx(ep, &param), "ucp_ep_close");
    char byte = 0;  // neither goes away while the other may still close
    full_write(fd, &byte, 1);
    full_read(fd, &byte, 1);
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
  }
};

/// `size` packed bytes in memory, as one piece or as blocks of 24 bytes 40 apart.
struct Buffer {
  std::vector<std::byte> memory;
  LayoutPtr layout;
  void* address = nullptr;
  bool window;
  std::size_t size;

  Buffer(std::size_t bytes, bool as_window) : window(as_window), size(bytes) {
    if (!window) {
      memory.resize(size + 1);
      address = memory.data();
      return;
    }
    const std::size_t block = size % 24 == 0 ? 24 : size % 8 == 0 ? 8 : 1;
    const Dimension dim{size / block, 40};
    layout = Layout::strided(16, block, {&dim, 1});
    memory.resize(16 + 40 * (size / block) + 64);
    address = api->bind(memory.data(), *layout);
    if (address == nullptr) die("no window");
  }
  ~Buffer() {
    if (window) api->release(address);
  }
  Buffer(const Buffer&) = delete;

  static std::byte value(std::size_t i, unsigned seed) {
    return static_cast<std::byte>(((i + seed) * 2654435761u) >> 13);
  }
  void fill(unsigned seed) {
    std::vector<std::byte> packed(size);
    for (std::size_t i = 0; i < size; ++i) packed[i] = value(i, seed);
    if (window) {
      layout->scatter(memory.data(), 0, packed);
    } else {
      std::memcpy(memory.data(), packed.data(), size);
    }
  }
  bool holds(unsigned seed) {
    std::vector<std::byte> packed(size);
    if (window) {
      layout->gather(memory.data(), 0, packed);
    } else {
      std::memcpy(packed.data(), memory.data(), size);
    }
    for (std::size_t i = 0; i < size; ++i) {
      if (packed[i] != value(i, seed)) return false;
    }
    return true;
  }
};

constexpr std::size_t sizes[] = {1,    8,     24,    200,   1000,   1016,   1024,    4096,   8184,
                                 8192, 16384, 24000, 65536, 100008, 262144, 1 << 20, 1 << 22};

bool copy_only = false;
bool coarse = false;
int failures = 0;
int number = 0;

void report(bool good, std::size_t size, bool from_window, bool to_window, const char* how) {
  std::printf("%s %d - %s %zu bytes, %s to %s\n", good ? "ok" : "not ok", ++number, how, size,
              from_window ? "window" : "host", to_window ? "window" : "host");
  if (!good) ++failures;
}

ucp_request_param_t send_param(bool from_window) {
  ucp_request_param_t param{};
  if (coarse && from_window) {
    param.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    param.memory_type = weft::ucx::coarse_window_memory_type;
  }
  return param;
}

/// Both directions at once, several messages under way; the reporter prints.
void exchange(Node& node, bool reporter, std::size_t size, bool from_window, bool to_window,
              const char* how) {
  constexpr unsigned rounds = 3;
  constexpr unsigned flight = 3;
  bool good = true;
  for (unsigned round = 0; round < rounds; ++round) {
    std::vector<std::unique_ptr<Buffer>> out;
    std::vector<std::unique_ptr<Buffer>> in;
    std::vector<void*> requests;
    for (unsigned i = 0; i < flight; ++i) {
      out.push_back(std::make_unique<Buffer>(size, from_window));
      in.push_back(std::make_unique<Buffer>(size, to_window));
      out[i]->fill(round * flight + i);
    }
    const ucp_request_param_t param{};
    const ucp_request_param_t sent = send_param(from_window);
    for (unsigned i = 0; i < flight; ++i) {
      // Every other round receives late, so that messages come unexpected.
      if (round % 2 == 0) {
        requests.push_back(ucp_tag_recv_nbx(node.worker, in[i]->address, size, 7, ~0ul, &param));
      }
    }
    for (unsigned i = 0; i < flight; ++i) {
      requests.push_back(ucp_tag_send_nbx(node.ep, out[i]->address, size, 7, &sent));
    }
    for (int spin = 0; spin < 50; ++spin) ucp_worker_progress(node.worker);
    for (unsigned i = 0; round % 2 != 0 && i < flight; ++i) {
      requests.push_back(ucp_tag_recv_nbx(node.worker, in[i]->address, size, 7, ~0ul, &param));
    }
    for (void* request : requests) node.wait(request, "message");
    for (unsigned i = 0; i < flight; ++i) good = good && in[i]->holds(round * flight + i);
  }
  char mine = good ? 1 : 0;
  char theirs;
  full_write(node.fd, &mine, 1);
  full_read(node.fd, &theirs, 1);
  if (reporter) report(mine && theirs, size, from_window, to_window, how);
}

int run(Node& node, bool reporter, const char* how) {
  if (!copy_only && !api->active())
    die(std::string("transport not active: ") + api->why_inactive());
  for (const std::size_t size : sizes) {
    for (const bool from_window : {false, true}) {
      for (const bool to_window : {false, true}) {
        exchange(node, reporter, size, from_window, to_window, how);
      }
    }
  }
  node.close();
  return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: ucp_windows LIBRARY [self] [copy-only] [coarse]\n");
    return 2;
  }
  bool self = false;
  for (int i = 2; i < argc; ++i) {
    self = self || std::strcmp(argv[i], "self") == 0;
    copy_only = copy_only || std::strcmp(argv[i], "copy-only") == 0;
    coarse = coarse || std::strcmp(argv[i], "coarse") == 0;
  }
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) die(dlerror());
  using Entry = const weft::ucx::TransportApi* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "weft_transport_api"));
  if (entry == nullptr) die(dlerror());
  api = entry();
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) die("socketpair");
  if (self) {
    // The node reads its own address back, from a process that echoes.
    const pid_t echo = fork();
    if (echo == 0) {
      char buffer[4096];
      close(pair[0]);
      for (ssize_t n; (n = read(pair[1], buffer, sizeof buffer)) > 0;) {
        full_write(pair[1], buffer, static_cast<std::size_t>(n));
      }
      std::_Exit(0);
    }
    close(pair[1]);
    Node node(pair[0]);
    const int result = run(node, true, "self:");
    std::printf("1..%d\n", number);
    close(pair[0]);
    waitpid(echo, nullptr, 0);
    return result;
  }
  const pid_t child = fork();
  Node node(pair[child == 0 ? 0 : 1]);
  const int result = run(node, child != 0, "pair:");
  if (child == 0) {
    std::fflush(stdout);
    std::_Exit(result);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("1..%d\n", number);
  return result != 0 || status != 0;
}
