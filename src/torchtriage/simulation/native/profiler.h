// Device activities for torch.profiler, linked to the operators that launched them.
#pragma once

#include "ledger.h"

namespace sim {

// No-ops unless a trace is being recorded.
void trace(const Kernel& kernel);
void trace(const Copy& copy);
void trace(const Collective& collective, c10::StreamId stream);

} // namespace sim
