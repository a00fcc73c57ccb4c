// The device guard, through which torch reaches devices, streams and events.
#include "device.h"
#include "ledger.h"
#include "memory.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace sim {

namespace {

struct Event {
  c10::DeviceIndex device;
  Time time; // when the stream reaches it
};

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static constexpr c10::DeviceType static_type = kSim;

  c10::DeviceType type() const override { return kSim; }
  c10::Device exchangeDevice(c10::Device device) const override {
    auto before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override { return {kSim, current_device()}; }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.index() >= 0 && device.index() < device_count(), "there is no device sim:", int(device.index()));
    set_current_device(device.index());
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override { set_current_device(device.index()); }
  c10::DeviceIndex deviceCount() const noexcept override { return is_forked_child() ? 0 : device_count(); }

  c10::Stream getStream(c10::Device device) const override { return current_stream(index_of(device)); }
  c10::Stream getDefaultStream(c10::Device device) const override { return default_stream(index_of(device)); }
  c10::Stream getNewStream(c10::Device device, int) const override { return new_stream(index_of(device)); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return pooled_stream(index_of(device)); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return exchange_stream(stream); }
  bool queryStream(const c10::Stream& stream) const override { return end_of(stream) <= host_clock().now(); }
  void synchronizeStream(const c10::Stream& stream) const override {
    synchronise("stream", stream.device_index(), end_of(stream));
  }
  void synchronizeDevice(const c10::DeviceIndex device) const override {
    synchronise("device", device, end_of_device(device));
  }

  void record(void** event, const c10::Stream& stream, c10::DeviceIndex, c10::EventFlag) const override {
    refuse_forked_child();
    if (*event == nullptr) *event = new Event;
    *static_cast<Event*>(*event) = {stream.device_index(), std::max(host_clock().now(), end_of(stream))};
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr) delay_stream(stream, static_cast<Event*>(event)->time);
  }
  bool queryEvent(void* event) const override {
    return event == nullptr || static_cast<Event*>(event)->time <= host_clock().now();
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) synchronise("event", static_cast<Event*>(event)->device, static_cast<Event*>(event)->time);
  }
  double elapsedTime(void* from, void* to, c10::DeviceIndex) const override {
    TORCH_CHECK(queryEvent(from) && queryEvent(to), "sim error: device not ready");
    return double(static_cast<Event*>(to)->time - static_cast<Event*>(from)->time) / 1e6;
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override { delete static_cast<Event*>(event); }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    device_allocator().recordStream(data, stream);
  }

 private:
  static c10::DeviceIndex index_of(c10::Device device) { return device.has_index() ? device.index() : current_device(); }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

} // namespace

} // namespace sim
