// Generators of the devices draw the same numbers as a CPU generator with the same seed.
#include "generator.h"

#include "device.h"

#include <ATen/CPUGeneratorImpl.h>

#include <array>

namespace sim {

namespace {

struct SimGenerator final : c10::GeneratorImpl {
  SimGenerator(c10::DeviceIndex device, at::Generator cpu)
      : GeneratorImpl(c10::Device(kSim, device), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)), cpu(std::move(cpu)) {}

  void set_current_seed(uint64_t seed) override { cpu.set_current_seed(seed); }
  void set_offset(uint64_t offset) override { cpu.set_offset(offset); }
  uint64_t get_offset() const override { return cpu.get_offset(); }
  uint64_t current_seed() const override { return cpu.current_seed(); }
  uint64_t seed() override { return cpu.seed(); }
  void set_state(const c10::TensorImpl& state) override { cpu.unsafeGetGeneratorImpl()->set_state(state); }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override { return cpu.unsafeGetGeneratorImpl()->get_state(); }

  at::Generator cpu;

 private:
  SimGenerator* clone_impl() const override { return new SimGenerator(device_.index(), cpu.clone()); }
};

} // namespace

at::Generator make_generator(c10::DeviceIndex device) {
  return at::make_generator<SimGenerator>(device < 0 ? current_device() : device, at::detail::createCPUGenerator());
}

const at::Generator& default_generator(c10::DeviceIndex device) {
  static std::array<at::Generator, kMostDevices> kept;
  auto& found = kept[device < 0 ? current_device() : device];
  if (!found.defined()) found = make_generator(device);
  return found;
}

const at::Generator& host_generator(const at::Generator& generator) {
  TORCH_CHECK(generator.device().type() == kSim, "Expected a 'sim' device type for generator but found '",
      c10::DeviceTypeName(generator.device().type(), true), "'");
  return static_cast<SimGenerator*>(generator.unsafeGetGeneratorImpl())->cpu;
}

} // namespace sim
