// Device memory behind torch's allocator interface, and pinned host memory.
#pragma once

#include "blocks.h"

namespace sim {

// Sets the capacity of each device.
void set_capacity(size_t bytes);

// Sets the bytes of each device that other processes hold.
void hold_elsewhere(size_t bytes);

// Records up to MOST Python frames per allocation; off by default, since walking the stack costs microseconds.
void keep_frames(int64_t most);

c10::DeviceAllocator& device_allocator();
std::vector<MemorySegment> memory_segments();

// Resets peaks and sums, and empties the cache.
void reset_memory();

void register_pinned_allocator();
bool is_pinned(const void* address);
c10::Allocator* pinned_allocator();

} // namespace sim
