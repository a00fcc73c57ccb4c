// Pinned host memory: ordinary memory with known addresses, so that a copy can tell whether it may be asynchronous. It is
// not cached: copies read and write immediately, so a block can be freed while a copy is in flight on the clock.
#include "memory.h"

#include "device.h"

#include <ATen/core/CachingHostAllocator.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace sim {

namespace {

constexpr size_t kAlignment = 64; // that of torch's CPU allocator

class PinnedAllocator final : public at::HostAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
  bool record_event(void*, void*, c10::Stream) override { return true; }
  void empty_cache() override {}
  at::HostStats get_stats() override;
  void reset_accumulated_stats() override;
  void reset_peak_stats() override;

  void free(void* address);
  bool holds(const void* address);

 private:
  std::mutex mutex_;
  std::map<const char*, size_t> blocks_;
  at::HostStats stats_;
};

PinnedAllocator& pinned_memory() {
  static auto* kept = new PinnedAllocator;
  return *kept;
}

void delete_pinned(void* address) { pinned_memory().free(address); }

c10::DataPtr PinnedAllocator::allocate(size_t bytes) {
  if (bytes == 0) return {nullptr, nullptr, &delete_pinned, c10::Device(c10::kCPU)};
  void* address = nullptr;
  TORCH_CHECK(posix_memalign(&address, kAlignment, bytes) == 0, "no memory for ", bytes, " pinned bytes");
  std::lock_guard<std::mutex> lock(mutex_);
  blocks_[static_cast<char*>(address)] = bytes;
  stats_.allocations.increase(1);
  stats_.allocated_bytes.increase(bytes);
  return {address, address, &delete_pinned, c10::Device(c10::kCPU)};
}

c10::DeleterFnPtr PinnedAllocator::raw_deleter() const { return &delete_pinned; }

void PinnedAllocator::free(void* address) {
  if (address == nullptr || is_forked_child()) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = blocks_.find(static_cast<char*>(address));
    if (found == blocks_.end()) return;
    stats_.allocations.decrease(1);
    stats_.allocated_bytes.decrease(found->second);
    blocks_.erase(found);
  }
  std::free(address);
}

bool PinnedAllocator::holds(const void* address) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto after = blocks_.upper_bound(static_cast<const char*>(address));
  if (after == blocks_.begin()) return false;
  --after;
  return static_cast<const char*>(address) < after->first + after->second;
}

at::HostStats PinnedAllocator::get_stats() {
  std::lock_guard<std::mutex> lock(mutex_);
  return stats_;
}

void PinnedAllocator::reset_accumulated_stats() {
  std::lock_guard<std::mutex> lock(mutex_);
  stats_.allocations.reset_accumulated();
  stats_.allocated_bytes.reset_accumulated();
}

void PinnedAllocator::reset_peak_stats() {
  std::lock_guard<std::mutex> lock(mutex_);
  stats_.allocations.reset_peak();
  stats_.allocated_bytes.reset_peak();
}

} // namespace

void register_pinned_allocator() { at::setHostAllocator(kSim, &pinned_memory()); }
bool is_pinned(const void* address) { return !is_forked_child() && pinned_memory().holds(address); }
at::Allocator* pinned_allocator() { return &pinned_memory(); }

} // namespace sim
