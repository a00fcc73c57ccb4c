// CPU tensors over the memory of simulated tensors, so that CPU kernels can compute on them without a copy.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace sim {

inline bool is_simulated(const at::Tensor& tensor) { return tensor.defined() && tensor.is_privateuseone(); }

// The aliases of one call. Tensors that share a storage have aliases that share one, so that overlap checks still work.
class Aliases {
 public:
  at::Tensor of(const at::Tensor& tensor);

  // Converts a result of a CPU kernel: to the argument itself, a view of an argument, or a new tensor on the current
  // device.
  at::Tensor simulated(const at::Tensor& result);

  // Applies to the arguments what the kernel did to the shape or storage of their aliases (out=).
  void write_back();

 private:
  struct Pair {
    at::Tensor simulated, alias;
  };
  struct StoragePair {
    c10::Storage simulated, alias;
    const void* data;
  };
  c10::Storage storage_of(const at::Tensor& tensor);

  std::vector<Pair> tensors_;
  std::vector<StoragePair> storages_;
};

} // namespace sim
