// Records of everything that happened, in launch order.
#pragma once

#include "clock.h"

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace sim {

struct Place {
  std::string file;
  int64_t line = 0;
};

// The innermost line of Python outside of torch and the simulation. Acquires the GIL: never call it while holding a lock
// of the simulation.
Place calling_line();

// Up to MOST frames, innermost first, as "file:line function".
std::vector<std::string> calling_lines(int64_t most);

void skip_files_under(std::vector<std::string> prefixes);

struct Kernel {
  int64_t step;
  std::string name;
  c10::DeviceIndex device;
  c10::StreamId stream;
  Time launched, start, end;
  int64_t flops, bytes;
};

struct Copy {
  int64_t step;
  std::string kind; // "host-to-device", "device-to-host", "device-to-device"
  c10::DeviceIndex device;
  c10::StreamId stream;
  Time launched, start, end;
  int64_t bytes;
  bool pinned, non_blocking;
  Place place;
};

struct Synchronisation {
  int64_t step;
  std::string call;
  c10::DeviceIndex device;
  Time begun, ended;
  Place place;
};

struct Collective {
  int64_t step;
  std::string name;
  c10::DeviceIndex device;
  int64_t ranks, bytes;
  Time launched, ready, start, end; // ready: when this rank's stream reached it; start: when all had
};

struct Allocation {
  int64_t step;
  std::string action; // "alloc", "free", "segment_alloc", "segment_free", "oom", as in torch's memory history
  c10::DeviceIndex device;
  c10::StreamId stream;
  Time time;
  uint64_t address;
  int64_t bytes, allocated, reserved;
  std::vector<std::string> frames;
};

template <class Record>
struct Records {
  std::deque<Record> kept;
  int64_t count = 0;

  void add(Record record, int64_t most) {
    count++;
    kept.push_back(std::move(record));
    if (int64_t(kept.size()) > most) kept.pop_front();
  }
  void clear() {
    kept.clear();
    count = 0;
  }
};

// Whether this thread's work is to leave no record, since it is that of an observer, and not of the job.
inline thread_local bool is_paused = false;

class Ledger {
 public:
  Records<Kernel> kernels;
  Records<Copy> copies;
  Records<Synchronisation> synchronisations;
  Records<Collective> collectives;
  Records<Allocation> allocations;
  std::mutex mutex;

  template <class Record>
  void add(Records<Record>& records, Record record) {
    if (is_paused) return;
    std::lock_guard<std::mutex> lock(mutex);
    record.step = step_;
    records.add(std::move(record), most_);
  }
  void keep(int64_t most) { most_ = most; }
  int64_t next_step();
  int64_t step() const { return step_; }
  void clear();

 private:
  int64_t most_ = 1'000'000;
  std::atomic<int64_t> step_{0};
};

Ledger& ledger();

} // namespace sim
