// Device memory behind torch's allocator interface, and pinned host memory.
#pragma once

#include "blocks.h"
#include "ledger.h"

namespace sim {

// Sets the capacity of each device.
void set_capacity(size_t bytes);

// Sets the bytes of each device that other processes hold.
void hold_elsewhere(size_t bytes);

// Records up to MOST Python frames per allocation; off by default, since walking the stack costs microseconds.
void keep_frames(int64_t most);

// The highest sum of bytes in tensors since the last reset, in which step and at which line it was reached, and how
// many of them each holder had; reserved: the most that segments held, not necessarily then.
struct Peak {
  int64_t bytes, reserved, step;
  Place place;
  std::map<int, int64_t> holders;
};
Peak peak(c10::DeviceIndex device);

// What the tensors at ADDRESSES are for, as a number of the caller's; 0 is what nobody has said anything of. It holds
// until the memory is freed, and for the peak before that.
void hold(const std::vector<uint64_t>& addresses, int holder);
void keep_peak_lines(bool kept);

c10::DeviceAllocator& device_allocator();
std::vector<MemorySegment> memory_segments();

// Resets peaks and sums, and empties the cache.
void reset_memory();

void register_pinned_allocator();
bool is_pinned(const void* address);
c10::Allocator* pinned_allocator();

} // namespace sim
