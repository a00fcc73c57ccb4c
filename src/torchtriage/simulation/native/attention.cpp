// scaled_dot_product_attention selects its kernel by device; this selects the one for the CPU, for the same numbers.
#include "alias.h"

#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_fused_sdp_choice_native.h>
#include <torch/library.h>

namespace sim {

namespace {

int64_t choice(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const std::optional<at::Tensor>& mask,
    double dropout, bool causal, std::optional<double> scale, bool grouped) {
  Aliases aliases;
  const auto host_mask = mask.has_value() ? std::optional<at::Tensor>(aliases.of(*mask)) : mask;
  return at::native::_fused_sdp_choice_cpp(
      aliases.of(query), aliases.of(key), aliases.of(value), host_mask, dropout, causal, scale, grouped);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("_fused_sdp_choice", &choice); }

} // namespace

} // namespace sim

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &sim::choice);
} // namespace at::native
