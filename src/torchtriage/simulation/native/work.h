// A collective in flight, and its time on the clocks of the devices.
#pragma once

#include "device.h"
#include "ledger.h"
#include "profiler.h"

#include <c10/core/StreamGuard.h>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

#include <map>
#include <mutex>

namespace sim {

using Tensors = std::vector<at::Tensor>;
using WorkPointer = c10::intrusive_ptr<c10d::Work>;

// On the device a collective starts when the streams of all ranks have reached it. Each rank learns that time from a MAX
// allreduce that is issued with the collective.
class SimWork final : public c10d::Work {
 public:
  SimWork(std::string name, c10d::OpType type, int ranks, c10::Stream stream, Tensors results, int64_t bytes)
      : Work(-1, type), name_(std::move(name)), ranks_(ranks), stream_(stream), results_(std::move(results)), bytes_(bytes) {
    device_ = stream_.device();
    launched_ = host_clock().now();
    ready_ = std::max(launched_, end_of(current_stream(device_.index())));
    ready_of_all_ = at::empty({1}, at::kLong);
    *ready_of_all_.mutable_data_ptr<int64_t>() = ready_;
    future_ = c10::make_intrusive<c10::ivalue::Future>(
        c10::ListType::create(c10::TensorType::get()), std::vector<c10::Device>{device_});
  }

  at::Tensor& ready_of_all() { return ready_of_all_; }
  void follow(WorkPointer clock, WorkPointer collective, c10::intrusive_ptr<SimWork> before) {
    clock_ = std::move(clock);
    collective_ = std::move(collective);
    before_ = std::move(before);
    try {
      host_future_ = collective_->getFuture();
    } catch (const c10::Error&) {
      host_future_ = nullptr; // gloo has none for send, recv and reduce_scatter
    }
  }

  // Waits for gloo, then puts the collective on the clock of its stream.
  void settle() {
    std::call_once(settled_, [this] {
      if (before_ != nullptr) before_->settle();
      before_ = nullptr;
      if (clock_ != nullptr) clock_->wait();
      host_future_ != nullptr ? host_future_->waitAndThrow() : (void)collective_->wait();
      const Time start = *ready_of_all_.const_data_ptr<int64_t>();
      const auto slot = enqueue_at(stream_, costs().collective.of(bytes_), start);
      end_ = slot.end;
      const Collective done{0, name_, device_.index(), ranks_, bytes_, launched_, ready_, slot.start, slot.end};
      ledger().add(ledger().collectives, done);
      trace(done, stream_.id());
    });
  }

  bool wait(std::chrono::milliseconds) override {
    settle();
    synchronize();
    return true;
  }
  void synchronize() override {
    settle();
    delay_stream(current_stream(device_.index()), end_);
  }
  bool isCompleted() override { return collective_->isCompleted() && (settle(), end_ <= host_clock().now()); }
  bool isSuccess() const override { return collective_->isSuccess(); }
  void abort() override { collective_->abort(); }
  Tensors result() override { return results_; }
  int sourceRank() const override { return collective_->sourceRank(); }

  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    std::call_once(promised_, [this] {
      if (host_future_ == nullptr) {
        complete();
        return;
      }
      auto self = c10::intrusive_ptr<SimWork>::unsafe_reclaim_from_nonowning(this);
      host_future_->addCallback([self](c10::ivalue::Future& done) {
        done.hasError() ? self->future_->setError(done.exception_ptr()) : self->complete();
      });
    });
    return future_;
  }

 private:
  // The future records the stream it is completed on; waiting for it makes the current stream wait for that one.
  void complete() {
    settle();
    c10::StreamGuard on(stream_);
    future_->markCompleted(c10::IValue(results_));
  }

  std::string name_;
  int ranks_;
  c10::Stream stream_;
  c10::Device device_{kSim, 0};
  Tensors results_;
  int64_t bytes_;
  Time launched_ = 0, ready_ = 0, end_ = 0;
  at::Tensor ready_of_all_;
  WorkPointer clock_, collective_;
  // gloo completes this before the work itself, and runs callbacks in between: waiting for the work there would deadlock.
  c10::intrusive_ptr<c10::ivalue::Future> host_future_;
  c10::intrusive_ptr<SimWork> before_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  std::once_flag settled_, promised_;
};

// For the runtime statistics of DistributedDataParallel.
class SimTimer final : public c10d::Timer {
 public:
  explicit SimTimer(c10::Device device) : device_(device) {}
  void record(Event event) override {
    Timer::record(event);
    times_[event] = std::max(host_clock().now(), end_of(current_stream(device_.index())));
  }
  std::optional<int64_t> measureDifference(Event start, Event end) override {
    if (times_.count(start) == 0 || times_.count(end) == 0 || times_[end] < times_[start]) return std::nullopt;
    return times_[end] - times_[start];
  }

 private:
  c10::Device device_;
  std::map<Event, Time> times_;
};

} // namespace sim
