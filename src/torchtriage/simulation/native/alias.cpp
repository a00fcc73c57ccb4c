#include "alias.h"

#include "device.h"
#include "hooks.h"
#include "memory.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/TensorBase.h>
#include <c10/core/CPUAllocator.h>

#include <cstring>

namespace sim {

namespace {

at::Tensor tensor_over(c10::Storage storage, c10::DispatchKey key, const at::Tensor& like) {
  auto made = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(key), like.dtype());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
  if (like.is_conj()) made._set_conj(true);
  if (like.is_neg()) made._set_neg(true);
  return made;
}

// Keeps the strides of dense results, such as channels_last.
at::Tensor copy_to_device(const at::Tensor& result) {
  const at::Tensor from = result.is_non_overlapping_and_dense() ? result : result.contiguous();
  at::Tensor made = at::detail::empty_strided_generic(from.sizes(), from.strides(), &device_allocator(),
      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), from.scalar_type());
  if (from.nbytes() > 0) std::memcpy(made.storage().mutable_data(), from.const_data_ptr(), from.nbytes());
  if (from.is_conj()) made._set_conj(true);
  if (from.is_neg()) made._set_neg(true);
  return made;
}

} // namespace

c10::Storage Aliases::storage_of(const at::Tensor& tensor) {
  const auto& storage = tensor.storage();
  for (const auto& pair : storages_) {
    if (pair.simulated.unsafeGetStorageImpl() == storage.unsafeGetStorageImpl()) return pair.alias;
  }
  void* data = storage.mutable_data();
  // It does not own the memory. If an out= argument has to grow it gets CPU memory, which write_back() copies.
  c10::Storage alias(c10::Storage::use_byte_size_t(), storage.nbytes(), c10::DataPtr(data, c10::Device(c10::kCPU)),
      c10::GetCPUAllocator(), /*resizable=*/true);
  storages_.push_back({storage, alias, data});
  return alias;
}

at::Tensor Aliases::of(const at::Tensor& tensor) {
  if (!is_simulated(tensor)) return tensor;
  for (const auto& pair : tensors_) {
    if (pair.simulated.is_same(tensor)) return pair.alias;
  }
  auto alias = tensor_over(storage_of(tensor), c10::DispatchKey::CPU, tensor);
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) alias.unsafeGetTensorImpl()->set_wrapped_number(true);
  tensors_.push_back({tensor, alias});
  return alias;
}

at::Tensor Aliases::simulated(const at::Tensor& result) {
  if (!result.defined() || !result.is_cpu()) return result;
  TORCH_CHECK(result.layout() == c10::kStrided, "sim has dense tensors only, and this operator returns a ",
      result.layout(), " tensor");
  for (const auto& pair : tensors_) {
    if (pair.alias.is_same(result)) return pair.simulated;
  }
  for (const auto& pair : storages_) {
    if (pair.alias.unsafeGetStorageImpl() == result.storage().unsafeGetStorageImpl()) {
      return tensor_over(pair.simulated, c10::DispatchKey::PrivateUse1, result);
    }
  }
  return copy_to_device(result);
}

void Aliases::write_back() {
  for (const auto& pair : storages_) {
    if (pair.alias.data() == pair.data) continue;
    resize_storage(pair.simulated, pair.alias.nbytes());
    std::memcpy(pair.simulated.mutable_data(), pair.alias.data(), pair.alias.nbytes());
  }
  for (const auto& [simulated, alias] : tensors_) {
    if (simulated.sizes() == alias.sizes() && simulated.strides() == alias.strides()) continue;
    simulated.unsafeGetTensorImpl()->set_sizes_and_strides(alias.sizes(), alias.strides(), alias.storage_offset());
  }
}

} // namespace sim
