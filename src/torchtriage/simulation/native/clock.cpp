#include "clock.h"

#include <pybind11/pybind11.h>

#include <ctime>
#include <optional>
#include <thread>

namespace sim {

namespace {

// Shorter sleeps overshoot, so the host spins instead, as it does in a real launch.
constexpr Time kShortestSleep = 100'000;

Time monotonic() {
  timespec read{};
  clock_gettime(CLOCK_MONOTONIC, &read);
  return Time(read.tv_sec) * 1'000'000'000 + read.tv_nsec;
}

void sleep_until(Time until) {
  // Operators are called without the GIL; direct calls from Python hold it.
  std::optional<pybind11::gil_scoped_release> release;
  if (Py_IsInitialized() && PyGILState_Check()) release.emplace();
  for (Time left = until - monotonic(); left > 0; left = until - monotonic()) {
    if (left > kShortestSleep) std::this_thread::sleep_for(std::chrono::nanoseconds(left - kShortestSleep / 2));
  }
}

} // namespace

HostClock& host_clock() {
  static HostClock clock;
  return clock;
}

Time HostClock::now() const { return real_ ? monotonic() : counter_.load(); }

void HostClock::spend(Time since, Time duration) {
  if (real_) {
    sleep_until(since + duration);
  } else {
    counter_ += duration;
  }
}

void HostClock::wait_until(Time until) {
  if (real_) {
    sleep_until(until);
    return;
  }
  Time read = counter_.load();
  while (read < until && !counter_.compare_exchange_weak(read, until)) {
  }
}

} // namespace sim
