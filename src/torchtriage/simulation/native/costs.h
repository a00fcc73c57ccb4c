// The costs set from Python; the docstring of simulation.Costs explains each.
#pragma once

#include "clock.h"

#include <cmath>
#include <limits>
#include <string>
#include <unordered_map>

namespace sim {

struct Transfer {
  Time latency = 0;
  double bytes_per_second = std::numeric_limits<double>::infinity();

  Time of(int64_t bytes) const { return latency + std::llround(double(bytes) / bytes_per_second * 1e9); }
};

struct Costs {
  Time launch = 0;
  Time kernel = 0;
  Time segment = 0;
  double flops_per_second = std::numeric_limits<double>::infinity();
  double bytes_per_second = std::numeric_limits<double>::infinity();
  std::unordered_map<std::string, Time> kernels;
  Transfer pinned, pageable, peer, collective;
  int64_t staged = 0;
  int64_t queue = std::numeric_limits<int64_t>::max();

  // Roofline model: arithmetic and memory traffic overlap, so the longer one counts.
  Time of_kernel(const std::string& name, int64_t flops, int64_t bytes) const {
    if (auto found = kernels.find(name); found != kernels.end()) return found->second;
    const double seconds = std::max(double(flops) / flops_per_second, double(bytes) / bytes_per_second);
    return kernel + std::llround(seconds * 1e9);
  }
};

} // namespace sim
