#include "memory.h"

#include "device.h"
#include "ledger.h"
#include "presented.h"

#include <c10/util/Exception.h>
#include <c10/util/irange.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iomanip>
#include <mutex>
#include <sstream>
#include <unordered_map>

namespace sim {

namespace {

using c10::CachingAllocator::Stat;
using c10::CachingDeviceAllocator::DeviceStats;

std::string in_units(size_t bytes) {
  std::ostringstream text;
  text << std::setprecision(2) << std::fixed;
  if (bytes < (1u << 10)) {
    text << bytes << " bytes";
  } else if (bytes < (1u << 20)) {
    text << double(bytes) / double(1u << 10) << " KiB";
  } else if (bytes < (1u << 30)) {
    text << double(bytes) / double(1u << 20) << " MiB";
  } else {
    text << double(bytes) / double(1u << 30) << " GiB";
  }
  return text.str();
}

template <class Apply>
void each_stat(DeviceStats& stats, Apply apply) {
  for (auto* array : {&stats.allocation, &stats.segment, &stats.active, &stats.inactive_split, &stats.allocated_bytes,
           &stats.reserved_bytes, &stats.active_bytes, &stats.inactive_split_bytes, &stats.requested_bytes}) {
    for (auto& stat : *array) apply(stat);
  }
  apply(stats.oversize_allocations);
  apply(stats.oversize_segments);
}

class CachingAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
  bool initialized() override { return device_count() > 0; }
  void emptyCache(c10::MempoolId_t) override;
  void recordStream(const c10::DataPtr& data, c10::Stream stream) override;
  DeviceStats getDeviceStats(c10::DeviceIndex device) override;
  void resetAccumulatedStats(c10::DeviceIndex device) override;
  void resetPeakStats(c10::DeviceIndex device) override;
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override;

  void free(void* address);
  void reset();
  std::vector<MemorySegment> segments();
  void hold(const std::vector<uint64_t>& addresses, int holder);
  Peak peak(c10::DeviceIndex device);
  bool keeps_lines = false;
  size_t capacity = size_t(16) << 30;
  size_t held_by_others = 0;
  int64_t frames = 0;

 private:
  size_t room() const { return capacity - std::min(capacity, held_by_others); }
  size_t free_bytes(const DeviceMemory& memory) const { return room() - std::min(room(), memory.reserved()); }
  [[noreturn]] void refuse(c10::DeviceIndex device, size_t bytes);
  void note(const char* action, const Block& block, size_t bytes, std::vector<std::string> lines = {});
  DeviceMemory::Note noting() {
    return [this](const char* action, const Block& block, size_t bytes) { note(action, block, bytes); };
  }

  bool raise_peak(Block* block);
  void lower_peak(const Block& block);

  // The highest sum of allocated bytes, and which blocks it is made of: those of numbers up to LAST that are still
  // allocated, and those that were freed since.
  struct Summit {
    uint64_t last = 0;
    int64_t bytes = 0, reserved = 0, step = 0;
    Place place;
    std::vector<std::pair<int, int64_t>> freed; // holder and bytes
  };

  std::mutex mutex_;
  std::array<DeviceMemory, kMostDevices> devices_;
  std::array<Summit, kMostDevices> summits_;
  uint64_t numbered_ = 0;
  std::unordered_map<void*, Block*> allocated_;
};

CachingAllocator& allocator() {
  static auto* kept = new CachingAllocator; // leaked: tensors may outlive static objects
  return *kept;
}

void delete_block(void* address) { allocator().free(address); }

c10::DataPtr CachingAllocator::allocate(size_t bytes) {
  const auto device = current_device();
  if (bytes == 0) return {nullptr, nullptr, &delete_block, c10::Device(kSim, device)};
  refuse_forked_child();
  auto lines = calling_lines(frames);
  const Time begun = host_clock().now();
  int64_t driver_calls = 0, released = 0;
  Block* block = nullptr;
  bool is_peak = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto& memory = devices_[device];
    memory.settle(begun);
    const auto before = memory.stats.num_device_alloc;
    const auto stream = current_stream(device).id();
    block = memory.allocate(device, stream, bytes, room(), noting());
    if (block == nullptr) {
      memory.stats.num_alloc_retries++;
      released = memory.release_cached(noting());
      block = memory.allocate(device, stream, bytes, room(), noting());
    }
    if (block == nullptr) refuse(device, bytes);
    driver_calls = memory.stats.num_device_alloc - before + released;
    allocated_[block->address] = block;
    note("alloc", *block, block->size, std::move(lines));
    is_peak = raise_peak(block);
  }
  if (is_peak && keeps_lines) {
    // Autograd's threads have no line, and are best kept away from the GIL.
    auto place = torch::autograd::get_current_graph_task_id() == -1 ? calling_line() : Place();
    std::lock_guard<std::mutex> lock(mutex_);
    summits_[device].place = std::move(place);
  }
  // Freeing device memory waits for the device, as cudaFree does.
  if (released > 0) synchronise("free of cached memory", device, end_of_device(device));
  if (driver_calls > 0) host_clock().spend(begun, driver_calls * costs().segment);
  return {block->address, block->address, &delete_block, c10::Device(kSim, device)};
}

void CachingAllocator::free(void* address) {
  if (address == nullptr || is_forked_child()) return; // the lock may be held by a thread that does not exist in the child
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = allocated_.find(address);
  TORCH_INTERNAL_ASSERT(found != allocated_.end());
  Block* block = found->second;
  allocated_.erase(found);
  Time until = 0;
  for (const auto user : block->users) {
    until = std::max(until, end_of(c10::Stream(c10::Stream::UNSAFE, c10::Device(kSim, block->device), user)));
  }
  const Block freed = *block; // the block itself may be merged away
  lower_peak(freed);
  devices_[block->device].free(block, until, host_clock().now());
  note("free", freed, freed.size);
}

bool CachingAllocator::raise_peak(Block* block) {
  const auto& stats = devices_[block->device].stats;
  auto& summit = summits_[block->device];
  block->number = ++numbered_;
  block->holder = 0;
  summit.reserved = std::max(summit.reserved, stats.reserved_bytes[0].current);
  if (is_paused || stats.allocated_bytes[0].current <= summit.bytes) return false;
  summit.last = block->number;
  summit.bytes = stats.allocated_bytes[0].current;
  summit.step = ledger().step();
  summit.freed.clear();
  return true;
}

void CachingAllocator::lower_peak(const Block& block) {
  auto& summit = summits_[block.device];
  if (block.number <= summit.last) summit.freed.emplace_back(block.holder, int64_t(block.size));
}

void CachingAllocator::hold(const std::vector<uint64_t>& addresses, int holder) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto address : addresses) {
    auto found = allocated_.find(reinterpret_cast<void*>(address));
    if (found != allocated_.end()) found->second->holder = holder;
  }
}

Peak CachingAllocator::peak(c10::DeviceIndex device) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto& summit = summits_.at(device);
  Peak found{summit.bytes, summit.reserved, summit.step, summit.place, {}};
  for (const auto& [holder, bytes] : summit.freed) found.holders[holder] += bytes;
  for (const auto& [address, block] : allocated_) {
    if (block->device == device && block->number <= summit.last) found.holders[block->holder] += int64_t(block->size);
  }
  return found;
}

void CachingAllocator::refuse(c10::DeviceIndex device, size_t bytes) {
  auto& memory = devices_[device];
  memory.stats.num_ooms++;
  note("oom", Block{device, current_stream(device).id(), round_to_block(bytes), bytes, nullptr, false}, bytes);
  const auto allocated = size_t(memory.stats.allocated_bytes[0].current);
  const bool as_cuda = is_presented_as_cuda();
  const auto in_use = held_by_others == 0
      ? std::string()
      : "Including non-PyTorch memory, this process has " + in_units(memory.reserved()) + " memory in use. ";
  TORCH_CHECK_WITH(OutOfMemoryError, false, as_cuda ? "CUDA" : "sim", " out of memory. Tried to allocate ",
      in_units(segment_size(round_to_block(bytes))), ". ", as_cuda ? "GPU " : "sim ", int(device),
      " has a total capacity of ", in_units(capacity), " of which ", in_units(free_bytes(memory)),
      " is free. ", in_use, "Of the allocated memory ", in_units(allocated), " is allocated by PyTorch, and ",
      in_units(memory.reserved() - allocated), " is reserved by PyTorch but unallocated. If reserved but unallocated ",
      "memory is large, the memory is fragmented: the simulation has no expandable segments.");
}

void CachingAllocator::note(const char* action, const Block& block, size_t bytes, std::vector<std::string> lines) {
  const auto& stats = devices_[block.device].stats;
  ledger().add(ledger().allocations,
      Allocation{0, action, block.device, block.stream, host_clock().now(), reinterpret_cast<uint64_t>(block.address),
          int64_t(bytes), stats.allocated_bytes[0].current, stats.reserved_bytes[0].current, std::move(lines)});
}

c10::DeleterFnPtr CachingAllocator::raw_deleter() const { return &delete_block; }

void CachingAllocator::emptyCache(c10::MempoolId_t) {
  for (const auto device : c10::irange(device_count())) {
    const Time begun = host_clock().now();
    int64_t released = 0;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      released = devices_[device].release_cached(noting());
    }
    if (released == 0) continue;
    synchronise("free of cached memory", device, end_of_device(device));
    host_clock().spend(begun, released * costs().segment);
  }
}

void CachingAllocator::recordStream(const c10::DataPtr& data, c10::Stream stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = allocated_.find(data.get());
  if (found != allocated_.end() && found->second->stream != stream.id()) found->second->users.insert(stream.id());
}

DeviceStats CachingAllocator::getDeviceStats(c10::DeviceIndex device) {
  std::lock_guard<std::mutex> lock(mutex_);
  return devices_.at(device).stats;
}

void CachingAllocator::resetAccumulatedStats(c10::DeviceIndex device) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto& stats = devices_.at(device).stats;
  each_stat(stats, [](Stat& stat) { stat.reset_accumulated(); });
  stats.num_alloc_retries = stats.num_ooms = stats.num_device_alloc = stats.num_device_free = 0;
}

void CachingAllocator::resetPeakStats(c10::DeviceIndex device) {
  std::lock_guard<std::mutex> lock(mutex_);
  each_stat(devices_.at(device).stats, [](Stat& stat) { stat.reset_peak(); });
}

std::pair<size_t, size_t> CachingAllocator::getMemoryInfo(c10::DeviceIndex device) {
  std::lock_guard<std::mutex> lock(mutex_);
  return {free_bytes(devices_.at(device)), capacity};
}

void CachingAllocator::reset() {
  for (const auto device : c10::irange(device_count())) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      devices_[device].release_cached([](const char*, const Block&, size_t) {});
    }
    resetAccumulatedStats(device);
    resetPeakStats(device);
    std::lock_guard<std::mutex> lock(mutex_);
    summits_[device] = Summit();
  }
}

std::vector<MemorySegment> CachingAllocator::segments() {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<const Block*> allocated;
  for (const auto& [address, block] : allocated_) allocated.push_back(block);
  std::vector<MemorySegment> all;
  for (const auto device : c10::irange(device_count())) {
    const auto found = devices_[device].segments(device, allocated);
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

struct RegisterAllocator {
  RegisterAllocator() { c10::SetAllocator(kSim, &allocator()); }
} register_allocator;

} // namespace

void set_capacity(size_t bytes) { allocator().capacity = bytes; }
void hold_elsewhere(size_t bytes) { allocator().held_by_others = bytes; }
void keep_frames(int64_t most) { allocator().frames = most; }
c10::DeviceAllocator& device_allocator() { return allocator(); }
void keep_peak_lines(bool kept) { allocator().keeps_lines = kept; }
void hold(const std::vector<uint64_t>& addresses, int holder) { allocator().hold(addresses, holder); }
Peak peak(c10::DeviceIndex device) { return allocator().peak(device); }
void reset_memory() { allocator().reset(); }
std::vector<MemorySegment> memory_segments() { return allocator().segments(); }

} // namespace sim
