#include "tests/mpi/oracle/type_map.hpp"

#include <algorithm>
#include <cstring>

namespace weft::oracle {

void TypeMap::add(std::ptrdiff_t displacement, std::int64_t count, std::int32_t size) {
  if (count == 0) return;
  Run run{displacement, count, size};
  lowest_ = size_ ? std::min(lowest_, displacement) : displacement;
  highest_ = size_ ? std::max(highest_, run.end()) : run.end();
  size_ += run.bytes();
  if (!runs_.empty() && runs_.back().size == size && runs_.back().end() == displacement) {
    runs_.back().count += count;
  } else {
    runs_.push_back(run);
  }
}

void TypeMap::add(const TypeMap& other, std::ptrdiff_t shift) {
  for (const Run& run : other.runs_) add(run.displacement + shift, run.count, run.size);
}

void TypeMap::repeat(const TypeMap& other, std::ptrdiff_t shift, std::int64_t count,
                     std::ptrdiff_t extent) {
  const std::size_t needed = runs_.size() + static_cast<std::size_t>(count) * other.runs_.size();
  if (needed > runs_.capacity()) runs_.reserve(std::max(needed, 2 * runs_.capacity()));
  if (other.runs_.size() == 1 && other.runs_[0].bytes() == extent) {
    add(other.runs_[0].displacement + shift, count * other.runs_[0].count, other.runs_[0].size);
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) add(other, shift + i * extent);
}

bool TypeMap::overlaps() const {
  std::vector<Run> sorted = runs_;
  std::sort(sorted.begin(), sorted.end(),
            [](const Run& a, const Run& b) { return a.displacement < b.displacement; });
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i].displacement < sorted[i - 1].end()) return true;
  }
  return false;
}

std::int64_t TypeMap::elements_within(std::int64_t bytes) const {
  std::int64_t elements = 0;
  for (const Run& run : runs_) {
    if (bytes < run.bytes()) return elements + bytes / run.size;
    elements += run.count;
    bytes -= run.bytes();
  }
  return elements;
}

std::vector<std::byte> TypeMap::pack(const std::byte* base) const {
  std::vector<std::byte> packed(size_);
  std::byte* to = packed.data();
  for (const Run& run : runs_) {
    std::memcpy(to, base + run.displacement, run.bytes());
    to += run.bytes();
  }
  return packed;
}

void TypeMap::unpack(const std::vector<std::byte>& packed, std::byte* base) const {
  const std::byte* from = packed.data();
  std::int64_t left = std::ssize(packed);
  for (const Run& run : runs_) {
    std::int64_t bytes = std::min(left, run.bytes());
    std::memcpy(base + run.displacement, from, bytes);
    from += bytes;
    left -= bytes;
    if (left == 0) return;
  }
}

}  // namespace weft::oracle
