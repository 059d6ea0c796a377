#include "hca/emu/shared_region.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "hca/emu/process_id.hpp"
#include "hca/emu/shared_file.hpp"
#include "hca/status.hpp"

namespace weft::hca::emu {

namespace {

constexpr std::uint64_t shared_magic = 0x3167657266656577;
constexpr std::size_t page = 4096;

}  // namespace

std::unique_ptr<SharedRegion> SharedRegion::create(std::size_t length) {
  std::unique_ptr<SharedRegion> region(new SharedRegion);
  if (length == 0 || length > (std::size_t{1} << 46)) {
    throw Error(EINVAL, "a shared region of " + std::to_string(length) + " bytes");
  }
  const auto fail = [&](int code) {
    throw Error(code,
                "no shared region of " + std::to_string(length) + " bytes: " + std::strerror(code));
  };
  region->pid_ = ::getpid();
  const std::size_t whole = page + (length + page - 1) / page * page;
  region->fd_ = create_shared_file("weft-region", whole);
  // Out of descriptors: memory that its owner alone has is slower, but right.
  const int kind = region->fd_ >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  void* base = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, kind, region->fd_, 0);
  if (base == MAP_FAILED) fail(errno);
  region->mapped_ = whole;
  region->header_ = static_cast<SharedRegionHeader*>(base);
  region->header_->length = length;
  region->header_->addr = reinterpret_cast<std::uint64_t>(region->memory());
  region->header_->magic = shared_magic;
  return region;
}

SharedRegion::~SharedRegion() {
  if (header_ != nullptr) {
    // In a forked child it is its parent's that goes on.
    if (pid_ == ::getpid()) set_key(0);
    ::munmap(header_, mapped_);
  }
  if (fd_ >= 0) ::close(fd_);
}

std::byte* SharedRegion::memory() const noexcept {
  return reinterpret_cast<std::byte*>(header_) + page;
}

std::unique_ptr<SharedRegionView> SharedRegionView::map(const Address& peer, std::uint32_t fd,
                                                        std::uint32_t key) noexcept {
  // A pid that was used again is another process.
  if (key == 0 || start_time_of(peer.pid) != peer.start_time) return nullptr;
  std::size_t size = 0;
  const int file = open_shared_file_of_any_size(peer.pid, fd, &size);
  if (file < 0) return nullptr;
  void* base =
      size > page ? ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  ::close(file);
  if (base == MAP_FAILED) return nullptr;
  std::unique_ptr<SharedRegionView> view(new (std::nothrow) SharedRegionView);
  if (view == nullptr) {
    ::munmap(base, size);
    return nullptr;
  }
  view->header_ = static_cast<const SharedRegionHeader*>(base);
  view->memory_ = static_cast<std::byte*>(base) + page;
  view->mapped_ = size;
  view->addr_ = view->header_->addr;
  view->length_ = view->header_->length;
  view->key_ = key;
  const bool right = view->header_->magic == shared_magic && view->length_ <= size - page &&
                     view->header_->key.load(std::memory_order_acquire) == key;
  if (!right) view.reset();
  return view;
}

SharedRegionView::~SharedRegionView() {
  ::munmap(const_cast<SharedRegionHeader*>(header_), mapped_);
}

}  // namespace weft::hca::emu
