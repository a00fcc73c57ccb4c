#include "blocks.h"

#include <c10/core/AllocatorConfig.h>
#include <sys/mman.h>

namespace sim {

namespace {

using c10::CachingAllocator::kMinBlockSize;
using c10::CachingAllocator::kMinLargeAlloc;
using c10::CachingAllocator::kRoundLarge;
using c10::CachingAllocator::kSmallBuffer;
using c10::CachingAllocator::kSmallSize;
using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;
using c10::CachingAllocator::StatType;

constexpr size_t kLargeBuffer = 20 << 20; // not in torch's headers

template <class Change>
void change(StatArray& stats, bool is_small, Change apply) {
  apply(stats[size_t(StatType::AGGREGATE)]);
  apply(stats[size_t(is_small ? StatType::SMALL_POOL : StatType::LARGE_POOL)]);
}

void increase(StatArray& stats, bool is_small, size_t by) {
  change(stats, is_small, [&](Stat& stat) { stat.increase(by); });
}

void decrease(StatArray& stats, bool is_small, size_t by) {
  change(stats, is_small, [&](Stat& stat) { stat.decrease(by); });
}

void adjust(StatArray& stats, bool is_small, int64_t by) {
  by < 0 ? decrease(stats, is_small, size_t(-by)) : increase(stats, is_small, size_t(by));
}

} // namespace

size_t round_to_block(size_t bytes) {
  return std::max(kMinBlockSize, (bytes + kMinBlockSize - 1) / kMinBlockSize * kMinBlockSize);
}

size_t segment_size(size_t bytes) {
  if (bytes <= kSmallSize) return kSmallBuffer;
  if (bytes < kMinLargeAlloc) return kLargeBuffer;
  return (bytes + kRoundLarge - 1) / kRoundLarge * kRoundLarge;
}

Block* DeviceMemory::allocate(
    c10::DeviceIndex device, c10::StreamId stream, size_t bytes, size_t capacity, const Note& note) {
  const size_t size = round_to_block(bytes);
  Block wanted{device, stream, size, bytes, nullptr, size <= kSmallSize};
  Block* block = find_cached(wanted);
  if (block == nullptr) block = add_segment(wanted, capacity, note);
  if (block == nullptr) return nullptr;
  block->requested = bytes;
  split(block, size);
  block->is_allocated = true;
  increase(stats.allocation, block->is_small, 1);
  increase(stats.allocated_bytes, block->is_small, block->size);
  increase(stats.requested_bytes, block->is_small, bytes);
  increase(stats.active, block->is_small, 1);
  increase(stats.active_bytes, block->is_small, block->size);
  return block;
}

// Best fit among the blocks of the same stream.
Block* DeviceMemory::find_cached(Block& wanted) {
  auto& cached = pool(wanted);
  auto found = cached.lower_bound(&wanted);
  if (found == cached.end() || (*found)->stream != wanted.stream) return nullptr;
  Block* block = *found;
  cached.erase(found);
  return block;
}

Block* DeviceMemory::add_segment(const Block& wanted, size_t capacity, const Note& note) {
  const size_t size = segment_size(wanted.size);
  if (reserved_ + size > capacity) return nullptr;
  void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* block = new Block(wanted);
  block->address = static_cast<char*>(mapped);
  block->size = size;
  reserved_ += size;
  segments_[block->address] = size;
  stats.num_device_alloc++;
  increase(stats.segment, block->is_small, 1);
  increase(stats.reserved_bytes, block->is_small, size);
  note("segment_alloc", *block, size);
  return block;
}

void DeviceMemory::split(Block* block, size_t size) {
  const bool was_split = block->is_split();
  const size_t rest = block->size - size;
  if (block->is_small ? rest < kMinBlockSize : rest <= kSmallSize) {
    if (was_split) {
      decrease(stats.inactive_split, block->is_small, 1);
      decrease(stats.inactive_split_bytes, block->is_small, block->size);
    }
    return;
  }
  auto* remaining = new Block{block->device, block->stream, rest, 0, block->address + size, block->is_small};
  remaining->before = block;
  remaining->after = block->after;
  if (block->after != nullptr) block->after->before = remaining;
  block->after = remaining;
  block->size = size;
  pool(*block).insert(remaining);
  if (was_split) {
    decrease(stats.inactive_split_bytes, block->is_small, size);
  } else {
    increase(stats.inactive_split, block->is_small, 1);
    increase(stats.inactive_split_bytes, block->is_small, rest);
  }
}

void DeviceMemory::free(Block* block, Time until, Time now) {
  block->is_allocated = false;
  block->users.clear();
  decrease(stats.allocation, block->is_small, 1);
  decrease(stats.allocated_bytes, block->is_small, block->size);
  decrease(stats.requested_bytes, block->is_small, block->requested);
  if (until > now) {
    waiting_.emplace_back(until, block);
  } else {
    release(block);
  }
}

void DeviceMemory::settle(Time now) {
  std::vector<std::pair<Time, Block*>> still_waiting;
  for (const auto& [until, block] : waiting_) {
    if (until > now) {
      still_waiting.emplace_back(until, block);
    } else {
      release(block);
    }
  }
  waiting_ = std::move(still_waiting);
}

void DeviceMemory::release(Block* block) {
  const size_t size = block->size;
  int64_t pieces = 0;
  int64_t bytes = 0;
  for (Block* neighbour : {block->before, block->after}) {
    const size_t merged = merge(block, neighbour);
    if (merged > 0) {
      pieces--;
      bytes -= int64_t(merged);
    }
  }
  decrease(stats.active, block->is_small, 1);
  decrease(stats.active_bytes, block->is_small, size);
  pool(*block).insert(block);
  if (block->is_split()) {
    pieces++;
    bytes += int64_t(block->size);
  }
  adjust(stats.inactive_split, block->is_small, pieces);
  adjust(stats.inactive_split_bytes, block->is_small, bytes);
}

// Merges NEIGHBOUR into BLOCK if it is free; returns its size, or 0.
size_t DeviceMemory::merge(Block* block, Block* neighbour) {
  if (neighbour == nullptr || pool(*neighbour).erase(neighbour) == 0) return 0;
  const size_t size = neighbour->size;
  if (neighbour == block->before) {
    block->address = neighbour->address;
    block->before = neighbour->before;
    if (block->before != nullptr) block->before->after = block;
  } else {
    block->after = neighbour->after;
    if (block->after != nullptr) block->after->before = block;
  }
  block->size += size;
  delete neighbour;
  return size;
}

int64_t DeviceMemory::release_cached(const Note& note) {
  int64_t count = 0;
  for (const auto& [until, block] : waiting_) release(block); // the caller waits for the device
  waiting_.clear();
  for (auto* cached : {&small_, &large_}) {
    for (auto each = cached->begin(); each != cached->end();) {
      Block* block = *each;
      if (block->is_split()) {
        ++each;
        continue;
      }
      each = cached->erase(each);
      munmap(block->address, block->size);
      segments_.erase(block->address);
      reserved_ -= block->size;
      count++;
      stats.num_device_free++;
      decrease(stats.segment, block->is_small, 1);
      decrease(stats.reserved_bytes, block->is_small, block->size);
      note("segment_free", *block, block->size);
      delete block;
    }
  }
  return count;
}

std::vector<MemorySegment> DeviceMemory::segments(
    c10::DeviceIndex device, const std::vector<const Block*>& allocated) const {
  std::map<char*, std::pair<const Block*, bool>> by_address; // and whether it is active
  for (const auto* block : allocated) by_address[block->address] = {block, true};
  for (const auto& [until, block] : waiting_) by_address[block->address] = {block, true};
  for (const auto* cached : {&small_, &large_}) {
    for (const auto* block : *cached) by_address[block->address] = {block, false};
  }
  std::vector<MemorySegment> all;
  for (const auto& [start, size] : segments_) {
    MemorySegment segment{device, 0, reinterpret_cast<uint64_t>(start), int64_t(size), false, {}};
    for (auto at = by_address.lower_bound(start); at != by_address.end() && at->first < start + size; ++at) {
      const auto& [block, is_active] = at->second;
      segment.stream = block->stream;
      segment.is_large = !block->is_small;
      segment.blocks.push_back({int64_t(block->size), int64_t(block->requested), block->is_allocated, is_active});
    }
    all.push_back(std::move(segment));
  }
  return all;
}

} // namespace sim
