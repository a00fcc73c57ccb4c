// torch.autocast("sim"), with the operator lists that torch uses for CUDA.
#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

namespace sim {

namespace {

using namespace at; // the lists of torch use unqualified names

// Asks the kernel that torch itself registers for autocast on CUDA, also in builds without CUDA: it raises the error.
Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const std::optional<Tensor>& weight, int64_t reduction) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("aten::binary_cross_entropy", "")
                             .typed<Tensor(const Tensor&, const Tensor&, const std::optional<Tensor>&, int64_t)>();
  return op.redispatch(c10::DispatchKeySet(c10::DispatchKey::AutocastCUDA), input, target, weight, reduction);
}

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define FULL(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define FULL_BY_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define WIDEST(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_LOWER_PRECISION_FP(LOWER)
  AT_FORALL_FP32(FULL)
  AT_FORALL_FP32_SET_OPT_DTYPE(FULL_BY_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(WIDEST)
  KERNEL_PRIVATEUSEONE(cat, promote)
  KERNEL_PRIVATEUSEONE(stack, promote)
  m.impl("binary_cross_entropy", &binary_cross_entropy);
}

} // namespace

} // namespace sim
