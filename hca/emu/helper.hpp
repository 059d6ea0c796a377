// The helper thread of a context: executes what peers ask for while the application computes, and
// turns a peer's wake-up into a readable event descriptor. It sleeps on the bell in the segment.
#pragma once

#include <atomic>
#include <thread>

namespace weft::hca::emu {

class Context;
struct SegmentHeader;

class Helper {
 public:
  explicit Helper(Context& context) noexcept : context_(context) {}
  ~Helper() { stop(); }
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  /// Starts the thread if it does not run. Errors are not fatal: without the thread peers wait
  /// until the application makes progress.
  void start() noexcept;
  void stop() noexcept;
  /// While something waits for room or for a time, look at it now and then.
  void watch() noexcept;
  /// The descriptor that the thread makes readable when a peer rings while the owner is armed.
  int event_fd();
  void drain_event() noexcept;

  /// Rings the bell of a segment if its helper sleeps.
  static void wake(SegmentHeader& header) noexcept;
  /// Rings the bell of a segment: its helper wakes.
  static void ring(SegmentHeader& header) noexcept;

 private:
  void run() noexcept;
  void attend() noexcept;
  bool sleep(unsigned seen) noexcept;
  bool carry_on() noexcept;

  Context& context_;
  std::thread thread_;
  std::atomic<bool> started_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> ended_{false};       ///< the thread will not sleep again
  std::atomic<bool> deep_sleep_{false};  ///< until somebody rings
  bool absent_ = true;                   ///< the application does not poll
  int event_fd_ = -1;
  int restless_ = 0;   ///< short naps to come before a deep sleep
  unsigned seen_ = 0;  ///< of the bell; a ring between start() and the first sleep is not lost
  int pid_ = 0;        ///< of the process that started the thread: it does not survive a fork
};

}  // namespace weft::hca::emu
