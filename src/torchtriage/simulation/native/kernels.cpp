// Each operator is one kernel of the device: it is computed immediately, by the CPU kernel in the memory of the simulated
// tensors, and takes its time on the clock of its stream.
//
// at::native::cpu_fallback would not do: it copies every argument to the host, which synchronises at every operator.
#include "kernels.h"

#include "alias.h"
#include "device.h"
#include "generator.h"
#include "ledger.h"
#include "memory.h"
#include "operators.h"
#include "presented.h"
#include "profiler.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/op_registration/adaption.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <mutex>
#include <optional>

namespace sim {

namespace {

using torch::jit::Stack;

// Calls VISIT(tensor, argument name) for each tensor among the arguments.
template <class Visit>
void each_tensor(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments, Visit visit) {
  for (size_t i = 0; i < arguments.size(); i++) {
    const auto& value = arguments[i];
    const auto& name = schema.arguments()[i].name();
    if (value.isTensor()) {
      if (value.toTensor().defined()) visit(value.toTensor(), name);
    } else if (value.isTensorList()) {
      for (const at::Tensor& each : value.toTensorList()) visit(each, name);
    } else if (value.isOptionalTensorList()) {
      for (const std::optional<at::Tensor>& each : value.toOptionalTensorList()) {
        if (each.has_value() && each->defined()) visit(*each, name);
      }
    }
  }
}

// Raises torch's errors for mixed devices. TensorIterator accepts host scalars; the generated checks accept nothing.
void check_devices(const Operator& op, const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  std::optional<c10::Device> common;
  each_tensor(schema, arguments, [&](const at::Tensor& tensor, const std::string& name) {
    if (op.can_mix_host_scalars && tensor.is_cpu() && tensor.dim() == 0) return;
    if (!common.has_value()) common = tensor.device();
    if (tensor.device() == *common) return;
    if (op.can_mix_host_scalars) {
      TORCH_CHECK(false, "Expected all tensors to be on the same device, but found at least two devices, ",
          name_of(*common), " and ", name_of(tensor.device()), "!");
    }
    TORCH_CHECK(false, "Expected all tensors to be on the same device, but got ", name, " is on ", name_of(tensor.device()),
        ", different from other tensors on ", name_of(*common), " (when checking argument in method wrapper_",
        is_presented_as_cuda() ? "CUDA_" : "sim_", op.name, ")");
  });
}

// Convolutions compare tensor types before the generic check, and raise an error of their own.
void check_convolution(c10::ArrayRef<c10::IValue> arguments) {
  const auto input = arguments[0].toTensor();
  const auto weight = arguments[1].toTensor();
  TORCH_CHECK(input.device().type() == weight.device().type(), "Input type (", input.toString(), ") and weight type (",
      weight.toString(), ") should be the same",
      input.is_cpu() ? " or input should be a MKLDNN tensor and weight is a dense tensor" : "");
}

c10::Device target_of(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  std::optional<c10::Device> found;
  each_tensor(schema, arguments, [&](const at::Tensor& tensor, const std::string&) {
    if (!found.has_value() && is_simulated(tensor)) found = tensor.device();
  });
  for (const auto& value : arguments) {
    if (!found.has_value() && value.isDevice() && value.toDevice().type() == kSim) found = value.toDevice();
  }
  if (!found.has_value() || !found->has_index()) found = c10::Device(kSim, current_device());
  return *found;
}

int64_t bytes_in(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  int64_t sum = 0;
  each_tensor(schema, arguments, [&](const at::Tensor& tensor, const std::string&) {
    if (is_simulated(tensor)) sum += int64_t(tensor.nbytes());
  });
  return sum;
}

int64_t bytes_of_new(c10::ArrayRef<c10::IValue> results, bool in_place) {
  int64_t sum = 0;
  for (const auto& value : results) {
    if (in_place) break;
    if (value.isTensor() && value.toTensor().defined()) sum += int64_t(value.toTensor().nbytes());
    if (!value.isTensorList()) continue;
    for (const at::Tensor& each : value.toTensorList()) sum += int64_t(each.nbytes());
  }
  return sum;
}

// Swaps the states of the CPU's default generator and the device's, for operators without a generator argument.
class DrawFrom {
 public:
  explicit DrawFrom(const at::Generator& generator) : ours_(at::check_generator<at::CPUGeneratorImpl>(generator)) { swap(); }
  ~DrawFrom() { swap(); }
  DrawFrom(const DrawFrom&) = delete;
  DrawFrom& operator=(const DrawFrom&) = delete;

 private:
  void swap() {
    auto* host = at::check_generator<at::CPUGeneratorImpl>(at::detail::getDefaultCPUGenerator());
    std::scoped_lock lock(host->mutex_, ours_->mutex_);
    const auto engine = host->engine();
    const auto floats = host->next_float_normal_sample();
    const auto doubles = host->next_double_normal_sample();
    host->set_engine(ours_->engine());
    host->set_next_float_normal_sample(ours_->next_float_normal_sample());
    host->set_next_double_normal_sample(ours_->next_double_normal_sample());
    ours_->set_engine(engine);
    ours_->set_next_float_normal_sample(floats);
    ours_->set_next_double_normal_sample(doubles);
  }
  at::CPUGeneratorImpl* ours_;
};

class Call {
 public:
  Call(const Operator& op, const c10::OperatorHandle& handle, Stack* stack)
      : op_(op), handle_(handle), schema_(handle.schema()), stack_(stack) {}

  void run() {
    const Time begun = host_clock().now();
    const auto given = torch::jit::last(*stack_, schema_.arguments().size());
    device_ = target_of(schema_, given);
    c10::DeviceGuard guard(device_);
    if (op_.is_indexing) bring_indices();
    std::vector<c10::IValue> arguments(given.begin(), given.end());
    if (op_.name == "convolution") check_convolution(arguments);
    check_devices(op_, schema_, arguments);
    replace_arguments();
    compute();
    if (op_.is_mutating) aliases_.write_back();
    replace_results();
    if (op_.is_view) return;
    launch(arguments, begun);
  }

 private:
  // Indices may be on the host; like CUDA's kernels, this copies them, which synchronises.
  void bring_indices() {
    auto& value = torch::jit::peek(*stack_, 1, schema_.arguments().size());
    c10::List<std::optional<at::Tensor>> brought;
    for (const std::optional<at::Tensor>& each : value.toOptionalTensorList()) {
      const bool away = each.has_value() && each->defined() && each->is_cpu();
      brought.push_back(away ? std::optional<at::Tensor>(each->to(device_)) : each);
    }
    value = std::move(brought);
  }

  void replace_arguments() {
    const size_t count = schema_.arguments().size();
    for (size_t i = 0; i < count; i++) {
      auto& value = torch::jit::peek(*stack_, i, count);
      if (value.isTensor()) {
        value = aliases_.of(value.toTensor());
      } else if (value.isTensorList()) {
        c10::List<at::Tensor> replaced;
        for (const at::Tensor& each : value.toTensorList()) replaced.push_back(aliases_.of(each));
        value = std::move(replaced);
      } else if (value.isOptionalTensorList()) {
        c10::List<std::optional<at::Tensor>> replaced;
        for (const std::optional<at::Tensor>& each : value.toOptionalTensorList()) {
          replaced.push_back(each.has_value() ? std::optional<at::Tensor>(aliases_.of(*each)) : each);
        }
        value = std::move(replaced);
      } else if (value.isDevice() && value.toDevice().type() == kSim) {
        value = c10::Device(c10::kCPU);
      } else {
        replace_generator(value, *schema_.arguments()[i].type());
      }
    }
  }

  void replace_generator(c10::IValue& value, const c10::Type& type) {
    if (value.isGenerator()) {
      value = host_generator(value.toGenerator());
    } else if (value.isNone() && type.kind() == c10::TypeKind::OptionalType &&
        type.containedType(0)->kind() == c10::TypeKind::GeneratorType) {
      value = host_generator(default_generator(device_.index()));
    }
  }

  void compute() {
    // CPU autocast, if enabled, must not apply to the aliases.
    c10::impl::ExcludeDispatchKeyGuard without_autocast(c10::autocast_dispatch_keyset);
    std::optional<DrawFrom> draw;
    if (op_.is_random) draw.emplace(host_generator(default_generator(device_.index())));
    handle_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack_);
  }

  void replace_results() {
    const size_t count = schema_.returns().size();
    for (size_t i = 0; i < count; i++) {
      auto& value = torch::jit::peek(*stack_, i, count);
      if (value.isTensor()) {
        value = aliases_.simulated(value.toTensor());
      } else if (value.isTensorList()) {
        c10::List<at::Tensor> replaced;
        for (const at::Tensor& each : value.toTensorList()) replaced.push_back(aliases_.simulated(each));
        value = std::move(replaced);
      }
    }
  }

  void launch(c10::ArrayRef<c10::IValue> arguments, Time begun) {
    const auto results = torch::jit::last(*stack_, schema_.returns().size());
    const int64_t flops = op_.flops(arguments, results);
    const int64_t bytes = bytes_in(schema_, arguments) + bytes_of_new(results, op_.is_mutating);
    const auto stream = current_stream(device_.index());
    const auto slot = enqueue(stream, costs().of_kernel(op_.name, flops, bytes), begun);
    note_kernel(device_.index(), slot.start, slot.end);
    const Kernel kernel{0, op_.name, device_.index(), stream.id(), slot.launched, slot.start, slot.end, flops, bytes};
    ledger().add(ledger().kernels, kernel);
    trace(kernel);
    if (op_.synchronises(arguments)) synchronise(op_.name, device_.index(), slot.end);
  }

  const Operator& op_;
  const c10::OperatorHandle& handle_;
  const c10::FunctionSchema& schema_;
  Stack* stack_;
  c10::Device device_{kSim, 0};
  Aliases aliases_;
};

// Between devices _foreach_copy_ is one copy per tensor; within one it is a single kernel.
bool copies_between_devices(const Operator& op, const c10::FunctionSchema& schema, const Stack& stack) {
  if (op.name != "_foreach_copy_") return false;
  std::optional<c10::Device> common;
  bool differs = false;
  each_tensor(schema, torch::jit::last(stack, schema.arguments().size()), [&](const at::Tensor& tensor, const std::string&) {
    differs |= common.has_value() && tensor.device() != *common;
    common = tensor.device();
  });
  return differs;
}

void copy_each(Stack* stack) {
  const bool non_blocking = torch::jit::pop(*stack).toBool();
  const auto from = torch::jit::pop(*stack).toTensorList();
  const auto to = torch::jit::pop(*stack).toTensorList();
  for (size_t i = 0; i < to.size(); i++) at::Tensor(to[i]).copy_(from[i], non_blocking);
}

struct KernelFunctor final : c10::OperatorKernel {
  explicit KernelFunctor(const c10::OperatorHandle& handle) : op(handle) {}
  void operator()(const c10::OperatorHandle& handle, c10::DispatchKeySet, Stack* stack) {
    if (copies_between_devices(op, handle.schema(), *stack)) {
      copy_each(stack);
    } else {
      Call(op, handle, stack).run();
    }
  }
  Operator op;
};

// For operators of other libraries, such as torchvision.
void fallback(const c10::OperatorHandle& handle, Stack* stack) { Call(Operator(handle), handle, stack).run(); }

// Composite for torch, but a single kernel or library call on CUDA.
bool is_one_kernel(const std::string& name) {
  return name.rfind("aten::_foreach_", 0) == 0 || name == "aten::convolution" || name == "aten::convolution_backward";
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>()); }

} // namespace

void register_kernels() {
  static auto* library = new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& name : dispatcher.getAllOpNames()) {
    if (name.name.rfind("aten::", 0) != 0) continue;
    const auto handle = dispatcher.findOp(name);
    if (!handle.has_value() || handle->hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1)) continue;
    if (!handle->hasKernelForDispatchKey(c10::DispatchKey::CPU) && !is_one_kernel(name.name)) continue;
    const auto full = name.name + (name.overload_name.empty() ? "" : "." + name.overload_name);
    library->impl(full.c_str(), torch::CppFunction::makeFromBoxedKernel(
        c10::BoxedKernel::makeFromFunctor(std::make_unique<KernelFunctor>(*handle))));
  }
}

} // namespace sim
