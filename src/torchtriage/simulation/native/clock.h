// The host's clock: a counter that only the simulation advances, or the machine's monotonic clock.
#pragma once

#include <atomic>
#include <cstdint>

namespace sim {

// Nanoseconds; in real time those of CLOCK_MONOTONIC, so that they compare with Python's time.monotonic_ns() and with
// other processes on the machine.
using Time = int64_t;

class HostClock {
 public:
  void use_real_time(bool real) { real_ = real; }
  bool is_real() const { return real_; }
  void set(Time time) { counter_ = time; }
  Time now() const;

  // Keeps the host busy for DURATION. In real time it has been busy since SINCE: computing an operator took time already,
  // which is not charged twice.
  void spend(Time since, Time duration);

  // Blocks the host until UNTIL, without holding the GIL.
  void wait_until(Time until);

 private:
  std::atomic<bool> real_{false};
  std::atomic<Time> counter_{0};
};

HostClock& host_clock();

} // namespace sim
