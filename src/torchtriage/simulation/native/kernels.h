#pragma once

namespace sim {

// Registers a device kernel for every aten operator that has a CPU kernel. Called once, when torch has registered its own.
void register_kernels();

} // namespace sim
