// Every kernel of every instruction set this processor has, one block size at a time.
#include "hca/kernels/kernels.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "tests/seed.hpp"

namespace weft::hca::kernels {
namespace {

using test::Random;

std::vector<std::size_t> block_sizes() {
  std::vector<std::size_t> sizes;
  for (std::size_t n = 1; n <= 300; ++n) sizes.push_back(n);
  for (const std::size_t n : {511, 512, 513, 1000, 1024, 2047, 2048, 2049, 4096, 5000, 20000})
    sizes.push_back(n);
  return sizes;
}

/// Bytes with nothing accessible around them under a sanitizer.
struct Bytes {
  explicit Bytes(std::size_t n) : size(n), data(std::make_unique<std::byte[]>(n)) {}
  void fill(Random& random) {
    for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<std::byte>(random.engine()());
  }
  std::size_t size;
  std::unique_ptr<std::byte[]> data;
};

class Kernels : public testing::TestWithParam<const Table*> {};

TEST_P(Kernels, Strided) {
  for (const std::size_t block : block_sizes()) {
    for (const std::size_t count : {0, 1, 2, 3, 5, 8, 13, 16, 31, 67}) {
      if (count * block > 200000) continue;
      SCOPED_TRACE(test::seed_note(block) + " blocks " + std::to_string(count));
      Random random(block * 100 + count);
      const BlockKernels& k = GetParam()->blocks[class_of(block)];
      const std::size_t gap =
          random.chance(0.3) ? block : static_cast<std::size_t>(random.in(0, 40));
      const std::size_t stride = block + gap;
      const std::size_t span = count == 0 ? 0 : (count - 1) * stride + block;
      Bytes memory(span);
      Bytes packed(count * block);
      memory.fill(random);
      k.gather(packed.data.get(), memory.data.get(), static_cast<std::ptrdiff_t>(stride), count,
               block);
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(std::memcmp(&packed.data[i * block], &memory.data[i * stride], block), 0) << i;
      }
      // Backwards: the last block first.
      if (count != 0) {
        k.gather(packed.data.get(), &memory.data[(count - 1) * stride],
                 -static_cast<std::ptrdiff_t>(stride), count, block);
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_EQ(
              std::memcmp(&packed.data[i * block], &memory.data[(count - 1 - i) * stride], block),
              0);
        }
      }
      packed.fill(random);
      Bytes expected(span);
      std::memcpy(expected.data.get(), memory.data.get(), span);
      for (std::size_t i = 0; i < count; ++i) {
        std::memcpy(&expected.data[i * stride], &packed.data[i * block], block);
      }
      k.scatter(memory.data.get(), static_cast<std::ptrdiff_t>(stride), packed.data.get(), count,
                block);
      ASSERT_EQ(std::memcmp(memory.data.get(), expected.data.get(), span), 0);
    }
  }
}

TEST_P(Kernels, SmallBlocksWithSmallGaps) {
  for (std::size_t block = 1; block <= 16; ++block) {
    for (std::size_t stride = block; stride <= block + 40; ++stride) {
      const BlockKernels& k = GetParam()->blocks[class_of(block)];
      Random random(block * 100 + stride);
      const auto count = static_cast<std::size_t>(random.in(128, 300));
      SCOPED_TRACE(test::seed_note(block * 100 + stride) + " blocks " + std::to_string(count));
      Bytes memory((count - 1) * stride + block);
      Bytes packed(count * block);
      memory.fill(random);
      k.gather(packed.data.get(), memory.data.get(), static_cast<std::ptrdiff_t>(stride), count,
               block);
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(std::memcmp(&packed.data[i * block], &memory.data[i * stride], block), 0) << i;
      }
      packed.fill(random);
      Bytes expected(memory.size);
      std::memcpy(expected.data.get(), memory.data.get(), memory.size);
      for (std::size_t i = 0; i < count; ++i) {
        std::memcpy(&expected.data[i * stride], &packed.data[i * block], block);
      }
      k.scatter(memory.data.get(), static_cast<std::ptrdiff_t>(stride), packed.data.get(), count,
                block);
      ASSERT_EQ(std::memcmp(memory.data.get(), expected.data.get(), memory.size), 0);
    }
  }
}

TEST_P(Kernels, StridedOnBothSides) {
  for (const std::size_t block : block_sizes()) {
    constexpr std::size_t count = 11;
    SCOPED_TRACE(test::seed_note(block));
    Random random(block);
    const BlockKernels& k = GetParam()->blocks[class_of(block)];
    const std::size_t in_stride = block + static_cast<std::size_t>(random.in(0, 30));
    const std::size_t out_stride = block + static_cast<std::size_t>(random.in(0, 30));
    Bytes in((count - 1) * in_stride + block);
    Bytes out((count - 1) * out_stride + block);
    Bytes expected(out.size);
    in.fill(random);
    out.fill(random);
    std::memcpy(expected.data.get(), out.data.get(), out.size);
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(&expected.data[i * out_stride], &in.data[i * in_stride], block);
    }
    k.copy(out.data.get(), static_cast<std::ptrdiff_t>(out_stride), in.data.get(),
           static_cast<std::ptrdiff_t>(in_stride), count, block);
    ASSERT_EQ(std::memcmp(out.data.get(), expected.data.get(), out.size), 0);
  }
}

template <typename Offset, typename Gather, typename Scatter>
void check_list(Gather gather, Scatter scatter, std::size_t block, std::size_t count) {
  Random random(block * 100 + count);
  std::vector<Offset> offsets;
  std::size_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    at += static_cast<std::size_t>(random.in(0, 30));
    offsets.push_back(static_cast<Offset>(at));
    at += block;
  }
  std::shuffle(offsets.begin(), offsets.end(), random.engine());
  Bytes memory(at);
  Bytes packed(count * block);
  memory.fill(random);
  gather(packed.data.get(), memory.data.get(), offsets.data(), count, block);
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(std::memcmp(&packed.data[i * block], &memory.data[offsets[i]], block), 0) << i;
  }
  packed.fill(random);
  Bytes expected(at);
  std::memcpy(expected.data.get(), memory.data.get(), at);
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(&expected.data[offsets[i]], &packed.data[i * block], block);
  }
  scatter(memory.data.get(), offsets.data(), packed.data.get(), count, block);
  ASSERT_EQ(std::memcmp(memory.data.get(), expected.data.get(), at), 0);
}

TEST_P(Kernels, Lists) {
  for (const std::size_t block : block_sizes()) {
    for (const std::size_t count : {0, 1, 3, 8, 15, 34}) {
      SCOPED_TRACE(test::seed_note(block) + " blocks " + std::to_string(count));
      const BlockKernels& k = GetParam()->blocks[class_of(block)];
      check_list<std::uint32_t>(k.gather_list32, k.scatter_list32, block, count);
      check_list<std::uint64_t>(k.gather_list64, k.scatter_list64, block, count);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(Kernels, MixedLengths) {
  for (std::uint64_t round = 0; round < 300; ++round) {
    SCOPED_TRACE(test::seed_note(round));
    Random random(round);
    const std::int64_t longest = round % 3 == 0 ? 700 : 64;
    std::vector<Entry32> entries;
    std::uint32_t at = 0;
    std::size_t size = 0;
    for (std::int64_t n = random.in(0, 60); n > 0; --n) {
      const auto length = static_cast<std::uint32_t>(random.in(1, longest));
      at += static_cast<std::uint32_t>(random.in(0, 9));
      entries.push_back({at, length});
      at += length;
      size += length;
    }
    std::shuffle(entries.begin(), entries.end(), random.engine());
    Bytes memory(at);
    Bytes packed(size);
    memory.fill(random);
    GetParam()->mixed.gather(packed.data.get(), memory.data.get(), entries.data(), entries.size());
    std::size_t done = 0;
    for (const Entry32& e : entries) {
      ASSERT_EQ(std::memcmp(packed.data.get() + done, memory.data.get() + e.offset, e.length), 0);
      done += e.length;
    }
    packed.fill(random);
    Bytes expected(at);
    std::memcpy(expected.data.get(), memory.data.get(), at);
    done = 0;
    for (const Entry32& e : entries) {
      std::memcpy(expected.data.get() + e.offset, packed.data.get() + done, e.length);
      done += e.length;
    }
    GetParam()->mixed.scatter(memory.data.get(), entries.data(), packed.data.get(), entries.size());
    ASSERT_EQ(std::memcmp(memory.data.get(), expected.data.get(), at), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(, Kernels, testing::ValuesIn(tables().begin(), tables().end()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST(KernelTables, PortableIsAlwaysThere) {
  ASSERT_FALSE(tables().empty());
  EXPECT_STREQ(tables().back()->name, "portable");
}

}  // namespace
}  // namespace weft::hca::kernels
