// What SyncBatchNorm is made of, which torch implements for accelerators only. They are added as CPU kernels. Channels are
// the second dimension; statistics are those of CUDA: means, and 1 / sqrt(biased variance + eps).
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <vector>

namespace sim {

namespace {

using at::Tensor;
using Optional = std::optional<Tensor>;

std::vector<int64_t> all_but_channels(const Tensor& input) {
  std::vector<int64_t> dims{0};
  for (int64_t dim = 2; dim < input.dim(); dim++) dims.push_back(dim);
  return dims;
}

// VALUES, one for each channel, in the shape in which they broadcast over INPUT.
Tensor over(const Tensor& input, const Tensor& values) {
  std::vector<int64_t> shape(input.dim(), 1);
  shape[1] = -1;
  return values.view(shape);
}

// Half precision is summed in float32, as on CUDA.
Tensor widened(const Tensor& tensor) { return tensor.scalar_type() == at::kDouble ? tensor : tensor.to(at::kFloat); }

Tensor scale_of(const Tensor& invstd, const Optional& weight) {
  return weight.has_value() && weight->defined() ? invstd * *weight : invstd;
}

std::tuple<Tensor, Tensor> stats(const Tensor& input, double eps) {
  const auto values = widened(input);
  const auto dims = all_but_channels(input);
  return {values.mean(dims), (values.var(dims, /*unbiased=*/false) + eps).rsqrt()};
}

// MEANS, INVSTDS: ranks × channels. The variance of the whole is that within the parts and that of their means.
std::tuple<Tensor, Tensor> gather_stats(const Tensor&, const Tensor& means, const Tensor& invstds,
    const Optional& running_mean, const Optional& running_var, double momentum, double eps, const Tensor& counts) {
  const auto parts = counts.to(means.scalar_type()).unsqueeze(1);
  const auto total = parts.sum();
  const auto mean = (parts * means).sum(0) / total;
  const auto variance = (parts * (invstds.pow(-2) - eps + (means - mean).square())).sum(0) / total;
  if (running_mean.has_value() && running_mean->defined()) running_mean->mul_(1 - momentum).add_(mean, momentum);
  if (running_var.has_value() && running_var->defined()) {
    running_var->mul_(1 - momentum).add_(variance * (total / (total - 1)), momentum);
  }
  return {mean, (variance + eps).rsqrt()};
}

Tensor normalise(const Tensor& input, const Optional& weight, const Optional& bias, const Tensor& mean,
    const Tensor& invstd, double) {
  auto result = (widened(input) - over(input, mean)) * over(input, scale_of(invstd, weight));
  if (bias.has_value() && bias->defined()) result = result + over(input, *bias);
  return result.to(input.scalar_type());
}

std::tuple<Tensor, Tensor, Tensor, Tensor> backward_reduce(const Tensor& grad, const Tensor& input, const Tensor& mean,
    const Tensor& invstd, const Optional& weight, bool, bool of_weight, bool of_bias) {
  const auto dims = all_but_channels(input);
  const auto sum = widened(grad).sum(dims);
  const auto with_deviation = (widened(grad) * (widened(input) - over(input, mean))).sum(dims);
  const auto dtype = weight.has_value() && weight->defined() ? weight->scalar_type() : sum.scalar_type();
  return {sum, with_deviation, of_weight ? (with_deviation * invstd).to(dtype) : Tensor(),
      of_bias ? sum.to(dtype) : Tensor()};
}

Tensor backward_each(const Tensor& grad, const Tensor& input, const Tensor& mean, const Tensor& invstd,
    const Optional& weight, const Tensor& sum, const Tensor& with_deviation, const Tensor& counts) {
  const auto total = counts.sum().to(sum.scalar_type());
  const auto slope = with_deviation / total * invstd.square();
  const auto centred = widened(grad) - over(input, sum / total) - (widened(input) - over(input, mean)) * over(input, slope);
  return (centred * over(input, scale_of(invstd, weight))).to(input.scalar_type());
}

TORCH_LIBRARY_IMPL(aten, CPU, m) {
  m.impl("batch_norm_stats", &stats);
  m.impl("batch_norm_gather_stats_with_counts", &gather_stats);
  m.impl("batch_norm_elemt", &normalise);
  m.impl("batch_norm_backward_reduce", &backward_reduce);
  m.impl("batch_norm_backward_elemt", &backward_each);
}

} // namespace

} // namespace sim
