// Devices and streams: work is queued behind the work that its stream already has.
#pragma once

#include "clock.h"
#include "costs.h"

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <optional>
#include <string>

namespace sim {

constexpr auto kSim = c10::DeviceType::PrivateUse1;
constexpr int kMostDevices = 16;

Costs& costs();

// Can be set once: autograd starts one thread per device at the first backward.
void set_device_count(c10::DeviceIndex count);
c10::DeviceIndex device_count() noexcept;

// Like CUDA, the devices cannot be used in a forked child: its parent's threads do not exist there.
bool is_forked_child() noexcept;
void refuse_forked_child();

// Per thread, as in CUDA.
c10::DeviceIndex current_device() noexcept;
void set_current_device(c10::DeviceIndex device) noexcept;
c10::Stream current_stream(c10::DeviceIndex device) noexcept;
c10::Stream exchange_stream(c10::Stream stream) noexcept;

c10::Stream default_stream(c10::DeviceIndex device) noexcept;
c10::Stream new_stream(c10::DeviceIndex device);
c10::Stream pooled_stream(c10::DeviceIndex device);

struct Slot {
  Time launched, start, end;
};

// Queues work of COST on STREAM. The host pays for the launch, which it began at BEGUN.
Slot enqueue(c10::Stream stream, Time cost, Time begun);

// The same for work that was launched before and cannot start before READY.
Slot enqueue_at(c10::Stream stream, Time cost, Time ready);

// A kernel of a device runs from START to END. `worked` is the time so far in which one did, on any stream.
void note_kernel(c10::DeviceIndex device, Time start, Time end);
Time worked(c10::DeviceIndex device);

// When a stream, or every stream of a device, finishes the work queued so far.
Time end_of(c10::Stream stream);
Time end_of_device(c10::DeviceIndex device);

// Work queued on STREAM from now on does not start before TIME.
void delay_stream(c10::Stream stream, Time time);

// Blocks the host until UNTIL and records a synchronisation by CALL at the calling line of Python.
void synchronise(const std::string& call, c10::DeviceIndex device, Time until);

// Drops all queued work.
void reset_streams();

} // namespace sim
