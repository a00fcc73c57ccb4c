// The name by which the device goes in Python and in messages: "sim", or "cuda" for scripts that say so.
#pragma once

#include <c10/core/Device.h>

#include <string>

namespace sim {

// From now on, devices that Python makes of the name "cuda" are ours, and ours call themselves "cuda". For good.
void present_as_cuda();
bool is_presented_as_cuda();
std::string name_of(c10::Device device);

} // namespace sim
