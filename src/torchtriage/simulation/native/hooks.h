#pragma once

#include <c10/core/Storage.h>

namespace sim {

void register_hooks();

// Reallocates STORAGE on its device, keeping as much of its content as fits.
void resize_storage(const c10::Storage& storage, size_t bytes);

} // namespace sim
