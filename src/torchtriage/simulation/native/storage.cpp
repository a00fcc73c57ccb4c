// Creating, viewing and copying tensors: the operators that every backend implements itself.
#include "alias.h"
#include "device.h"
#include "hooks.h"
#include "ledger.h"
#include "memory.h"
#include "profiler.h"

#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/is_set_to_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

namespace sim {

namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

c10::Device device_or_current(std::optional<c10::Device> device) {
  if (device.has_value() && device->has_index()) {
    TORCH_CHECK(device->index() < device_count(), "there is no device ", *device);
    return *device;
  }
  return {kSim, current_device()};
}

void check_options(std::optional<c10::Layout> layout, std::optional<bool> pin_memory) {
  TORCH_CHECK(c10::layout_or_default(layout) == c10::kStrided, "sim has dense tensors only");
  TORCH_CHECK(!c10::pinned_memory_or_default(pin_memory), "Only dense CPU tensors can be pinned");
}

at::Tensor empty(c10::SymIntArrayRef size, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
    std::optional<c10::Device> device, std::optional<bool> pin_memory, std::optional<c10::MemoryFormat> format) {
  check_options(layout, pin_memory);
  c10::DeviceGuard guard(device_or_current(device));
  return at::detail::empty_generic(
      C10_AS_INTARRAYREF_SLOW(size), &device_allocator(), kKeys, c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride, std::optional<c10::ScalarType> dtype,
    std::optional<c10::Layout> layout, std::optional<c10::Device> device, std::optional<bool> pin_memory) {
  check_options(layout, pin_memory);
  c10::DeviceGuard guard(device_or_current(device));
  return at::detail::empty_strided_generic(C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride),
      &device_allocator(), kKeys, c10::dtype_or_default(dtype));
}

at::Tensor as_strided(const at::Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
    std::optional<c10::SymInt> offset) {
  const auto from = offset.has_value() ? std::optional<int64_t>(offset->expect_int()) : std::nullopt;
  return at::native::as_strided_tensorimpl(self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), from);
}

at::Tensor view(const at::Tensor& self, c10::SymIntArrayRef size) {
  return at::native::view(self, C10_AS_INTARRAYREF_SLOW(size));
}

at::Tensor reshape_alias(const at::Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
  return at::native::_reshape_alias(self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride));
}

void grow_to(const at::Tensor& self) {
  auto* impl = self.unsafeGetTensorImpl();
  const auto bytes = at::detail::computeStorageNbytes(
      self.sizes(), self.strides(), self.dtype().itemsize(), impl->storage_offset());
  if (self.numel() > 0 && bytes > self.storage().nbytes()) resize_storage(self.storage(), bytes);
}

const at::Tensor& resize(const at::Tensor& self, c10::SymIntArrayRef size, std::optional<c10::MemoryFormat> format) {
  const auto wanted = C10_AS_INTARRAYREF_SLOW(size);
  if (self.sizes() == wanted) return self;
  self.unsafeGetTensorImpl()->set_sizes_contiguous(wanted);
  if (format.has_value()) self.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  grow_to(self);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage storage, c10::SymInt offset, c10::SymIntArrayRef size,
    c10::SymIntArrayRef stride) {
  at::native::checkSetStorage(self, storage, offset, size, stride, /*check_offset_in_bounds=*/false);
  auto* impl = self.unsafeGetTensorImpl();
  const auto sizes = C10_AS_INTARRAYREF_SLOW(size);
  impl->set_storage_offset(offset.expect_int());
  if (stride.empty()) {
    impl->set_sizes_contiguous(sizes);
  } else {
    impl->set_sizes_and_strides(sizes, C10_AS_INTARRAYREF_SLOW(stride));
  }
  grow_to(self);
  return self;
}

at::Tensor& set_whole_storage(at::Tensor& self, at::Storage storage) {
  const auto count = int64_t(storage.nbytes() / self.dtype().itemsize());
  return set_storage(self, std::move(storage), 0, {c10::SymInt(count)}, {});
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) { return at::native::set_tensor_(self, source); }

at::Tensor& set_nothing(at::Tensor& self) {
  c10::DeviceGuard guard(self.device());
  at::Storage none(at::Storage::use_byte_size_t(), 0, &device_allocator(), true);
  return set_storage(self, std::move(none), 0, {c10::SymInt(0)}, {});
}

void copy_values(const at::Tensor& from, const at::Tensor& to) {
  Aliases aliases;
  aliases.of(to).copy_(aliases.of(from));
}

void note_copy(const char* kind, c10::Stream stream, Slot slot, int64_t bytes, bool pinned, bool non_blocking, Place place) {
  const Copy copy{0, kind, stream.device_index(), stream.id(), slot.launched, slot.start, slot.end, bytes, pinned,
      non_blocking, std::move(place)};
  ledger().add(ledger().copies, copy);
  trace(copy);
}

// Within a device a copy is an ordinary kernel.
void copy_within(const at::Tensor& from, const at::Tensor& to, Time begun) {
  const auto stream = current_stream(to.device().index());
  const auto bytes = int64_t(from.nbytes() + to.nbytes());
  const auto slot = enqueue(stream, costs().of_kernel("copy_", 0, bytes), begun);
  note_kernel(stream.device_index(), slot.start, slot.end);
  const Kernel kernel{0, "copy_", stream.device_index(), stream.id(), slot.launched, slot.start, slot.end, 0, bytes};
  ledger().add(ledger().kernels, kernel);
  trace(kernel);
}

// As on CUDA: the copy runs on the source's stream, after the work of the target's stream, which then waits for it.
void copy_across(const at::Tensor& from, const at::Tensor& to, Time begun) {
  const auto source = current_stream(from.device().index());
  const auto target = current_stream(to.device().index());
  const auto bytes = int64_t(to.nbytes());
  delay_stream(source, end_of(target));
  const auto slot = enqueue(source, costs().peer.of(bytes), begun);
  delay_stream(target, slot.end);
  note_copy("device-to-device", source, slot, bytes, false, true, calling_line());
}

// The host waits unless the copy is non-blocking and host memory is pinned. Pageable memory goes through a staging buffer,
// for which the driver waits; small amounts are sent along with the launch.
void copy_with_host(const at::Tensor& from, const at::Tensor& to, bool non_blocking, Time begun) {
  const bool to_host = to.is_cpu();
  const auto& host = to_host ? to : from;
  const auto stream = current_stream((to_host ? from : to).device().index());
  const bool pinned = is_pinned(host.storage().data());
  const auto bytes = int64_t(to.nbytes());
  const auto slot = enqueue(stream, (pinned ? costs().pinned : costs().pageable).of(bytes), begun);
  note_copy(to_host ? "device-to-host" : "host-to-device", stream, slot, bytes, pinned, non_blocking, calling_line());
  const bool staged = !to_host && bytes <= costs().staged;
  if (!non_blocking || !(pinned || staged)) synchronise("copy_", stream.device_index(), slot.end);
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  const Time begun = host_clock().now();
  const auto supported = [](const at::Tensor& each) { return each.is_cpu() || is_simulated(each); };
  TORCH_CHECK(supported(from) && supported(to), "cannot copy from ", from.device(), " to ", to.device());
  c10::DeviceGuard guard(is_simulated(to) ? to.device() : from.device());
  if (to.numel() == 0) return to;
  copy_values(from, to);
  if (!is_simulated(from) || !is_simulated(to)) {
    copy_with_host(from, to, non_blocking, begun);
  } else if (from.device() == to.device()) {
    copy_within(from, to, begun);
  } else {
    copy_across(from, to, begun);
  }
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  at::native::resize_output(to, from.sizes());
  return copy_from(from, to, false);
}

// torch reads the number through a pinned buffer of its own.
at::Scalar item(const at::Tensor& self) {
  const Time begun = host_clock().now();
  const auto stream = current_stream(self.device().index());
  const auto bytes = int64_t(self.dtype().itemsize());
  const auto slot = enqueue(stream, costs().pinned.of(bytes), begun);
  note_copy("device-to-host", stream, slot, bytes, true, false, calling_line());
  synchronise("item", stream.device_index(), slot.end);
  Aliases aliases;
  return aliases.of(self).item();
}

void record_stream(at::Tensor& self, c10::Stream stream) {
  device_allocator().recordStream(self.storage().data_ptr(), stream);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("as_strided", &as_strided);
  m.impl("view", &view);
  m.impl("_reshape_alias", &reshape_alias);
  m.impl("unfold", &at::native::unfold);
  m.impl("resize_", &resize);
  m.impl("set_.source_Storage", &set_whole_storage);
  m.impl("set_.source_Storage_storage_offset", &set_storage);
  m.impl("set_.source_Tensor", &set_tensor);
  m.impl("set_", &set_nothing);
  m.impl("is_set_to", &at::native::is_set_to);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("_local_scalar_dense", &item);
  m.impl("record_stream", &record_stream);
}

// Lazy conjugation and negation are resolved by a copy, so the copy itself must accept them unresolved.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, Negative, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }

} // namespace

} // namespace sim
