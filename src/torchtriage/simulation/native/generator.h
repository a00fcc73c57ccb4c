#pragma once

#include <ATen/core/Generator.h>

namespace sim {

at::Generator make_generator(c10::DeviceIndex device);
const at::Generator& default_generator(c10::DeviceIndex device);

// The CPU generator behind a simulated one.
const at::Generator& host_generator(const at::Generator& generator);

} // namespace sim
