// The memory of one device, cached by the rules of torch's CUDACachingAllocator: sizes are multiples of 512 bytes;
// requests of up to 1 MiB share segments of 2 MiB, larger ones segments of 20 MiB, and from 10 MiB on each has its own;
// blocks are split when the remainder is usable, and merged with free neighbours. Segments are lazily committed mappings
// of host memory, so a device of 16 GiB takes no more of the host than its tensors do.
#pragma once

#include "clock.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <vector>

namespace sim {

struct Block {
  c10::DeviceIndex device;
  c10::StreamId stream;
  size_t size;
  size_t requested;
  char* address;
  bool is_small;
  bool is_allocated = false;
  Block* before = nullptr;
  Block* after = nullptr;
  uint64_t number = 0; // of the allocation
  int holder = 0;
  std::set<c10::StreamId> users; // other streams that use it, from record_stream

  bool is_split() const { return before != nullptr || after != nullptr; }
};

struct MemoryBlock {
  int64_t size, requested;
  bool is_allocated, is_active;
};
struct MemorySegment {
  c10::DeviceIndex device;
  c10::StreamId stream;
  uint64_t address;
  int64_t size;
  bool is_large;
  std::vector<MemoryBlock> blocks;
};

size_t round_to_block(size_t bytes);
size_t segment_size(size_t bytes);

// Not thread-safe: the allocator holds a lock around every call.
class DeviceMemory {
 public:
  using Note = std::function<void(const char* action, const Block& block, size_t bytes)>;

  // Returns a block for BYTES from the cache or from a new segment, or null if that would exceed CAPACITY.
  Block* allocate(c10::DeviceIndex device, c10::StreamId stream, size_t bytes, size_t capacity, const Note& note);

  // Returns a block to the cache: at once, or at UNTIL if another stream uses it until then.
  void free(Block* block, Time until, Time now);
  void settle(Time now);

  // Unmaps the segments that are entirely free; returns how many.
  int64_t release_cached(const Note& note);

  size_t reserved() const { return reserved_; }
  std::vector<MemorySegment> segments(c10::DeviceIndex device, const std::vector<const Block*>& allocated) const;

  c10::CachingDeviceAllocator::DeviceStats stats;

 private:
  struct BySize {
    bool operator()(const Block* a, const Block* b) const {
      return std::tie(a->stream, a->size, a->address) < std::tie(b->stream, b->size, b->address);
    }
  };
  using Pool = std::set<Block*, BySize>;

  Pool& pool(const Block& block) { return block.is_small ? small_ : large_; }
  Block* find_cached(Block& wanted);
  Block* add_segment(const Block& wanted, size_t capacity, const Note& note);
  void split(Block* block, size_t size);
  void release(Block* block);
  size_t merge(Block* block, Block* neighbour);

  Pool small_, large_;
  std::vector<std::pair<Time, Block*>> waiting_;
  std::map<char*, size_t> segments_;
  size_t reserved_ = 0;
};

} // namespace sim
