#include "device.h"

#include "ledger.h"

#include <c10/util/Exception.h>
#include <pthread.h>

#include <array>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace sim {

namespace {

// The size of CUDA's stream pool in torch, which is handed out round-robin.
constexpr c10::StreamId kPooled = 32;
constexpr c10::StreamId kFirstNew = 1 + kPooled;

struct StreamState {
  Time end = 0;
  std::deque<Time> queue; // end times of launched work, oldest first
};

struct Span {
  Time start, end;
};

struct DeviceState {
  std::deque<Span> kernels; // that were still running, or not begun, when somebody asked last
  Time worked = 0; // in kernels that have ended since
  Time covered = 0; // the end of the latest kernel: streams may overlap
  std::unordered_map<c10::StreamId, StreamState> streams;
  c10::StreamId next_pooled = 0;
  c10::StreamId next_new = kFirstNew;
};

std::mutex mutex;
std::array<DeviceState, kMostDevices> devices;
c10::DeviceIndex count = 0;
bool forked = false;

thread_local c10::DeviceIndex current = 0;
thread_local std::array<c10::StreamId, kMostDevices> streams{};

// Blocks, without the lock, while the launch queue is full: the host is too far ahead of the device.
void wait_for_place(c10::Stream stream) {
  while (true) {
    Time until = 0;
    {
      std::lock_guard<std::mutex> lock(mutex);
      auto& queue = devices[stream.device_index()].streams[stream.id()].queue;
      while (!queue.empty() && queue.front() <= host_clock().now()) queue.pop_front();
      if (int64_t(queue.size()) < costs().queue) return;
      until = queue.front();
    }
    host_clock().wait_until(until);
  }
}

} // namespace

Costs& costs() {
  static Costs kept;
  return kept;
}

void set_device_count(c10::DeviceIndex wanted) {
  TORCH_CHECK(count == 0 || count == wanted, "there are ", int(count), " simulated devices, and no others can be added");
  if (count == 0) pthread_atfork(nullptr, nullptr, [] { forked = true; });
  count = wanted;
}

c10::DeviceIndex device_count() noexcept { return count; }

bool is_forked_child() noexcept { return forked; }

void refuse_forked_child() {
  TORCH_CHECK(!forked,
      "Cannot re-initialize sim in forked subprocess. To use sim with multiprocessing, you must use the 'spawn' start "
      "method");
}

c10::DeviceIndex current_device() noexcept { return current; }
void set_current_device(c10::DeviceIndex device) noexcept { current = device; }

c10::Stream current_stream(c10::DeviceIndex device) noexcept {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kSim, device), streams[device]);
}

c10::Stream exchange_stream(c10::Stream stream) noexcept {
  auto before = current_stream(stream.device_index());
  streams[stream.device_index()] = stream.id();
  return before;
}

c10::Stream default_stream(c10::DeviceIndex device) noexcept {
  return c10::Stream(c10::Stream::DEFAULT, c10::Device(kSim, device));
}

c10::Stream new_stream(c10::DeviceIndex device) {
  std::lock_guard<std::mutex> lock(mutex);
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kSim, device), devices[device].next_new++);
}

c10::Stream pooled_stream(c10::DeviceIndex device) {
  std::lock_guard<std::mutex> lock(mutex);
  const auto id = 1 + devices[device].next_pooled++ % kPooled;
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kSim, device), id);
}

Slot enqueue(c10::Stream stream, Time cost, Time begun) {
  refuse_forked_child();
  host_clock().spend(begun, costs().launch);
  wait_for_place(stream);
  return enqueue_at(stream, cost, host_clock().now());
}

Slot enqueue_at(c10::Stream stream, Time cost, Time ready) {
  std::lock_guard<std::mutex> lock(mutex);
  auto& state = devices[stream.device_index()].streams[stream.id()];
  const Time start = std::max(ready, state.end);
  state.end = start + cost;
  state.queue.push_back(state.end);
  return {ready, start, state.end};
}

void note_kernel(c10::DeviceIndex device, Time start, Time end) {
  std::lock_guard<std::mutex> lock(mutex);
  auto& state = devices[device];
  start = std::max(start, state.covered);
  if (end <= start) return;
  state.covered = end;
  if (!state.kernels.empty() && state.kernels.back().end == start) {
    state.kernels.back().end = end;
  } else {
    state.kernels.push_back({start, end});
  }
}

Time worked(c10::DeviceIndex device) {
  std::lock_guard<std::mutex> lock(mutex);
  auto& state = devices[device];
  const Time now = host_clock().now();
  while (!state.kernels.empty() && state.kernels.front().start < now) {
    auto& first = state.kernels.front();
    const Time until = std::min(first.end, now);
    state.worked += until - first.start;
    first.start = until;
    if (first.start < first.end) break;
    state.kernels.pop_front();
  }
  return state.worked;
}

Time end_of(c10::Stream stream) {
  std::lock_guard<std::mutex> lock(mutex);
  return devices[stream.device_index()].streams[stream.id()].end;
}

Time end_of_device(c10::DeviceIndex device) {
  std::lock_guard<std::mutex> lock(mutex);
  Time last = 0;
  for (const auto& [id, state] : devices[device].streams) last = std::max(last, state.end);
  return last;
}

void delay_stream(c10::Stream stream, Time time) {
  std::lock_guard<std::mutex> lock(mutex);
  auto& state = devices[stream.device_index()].streams[stream.id()];
  state.end = std::max(state.end, time);
}

void synchronise(const std::string& call, c10::DeviceIndex device, Time until) {
  auto place = calling_line();
  const Time begun = host_clock().now();
  host_clock().wait_until(until);
  ledger().add(ledger().synchronisations,
      Synchronisation{0, call, device, begun, std::max(begun, host_clock().now()), std::move(place)});
}

void reset_streams() {
  std::lock_guard<std::mutex> lock(mutex);
  for (auto& device : devices) {
    device.streams.clear();
    device.kernels.clear();
    device.worked = device.covered = 0;
  }
}

} // namespace sim
