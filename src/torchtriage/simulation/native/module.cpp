// The Python bindings. Records are plain tuples, with the fields of simulation/ledger.py in order.
#include "device.h"
#include "generator.h"
#include "hooks.h"
#include "kernels.h"
#include "ledger.h"
#include "memory.h"
#include "presented.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/utils/pybind.h>

namespace py = pybind11;

namespace sim {

void bind_collectives(py::module_& module);

namespace {

c10::Stream stream_of(int64_t device, int64_t stream) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kSim, c10::DeviceIndex(device)), stream);
}

Transfer transfer(const std::tuple<Time, double>& given) { return {std::get<0>(given), std::get<1>(given)}; }

void set_costs(const py::dict& given) {
  auto& kept = costs();
  kept.launch = given["launch"].cast<Time>();
  kept.kernel = given["kernel"].cast<Time>();
  kept.segment = given["segment"].cast<Time>();
  kept.staged = given["staged"].cast<int64_t>();
  kept.queue = given["queue"].cast<int64_t>();
  kept.flops_per_second = given["flops_per_second"].cast<double>();
  kept.bytes_per_second = given["bytes_per_second"].cast<double>();
  kept.kernels = given["kernels"].cast<std::unordered_map<std::string, Time>>();
  kept.pinned = transfer(given["pinned"].cast<std::tuple<Time, double>>());
  kept.pageable = transfer(given["pageable"].cast<std::tuple<Time, double>>());
  kept.peer = transfer(given["peer"].cast<std::tuple<Time, double>>());
  kept.collective = transfer(given["collective"].cast<std::tuple<Time, double>>());
}

py::tuple as_tuple(const Kernel& each) {
  return py::make_tuple(each.step, each.name, int(each.device), each.stream, each.launched, each.start, each.end, each.flops,
      each.bytes);
}
py::tuple as_tuple(const Copy& each) {
  return py::make_tuple(each.step, each.kind, int(each.device), each.stream, each.launched, each.start, each.end, each.bytes,
      each.pinned, each.non_blocking, each.place.file, each.place.line);
}
py::tuple as_tuple(const Synchronisation& each) {
  return py::make_tuple(each.step, each.call, int(each.device), each.begun, each.ended, each.place.file, each.place.line);
}
py::tuple as_tuple(const Collective& each) {
  return py::make_tuple(each.step, each.name, int(each.device), each.ranks, each.bytes, each.launched, each.ready, each.start,
      each.end);
}
py::tuple as_tuple(const Allocation& each) {
  return py::make_tuple(each.step, each.action, int(each.device), each.stream, each.time, each.address, each.bytes,
      each.allocated, each.reserved, py::tuple(py::cast(each.frames)));
}

// The total count, and the records that are kept. The ledger's lock is released before Python objects are made: a thread
// that waits for it may hold the GIL.
template <class Record>
py::tuple as_rows(Records<Record>& records) {
  std::vector<Record> copied;
  int64_t count = 0;
  {
    std::lock_guard<std::mutex> lock(ledger().mutex);
    copied.assign(records.kept.begin(), records.kept.end());
    count = records.count;
  }
  py::list made;
  for (const auto& each : copied) made.append(as_tuple(each));
  return py::make_tuple(count, made);
}

py::list segments() {
  py::list made;
  for (const auto& segment : memory_segments()) {
    py::list blocks;
    for (const auto& block : segment.blocks) {
      blocks.append(py::make_tuple(block.size, block.requested, block.is_allocated, block.is_active));
    }
    made.append(py::make_tuple(
        int(segment.device), segment.stream, segment.address, segment.size, segment.is_large, blocks));
  }
  return made;
}

py::tuple highest(int device) {
  const auto found = peak(c10::DeviceIndex(device));
  return py::make_tuple(found.bytes, found.reserved, found.step, found.place.file, found.place.line, found.holders);
}

// What `tensor.data = other` does for devices that torch knows: the tensor stays the same object, so that an optimizer
// that was given it before `module.to(device)` goes on with it. Torch refuses that for devices of others.
void set_data(const at::Tensor& self, const at::Tensor& other) {
  if (auto* meta = torch::autograd::impl::get_autograd_meta(self)) {
    std::lock_guard<std::mutex> lock(meta->mutex_);
    meta->grad_accumulator_.reset();
  }
  self.unsafeGetTensorImpl()->shallow_copy_from(other.getIntrusivePtr());
}

void reset() {
  ledger().clear();
  reset_streams();
  host_clock().set(0);
  reset_memory();
}

} // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("register_backend", [] {
    register_hooks();
    register_kernels();
  });
  m.def("set_device_count", [](int count) { set_device_count(c10::DeviceIndex(count)); });
  m.def("device_count", [] { return int(device_count()); });
  m.def("set_capacity", &set_capacity);
  m.def("set_held_by_others", &hold_elsewhere);
  m.def("set_costs", &set_costs);
  m.def("set_real_time", [](bool real) { host_clock().use_real_time(real); });
  m.def("set_frames", &keep_frames);
  m.def("set_records", [](int64_t most) { ledger().keep(most); });
  m.def("pause_records", [](bool pause) { return std::exchange(is_paused, pause); });
  m.def("skip_files_under", &skip_files_under);
  m.def("is_forked_child", &is_forked_child);
  m.def("now", [] { return host_clock().now(); });
  m.def("spend", [](Time duration) { host_clock().spend(host_clock().now(), duration); });
  m.def("end_of_stream", [](int64_t device, int64_t stream) { return end_of(stream_of(device, stream)); });
  m.def("end_of_device", [](int64_t device) { return end_of_device(c10::DeviceIndex(device)); });
  m.def("worked", [](int64_t device) { return worked(c10::DeviceIndex(device)); });
  m.def("step", [] { return ledger().step(); });
  m.def("next_step", [] { return ledger().next_step(); });
  m.def("reset", &reset);
  m.def("kernels", [] { return as_rows(ledger().kernels); });
  m.def("copies", [] { return as_rows(ledger().copies); });
  m.def("synchronisations", [] { return as_rows(ledger().synchronisations); });
  m.def("collectives", [] { return as_rows(ledger().collectives); });
  m.def("allocations", [] { return as_rows(ledger().allocations); });
  m.def("set_data", &set_data);
  m.def("memory_segments", &segments);
  m.def("peak", &highest);
  m.def("hold", &hold);
  m.def("keep_peak_lines", &keep_peak_lines);
  m.def("present_as_cuda", &present_as_cuda);
  m.def("current_device", [] { return int(current_device()); });
  m.def("default_generator", [](int device) { return default_generator(c10::DeviceIndex(device)); });
  m.def("seed_all", [](uint64_t seed) {
    for (int device = 0; device < device_count(); device++) {
      auto generator = default_generator(c10::DeviceIndex(device));
      generator.set_current_seed(seed);
    }
  });
  bind_collectives(m);
}

} // namespace sim
