// Kineto's headers use fmt, whose symbols torch does not export.
#define FMT_HEADER_ONLY
#include "profiler.h"

#include "device.h"

#include <libkineto.h>
#include <output_base.h>
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>

#include <atomic>
#include <chrono>

namespace sim {

namespace {

using libkineto::ActivityType;

struct Traced {
  ActivityType type;
  std::string name;
  c10::DeviceIndex device;
  c10::StreamId stream;
  Time start, end;
  int64_t bytes;
  uint64_t correlation; // of the operator that launched it
};

std::atomic<bool> is_tracing{false};
std::mutex profiler_mutex;
std::vector<Traced> recorded;
thread_local std::vector<uint64_t> operators; // running in this thread, innermost last

void record(Traced work) {
  if (!operators.empty()) work.correlation = operators.back();
  std::lock_guard<std::mutex> lock(profiler_mutex);
  recorded.push_back(std::move(work));
}

Time epoch_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

class Session final : public libkineto::IActivityProfilerSession {
 public:
  void start() override {
    {
      std::lock_guard<std::mutex> lock(profiler_mutex);
      recorded.clear();
    }
    started_ = epoch_now();
    // Real time maps to the trace's clock by an offset. Virtual time is anchored at the start of the trace: activities of
    // the device compare with one another, but not with those of the host.
    offset_ = started_ - host_clock().now();
    is_tracing = true;
    status_ = libkineto::TraceStatus::RECORDING;
  }
  void stop() override {
    is_tracing = false;
    stopped_ = epoch_now();
    status_ = libkineto::TraceStatus::PROCESSING;
  }
  std::vector<std::string> errors() override { return {}; }
  void processTrace(libkineto::ActivityLogger& logger) override { write(logger, nullptr); }
  void processTrace(libkineto::ActivityLogger& logger, libkineto::getLinkedActivityCallback linked, int64_t, int64_t) override {
    write(logger, linked);
  }
  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override { return nullptr; }
  std::vector<libkineto::ResourceInfo> getResourceInfos() override { return {}; }
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override { return std::move(buffer_); }
  void pushCorrelationId(uint64_t id) override { operators.push_back(id); }
  void popCorrelationId() override {
    if (!operators.empty()) operators.pop_back();
  }

 private:
  void write(libkineto::ActivityLogger& logger, const libkineto::getLinkedActivityCallback& linked) {
    buffer_ = std::make_unique<libkineto::CpuTraceBuffer>();
    buffer_->span = libkineto::TraceSpan(started_, stopped_, "sim");
    std::lock_guard<std::mutex> lock(profiler_mutex);
    for (const auto& each : recorded) {
      auto activity = std::make_unique<libkineto::GenericTraceActivity>(buffer_->span, each.type, each.name);
      activity->startTime = each.start + offset_;
      activity->endTime = each.end + offset_;
      activity->device = each.device;
      activity->resource = int32_t(each.stream);
      activity->id = int32_t(each.correlation);
      activity->addMetadata("device", int(each.device));
      activity->addMetadata("stream", each.stream);
      activity->addMetadata("bytes", each.bytes);
      if (linked != nullptr) activity->linked = linked(int32_t(each.correlation));
      logger.handleGenericActivity(*activity);
      buffer_->activities.push_back(std::move(activity));
    }
  }

  Time started_ = 0, stopped_ = 0, offset_ = 0;
  std::unique_ptr<libkineto::CpuTraceBuffer> buffer_;
};

class Profiler final : public libkineto::IActivityProfiler {
 public:
  const std::string& name() const override { return name_; }
  const std::set<ActivityType>& availableActivities() const override { return activities_; }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      const std::set<ActivityType>& wanted, const libkineto::Config&) override {
    if (wanted.count(ActivityType::CONCURRENT_KERNEL) == 0) return nullptr;
    return std::make_unique<Session>();
  }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      int64_t, int64_t, const std::set<ActivityType>& wanted, const libkineto::Config& config) override {
    return configure(wanted, config);
  }

 private:
  std::string name_ = "sim";
  std::set<ActivityType> activities_{ActivityType::CONCURRENT_KERNEL, ActivityType::GPU_MEMCPY};
};

REGISTER_PRIVATEUSE1_PROFILER(Profiler);

} // namespace

void trace(const Kernel& kernel) {
  if (!is_tracing) return;
  record({ActivityType::CONCURRENT_KERNEL, kernel.name, kernel.device, kernel.stream, kernel.start, kernel.end, kernel.bytes, 0});
}

// Named as CUDA names them, so that tools recognise them.
void trace(const Copy& copy) {
  if (!is_tracing) return;
  const auto host = copy.pinned ? "Pinned" : "Pageable";
  const auto name = copy.kind == "host-to-device" ? c10::str("Memcpy HtoD (", host, " -> Device)")
      : copy.kind == "device-to-host"             ? c10::str("Memcpy DtoH (Device -> ", host, ")")
                                                  : std::string("Memcpy PtoP (Device -> Device)");
  record({ActivityType::GPU_MEMCPY, name, copy.device, copy.stream, copy.start, copy.end, copy.bytes, 0});
}

void trace(const Collective& collective, c10::StreamId stream) {
  if (!is_tracing) return;
  record({ActivityType::CONCURRENT_KERNEL, "sim:" + collective.name, collective.device, stream, collective.ready,
      collective.end, collective.bytes, 0});
}

} // namespace sim
