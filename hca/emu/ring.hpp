// The single-producer single-consumer ring of 64-byte lines that carries messages and requests.
//
// A line's first word says which lap it was written in, so a consumer sees a message with one cache
// miss. Messages longer than a line take consecutive lines and never wrap (the producer pads). The
// inner lines hold payload only; the consumer clears their first words before it gives the lines
// back, or payload could pass for a lap number later.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weft::hca::emu {

constexpr std::size_t line_bytes = 64;

struct LineHeader {
  std::atomic<std::uint32_t> lap;
  std::uint8_t op;
  std::uint8_t id;
  std::uint16_t length;  ///< bytes of payload
};
static_assert(sizeof(LineHeader) == 8);

struct alignas(line_bytes) Line {
  LineHeader header;
  std::byte payload[line_bytes - sizeof(LineHeader)];
};
static_assert(sizeof(Line) == line_bytes);

constexpr std::uint32_t lines_for(std::size_t payload) noexcept {
  return static_cast<std::uint32_t>((payload + sizeof(LineHeader) + line_bytes - 1) / line_bytes);
}

/// Op 0 in every ring: skip the lines it covers.
constexpr std::uint8_t pad_op = 0;

/// The shared part: lines, and how far the consumer has come.
template <std::uint32_t Lines>
struct Ring {
  static_assert((Lines & (Lines - 1)) == 0);
  static constexpr std::uint32_t lines = Lines;

  /// Lines consumed, written by the consumer; the producer reads it when its own count runs out.
  alignas(line_bytes) std::atomic<std::uint32_t> head;
  alignas(line_bytes) Line line[Lines];

  /// Odd, hence never the 0 of a cleared line.
  static constexpr std::uint32_t lap_of(std::uint32_t index) noexcept {
    return ((index / Lines) << 1) | 1u;
  }
};

/// The producing end, private to one process.
template <std::uint32_t Lines>
class Producer {
 public:
  void attach(Ring<Lines>* ring) noexcept { ring_ = ring; }
  [[nodiscard]] bool attached() const noexcept { return ring_ != nullptr; }
  [[nodiscard]] std::uint32_t tail() const noexcept { return tail_; }

  /// The first of the lines for `payload` bytes, or null when the ring is full.
  Line* reserve(std::size_t payload) noexcept {
    const std::uint32_t need = lines_for(payload);
    const std::uint32_t at = tail_ & (Lines - 1);
    if (at + need > Lines) [[unlikely]] {
      return wrap(need);
    }
    if (tail_ + need - head_ > Lines) [[unlikely]] {
      if (!refresh(need)) return nullptr;
    }
    return &ring_->line[at];
  }

  /// Publishes what reserve() returned, filled with `payload` bytes (at most those reserved for).
  void publish(Line* line, std::uint8_t op, std::uint8_t id, std::size_t payload) noexcept {
    line->header.op = op;
    line->header.id = id;
    line->header.length = static_cast<std::uint16_t>(payload);
    // Release: whoever sees the lap number sees the payload and the header's other fields.
    line->header.lap.store(Ring<Lines>::lap_of(tail_), std::memory_order_release);
    tail_ += lines_for(payload);
  }

 private:
  [[gnu::noinline]] bool refresh(std::uint32_t need) noexcept {
    // Acquire: the consumer's clearing of inner lines comes before our writes to them. A head that
    // lies outside what was sent can only be a damaged peer; then nothing more is sent.
    const std::uint32_t head = ring_->head.load(std::memory_order_acquire);
    if (tail_ - head > Lines) return false;
    head_ = head;
    return tail_ + need - head_ <= Lines;
  }

  [[gnu::noinline]] Line* wrap(std::uint32_t need) noexcept {
    const std::uint32_t at = tail_ & (Lines - 1);
    const std::uint32_t rest = Lines - at;
    if (tail_ + rest + need - head_ > Lines && !refresh(rest + need)) return nullptr;
    publish(&ring_->line[at], pad_op, 0, rest * line_bytes - sizeof(LineHeader));
    return &ring_->line[0];
  }

  Ring<Lines>* ring_ = nullptr;
  std::uint32_t tail_ = 0;
  std::uint32_t head_ = 0;  ///< what was last seen of the consumer's count
};

/// The consuming end, private to one process.
template <std::uint32_t Lines>
class Consumer {
 public:
  void attach(Ring<Lines>* ring) noexcept { ring_ = ring; }
  [[nodiscard]] bool attached() const noexcept { return ring_ != nullptr; }
  /// Lines consumed so far; other threads may ask, and then see what was done with those lines.
  [[nodiscard]] std::uint32_t head() const noexcept {
    return head_.load(std::memory_order_acquire);
  }

  /// The next message's first line, or null.
  [[nodiscard]] Line* peek() const noexcept {
    const std::uint32_t head = head_.load(std::memory_order_relaxed);
    Line* line = &ring_->line[head & (Lines - 1)];
    // Acquire pairs with publish().
    if (line->header.lap.load(std::memory_order_acquire) != Ring<Lines>::lap_of(head)) {
      return nullptr;
    }
    return line;
  }

  /// Payload length of a message, cut to what the ring can hold from there: the field is the
  /// peer's and may be changed at any time, so it is read once and bounded.
  [[nodiscard]] std::size_t length(const Line* line) const noexcept {
    const std::size_t at = static_cast<std::size_t>(line - ring_->line);
    const std::size_t room = (Lines - at) * line_bytes - sizeof(LineHeader);
    const std::size_t length = *const_cast<const volatile std::uint16_t*>(&line->header.length);
    return length < room ? length : room;
  }

  /// Gives back the lines of a message of `payload` bytes (as length() said).
  void consume(Line* line, std::size_t payload) noexcept {
    const std::uint32_t count = lines_for(payload);
    for (std::uint32_t i = 1; i < count; ++i) {
      line[i].header.lap.store(0, std::memory_order_relaxed);
    }
    head_.store(head_.load(std::memory_order_relaxed) + count, std::memory_order_release);
  }

  /// Lets the producer see what was consumed, once enough lines have come together.
  void give_back() noexcept {
    const std::uint32_t head = head_.load(std::memory_order_relaxed);
    if (head - shown_ >= Lines / 4) show();
  }
  void show() noexcept {
    shown_ = head_.load(std::memory_order_relaxed);
    ring_->head.store(shown_, std::memory_order_release);
  }

 private:
  Ring<Lines>* ring_ = nullptr;
  std::atomic<std::uint32_t> head_{0};
  std::uint32_t shown_ = 0;
};

}  // namespace weft::hca::emu
