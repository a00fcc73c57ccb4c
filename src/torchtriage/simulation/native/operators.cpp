#include "operators.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <unordered_set>

namespace sim {

namespace {

using Values = c10::ArrayRef<c10::IValue>;

// On CUDA these copy a count or a number to the host before they return.
const std::unordered_set<std::string> kSynchronising = {
    "nonzero", "masked_select", "_unique", "_unique2", "unique_dim", "unique_consecutive", "unique_dim_consecutive",
    "repeat_interleave", "bincount", "equal", "linalg_eig", "_linalg_eigvals", "embedding_renorm_"};

// Operators without the tag "pointwise" that accept host scalars (device_check: NoCheck in native_functions.yaml).
const std::unordered_set<std::string> kMixingHostScalars = {
    "index", "_index_put_impl_", "index_put_", "fill_", "floor_divide", "floor_divide_", "binary_cross_entropy", "where",
    "value_selecting_reduction_backward", "rsub", "heaviside_", "masked_fill", "masked_fill_", "index_fill_", "eq_",
    "ne_", "ge_", "le_", "gt_", "lt_", "bernoulli_", "mse_loss", "smooth_l1_loss", "is_set_to"};

bool starts_with(const std::string& text, const char* prefix) { return text.rfind(prefix, 0) == 0; }

bool is_mask(const at::Tensor& tensor) {
  return tensor.defined() && (tensor.scalar_type() == at::kBool || tensor.scalar_type() == at::kByte);
}

// 2 n k m for the matrices, or batches of matrices, in arguments LEFT and RIGHT.
int64_t product(Values arguments, size_t left, size_t right) {
  const auto a = arguments[left].toTensor();
  const auto b = arguments[right].toTensor();
  return b.dim() == 0 ? 0 : 2 * a.numel() * b.size(-1);
}

// Each output (if transposed, each input) is multiplied with the weights of one channel.
int64_t convolution(const at::Tensor& result, const at::Tensor& input, const at::Tensor& weight, bool transposed) {
  if (weight.size(0) == 0) return 0;
  return 2 * (transposed ? input : result).numel() * (weight.numel() / weight.size(0));
}

// Two products: queries with keys, and weights with values.
int64_t attention(const at::Tensor& query, const at::Tensor& key) { return 4 * query.numel() * key.size(-2); }

using Flops = std::function<int64_t(Values, Values)>;
const std::unordered_map<std::string, Flops> kFlops = {
    {"mm", [](Values a, Values) { return product(a, 0, 1); }},
    {"bmm", [](Values a, Values) { return product(a, 0, 1); }},
    {"addmm", [](Values a, Values) { return product(a, 1, 2); }},
    {"baddbmm", [](Values a, Values) { return product(a, 1, 2); }},
    {"_addmm_activation", [](Values a, Values) { return product(a, 1, 2); }},
    {"convolution",
        [](Values a, Values r) { return convolution(r[0].toTensor(), a[0].toTensor(), a[1].toTensor(), a[6].toBool()); }},
    {"convolution_backward",
        [](Values a, Values) {
          const auto mask = a[10].toBoolList();
          return (int64_t(mask[0]) + int64_t(mask[1])) *
              convolution(a[0].toTensor(), a[1].toTensor(), a[2].toTensor(), a[7].toBool());
        }},
    {"_scaled_dot_product_flash_attention_for_cpu",
        [](Values a, Values) { return attention(a[0].toTensor(), a[1].toTensor()); }},
    // Five products, one of them recomputed from the forward pass.
    {"_scaled_dot_product_flash_attention_for_cpu_backward",
        [](Values a, Values) { return attention(a[1].toTensor(), a[2].toTensor()) * 5 / 2; }},
};

} // namespace

Operator::Operator(const c10::OperatorHandle& handle) {
  const auto& schema = handle.schema();
  name = starts_with(schema.name(), "aten::") ? schema.name().substr(6) : schema.name();
  bool has_generator = false;
  for (const auto& argument : schema.arguments()) {
    const auto* alias = argument.alias_info();
    is_mutating |= alias != nullptr && alias->isWrite();
    has_generator |= argument.type()->str().find("Generator") != std::string::npos;
  }
  is_view = !schema.returns().empty() && std::all_of(schema.returns().begin(), schema.returns().end(), [](const auto& each) {
    return each.alias_info() != nullptr && !each.alias_info()->isWrite();
  });
  is_random = !has_generator && handle.hasTag(at::Tag::nondeterministic_seeded);
  can_mix_host_scalars = handle.hasTag(at::Tag::pointwise) || kMixingHostScalars.count(name) > 0 ||
      starts_with(name, "_foreach_") || starts_with(name, "_fused_");
  is_indexing = name == "index" || name == "_index_put_impl_";
  is_synchronising = kSynchronising.count(name) > 0;
}

bool Operator::synchronises(Values arguments) const {
  if (name == "repeat_interleave") return arguments.back().isNone(); // output_size was not given
  if (is_synchronising) return true;
  if (!is_indexing) return false;
  const auto indices = arguments[1].toOptionalTensorList();
  const bool masked = std::any_of(indices.begin(), indices.end(),
      [](const std::optional<at::Tensor>& each) { return each.has_value() && is_mask(*each); });
  if (!masked || name == "index") return masked;
  // Assigning a single value to a mask is a fill, which needs no shape.
  return arguments[3].toBool() || arguments[2].toTensor().numel() != 1;
}

int64_t Operator::flops(Values arguments, Values results) const {
  const auto found = kFlops.find(name);
  return found == kFlops.end() ? 0 : found->second(arguments, results);
}

} // namespace sim
