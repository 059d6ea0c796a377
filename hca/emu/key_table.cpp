#include "hca/emu/key_table.hpp"

#include <cerrno>
#include <string>
#include <utility>

namespace weft::hca::emu {

namespace {
constexpr std::uint32_t max_keys = 1u << 24;
}

void KeyTable::check_bounds(const Region& region) {
  if (region.addr + region.length < region.addr) {
    throw Error(EINVAL, "a region of " + std::to_string(region.length) + " bytes at " +
                            std::to_string(region.addr) +
                            " goes past the end of the address space");
  }
  if (region.layout && region.layout->size() < region.length) {
    throw Error(EINVAL, "a region of " + std::to_string(region.length) +
                            " bytes over a layout of " + std::to_string(region.layout->size()));
  }
}

std::uint32_t KeyTable::take_index() {
  std::uint32_t index;
  if (!free_.empty()) {
    index = free_.back();
    free_.pop_back();
  } else {
    if (entries_.size() == max_keys) {
      throw Error(ENOMEM, "all " + std::to_string(max_keys) + " keys are in use");
    }
    index = static_cast<std::uint32_t>(entries_.size());
    entries_.emplace_back();
  }
  ++used_;
  return index;
}

std::uint32_t KeyTable::insert(Region region) {
  check_bounds(region);
  const std::uint32_t index = take_index();
  Entry& entry = entries_[index];
  entry.region = std::move(region);
  entry.valid = true;
  return (index << 8) | entry.variant;
}

std::uint32_t KeyTable::reserve() {
  const std::uint32_t index = take_index();
  return (index << 8) | entries_[index].variant;
}

void KeyTable::assign(std::uint32_t key, Region region) {
  check_bounds(region);
  Entry& entry = entries_[key >> 8];
  entry.region = std::move(region);
  entry.variant = static_cast<std::uint8_t>(key);
  entry.valid = true;
}

void KeyTable::clear(std::uint32_t key) noexcept {
  Entry& entry = entries_[key >> 8];
  entry.valid = false;
  entry.region = Region{};
}

void KeyTable::release(std::uint32_t key) noexcept {
  clear(key);
  Entry& entry = entries_[key >> 8];
  entry.variant = static_cast<std::uint8_t>(entry.variant == 255 ? 1 : entry.variant + 1);
  free_.push_back(key >> 8);
  --used_;
}

bool KeyTable::erase(std::uint32_t key) noexcept {
  if (find(key) == nullptr) return false;
  release(key);
  return true;
}

const Region* KeyTable::find(std::uint32_t key) const noexcept {
  const std::uint32_t index = key >> 8;
  if (index >= entries_.size()) return nullptr;
  const Entry& entry = entries_[index];
  return entry.valid && entry.variant == (key & 0xff) ? &entry.region : nullptr;
}

const Region* KeyTable::check(std::uint32_t key, std::uint64_t addr, std::uint64_t length,
                              Access need) const noexcept {
  const Region* region = find(key);
  if (region == nullptr || !allows(region->access, need)) return nullptr;
  if (addr < region->addr) return nullptr;
  const std::uint64_t offset = addr - region->addr;
  // Written so that no sum can wrap.
  if (offset > region->length || length > region->length - offset) return nullptr;
  return region;
}

}  // namespace weft::hca::emu
