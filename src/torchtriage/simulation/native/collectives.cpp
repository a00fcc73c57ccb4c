// The backend for torch.distributed: gloo computes collectives in place, in the memory of the simulated tensors. Each
// group has its own stream, as in NCCL, and the host waits only for data that has not arrived.
#include "alias.h"
#include "device.h"
#include "work.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>
#include <torch/csrc/utils/pybind.h>

namespace py = pybind11;

namespace sim {

namespace {

Tensors aliased(const Tensors& tensors) {
  Aliases aliases;
  Tensors made;
  for (const auto& each : tensors) made.push_back(aliases.of(each));
  return made;
}

std::vector<Tensors> aliased(const std::vector<Tensors>& lists) {
  std::vector<Tensors> made;
  for (const auto& each : lists) made.push_back(aliased(each));
  return made;
}

int64_t bytes_of(const Tensors& tensors) {
  int64_t sum = 0;
  for (const auto& each : tensors) sum += int64_t(each.nbytes());
  return sum;
}

size_t count_simulated(const Tensors& tensors) {
  return std::count_if(tensors.begin(), tensors.end(), [](const at::Tensor& each) { return is_simulated(each); });
}

Tensors flat(const std::vector<Tensors>& lists) {
  Tensors made;
  for (const auto& each : lists) made.insert(made.end(), each.begin(), each.end());
  return made;
}

class SimBackend final : public c10d::Backend {
 public:
  explicit SimBackend(c10::intrusive_ptr<c10d::Backend> gloo)
      : Backend(gloo->getRank(), gloo->getSize()), gloo_(std::move(gloo)) {}

  const std::string getBackendName() const override { return "sim"; }
  void setTimeout(std::chrono::milliseconds timeout) override { gloo_->setTimeout(timeout); }
  void setSequenceNumberForGroup() override { gloo_->setSequenceNumberForGroup(); }
  uint64_t getSequenceNumberForGroup() override { return gloo_->getSequenceNumberForGroup(); }

  WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    return run("broadcast", c10d::OpType::BROADCAST, tensors, tensors, [this, options](Tensors& host) {
      return gloo_->broadcast(host, options);
    });
  }
  WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return run("allreduce", c10d::OpType::ALLREDUCE, tensors, tensors, [this, options](Tensors& host) {
      return allreduce_on_host(host, options);
    });
  }
  WorkPointer allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override {
    return run("allreduce_coalesced", c10d::OpType::ALLREDUCE_COALESCED, tensors, tensors, [this, options](Tensors& host) {
      return gloo_->allreduce_coalesced(host, options);
    });
  }
  WorkPointer reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    return run("reduce", c10d::OpType::REDUCE, tensors, tensors, [this, options](Tensors& host) {
      return gloo_->reduce(host, options);
    });
  }
  WorkPointer allgather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override {
    return run("allgather", c10d::OpType::ALLGATHER, flat(outputs), inputs, [&, options](Tensors& host) {
      auto host_outputs = aliased(outputs);
      return gloo_->allgather(host_outputs, host, options);
    });
  }
  WorkPointer _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override {
    return run("allgather", c10d::OpType::_ALLGATHER_BASE, {output}, {input}, [&, options](Tensors& host) {
      auto host_output = Aliases().of(output).view(-1); // gloo divides the first dimension, NCCL the memory
      auto host_input = host[0].view(-1);
      return gloo_->_allgather_base(host_output, host_input, options);
    });
  }
  WorkPointer allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override {
    return run("allgather", c10d::OpType::COALESCED, outputs, inputs, [&, options](Tensors& host) {
      auto host_outputs = aliased(outputs);
      return gloo_->allgather_into_tensor_coalesced(host_outputs, host, options);
    });
  }
  WorkPointer gather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::GatherOptions& options) override {
    return run("gather", c10d::OpType::GATHER, flat(outputs), inputs, [&, options](Tensors& host) {
      auto host_outputs = aliased(outputs);
      return gloo_->gather(host_outputs, host, options);
    });
  }
  WorkPointer scatter(Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ScatterOptions& options) override {
    return run("scatter", c10d::OpType::SCATTER, outputs, flat(inputs), [&, options](Tensors&) {
      auto host_outputs = aliased(outputs);
      auto host_inputs = aliased(inputs);
      return gloo_->scatter(host_outputs, host_inputs, options);
    });
  }
  WorkPointer reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ReduceScatterOptions& options) override {
    return run("reduce_scatter", c10d::OpType::REDUCE_SCATTER, outputs, flat(inputs), [&, options](Tensors&) {
      auto host_outputs = aliased(outputs);
      auto host_inputs = aliased(inputs);
      return gloo_->reduce_scatter(host_outputs, host_inputs, options);
    });
  }
  WorkPointer _reduce_scatter_base(at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) override {
    return run("reduce_scatter", c10d::OpType::_REDUCE_SCATTER_BASE, {output}, {input}, [&, options](Tensors& host) {
      auto host_output = Aliases().of(output).view(-1);
      auto host_input = host[0].view(-1);
      return gloo_->_reduce_scatter_base(host_output, host_input, options);
    });
  }
  WorkPointer alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_sizes,
      std::vector<int64_t>& input_sizes, const c10d::AllToAllOptions& options) override {
    return run("alltoall", c10d::OpType::ALLTOALL_BASE, {output}, {input}, [&, options](Tensors& host) {
      auto host_output = Aliases().of(output);
      return gloo_->alltoall_base(host_output, host[0], output_sizes, input_sizes, options);
    });
  }
  // Without the exchange of times: only two ranks take part.
  WorkPointer send(Tensors& tensors, int to, int tag) override {
    return run("send", c10d::OpType::SEND, tensors, tensors,
        [this, to, tag](Tensors& host) { return gloo_->send(host, to, tag); }, /*all_ranks=*/false);
  }
  WorkPointer recv(Tensors& tensors, int from, int tag) override {
    return run("recv", c10d::OpType::RECV, tensors, tensors,
        [this, from, tag](Tensors& host) { return gloo_->recv(host, from, tag); }, /*all_ranks=*/false);
  }
  WorkPointer recvAnysource(Tensors& tensors, int tag) override {
    return run("recv", c10d::OpType::RECVANYSOURCE, tensors, tensors,
        [this, tag](Tensors& host) { return gloo_->recvAnysource(host, tag); }, /*all_ranks=*/false);
  }
  // Synchronises the host, as NCCL's barrier does.
  WorkPointer barrier(const c10d::BarrierOptions& options) override {
    const auto device = current_device();
    synchronise("barrier", device, end_of_device(device));
    auto work = run("barrier", c10d::OpType::BARRIER, {}, {}, [this, options](Tensors&) { return gloo_->barrier(options); });
    work->wait();
    synchronise("barrier", device, end_of(current_stream(device)));
    return work;
  }

 private:
  // gloo has no AVG, which DistributedDataParallel asks for.
  WorkPointer allreduce_on_host(Tensors& host, const c10d::AllreduceOptions& options) {
    if (options.reduceOp != c10d::ReduceOp::AVG) return gloo_->allreduce(host, options);
    auto sum = options;
    sum.reduceOp = c10d::ReduceOp::SUM;
    auto work = gloo_->allreduce(host, sum);
    work->wait();
    for (auto& each : host) each.div_(getSize());
    return work;
  }

  template <class Start>
  WorkPointer run(const char* name, c10d::OpType type, Tensors results, const Tensors& inputs, Start start,
      bool all_ranks = true) {
    const auto simulated = count_simulated(results) + count_simulated(inputs);
    auto host = aliased(inputs);
    if (simulated == 0 && type != c10d::OpType::BARRIER) return start(host); // CPU tensors
    TORCH_CHECK(simulated == results.size() + inputs.size(), name, " takes tensors of sim or of the host, and not of both");
    const auto device = inputs.empty() ? c10::Device(kSim, current_device()) : inputs[0].device();
    host_clock().spend(host_clock().now(), costs().launch);
    auto work = c10::make_intrusive<SimWork>(
        name, type, getSize(), stream_on(device.index()), std::move(results), bytes_of(inputs));
    WorkPointer clock;
    if (all_ranks) {
      Tensors ready{work->ready_of_all()};
      c10d::AllreduceOptions latest;
      latest.reduceOp = c10d::ReduceOp::MAX;
      clock = gloo_->allreduce(ready, latest);
    }
    auto collective = start(host);
    work->follow(std::move(clock), std::move(collective), std::exchange(last_, work));
    return work;
  }

  c10::Stream stream_on(c10::DeviceIndex device) {
    if (!stream_.has_value() || stream_->device_index() != device) stream_ = new_stream(device);
    return *stream_;
  }

  c10::intrusive_ptr<c10d::Backend> gloo_;
  std::optional<c10::Stream> stream_;
  c10::intrusive_ptr<SimWork> last_;
};

} // namespace

void bind_collectives(py::module_& module) {
  module.def("collectives_over", [](const c10::intrusive_ptr<c10d::Backend>& gloo) -> c10::intrusive_ptr<c10d::Backend> {
    return c10::make_intrusive<SimBackend>(gloo);
  });
}

} // namespace sim

namespace c10d {
C10_REGISTER_TYPED_CLASS(TimerRegistry, c10::kPrivateUse1, sim::SimTimer);
} // namespace c10d
