// A datatype as the MPI standard defines it (section 4.1): a sequence of basic elements with their
// displacements, and what packing and unpacking mean for such a sequence. Plain loops only, and no
// call of MPI: this is what the library under test is compared with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::oracle {

/// `count` basic elements of `size` bytes each, one directly after the other.
struct Run {
  std::ptrdiff_t displacement;
  std::int64_t count;
  std::int32_t size;

  std::int64_t bytes() const { return count * size; }
  std::ptrdiff_t end() const { return displacement + bytes(); }
};

class TypeMap {
 public:
  /// Appends elements; joins them with the last run where they continue it.
  void add(std::ptrdiff_t displacement, std::int64_t count, std::int32_t size);
  /// Appends another map, shifted.
  void add(const TypeMap& other, std::ptrdiff_t shift);
  /// Appends `count` copies of another map, `extent` bytes apart.
  void repeat(const TypeMap& other, std::ptrdiff_t shift, std::int64_t count,
              std::ptrdiff_t extent);

  const std::vector<Run>& runs() const { return runs_; }
  /// Bytes of all elements, as MPI_Type_size.
  std::int64_t size() const { return size_; }
  /// First byte of the lowest element and first byte after the highest; both 0 without elements.
  std::ptrdiff_t true_lb() const { return size_ ? lowest_ : 0; }
  std::ptrdiff_t true_ub() const { return size_ ? highest_ : 0; }
  std::ptrdiff_t true_extent() const { return true_ub() - true_lb(); }
  /// True when two elements share a byte.
  bool overlaps() const;
  /// Basic elements that begin and end within the first `bytes` of the packed data.
  std::int64_t elements_within(std::int64_t bytes) const;

  /// Packed data of a buffer; `base` is where displacement 0 lies.
  std::vector<std::byte> pack(const std::byte* base) const;
  /// Puts packed data, which may be shorter than the type, where it belongs.
  void unpack(const std::vector<std::byte>& packed, std::byte* base) const;

 private:
  std::vector<Run> runs_;
  std::int64_t size_ = 0;
  std::ptrdiff_t lowest_ = 0;
  std::ptrdiff_t highest_ = 0;
};

}  // namespace weft::oracle
