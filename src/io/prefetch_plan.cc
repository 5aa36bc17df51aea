#include "io/prefetch_plan.h"

#include <algorithm>
#include <cmath>

namespace sluice::io {
namespace {

/// The forward pass looks after its reads more often than this.
constexpr double kLookSeconds = 50e-6;

/// By how much others may delay a read that they follow; chance alone does a little.
constexpr double kDelayMax = 1.5;

}  // namespace

uint32_t plan_prefetch_depth(const DeviceProfile& profile, uint32_t chunk_bytes, uint32_t most) {
  if (profile.bytes_per_s <= 0 || most <= 2) return most;
  const double on_wire = static_cast<double>(profile.read_bytes) / profile.bytes_per_s;
  const double to_find = std::max(0.0, profile.latency_us * 1e-6 - on_wire) + kLookSeconds;
  const double depth = 1 + std::ceil(to_find * profile.bytes_per_s / chunk_bytes);
  return static_cast<uint32_t>(std::clamp<double>(depth, 2, most));
}

uint32_t plan_prefetch_beside_demand(const DeviceProfile& profile, uint32_t most) {
  return profile.delay_by_followers > kDelayMax ? 0 : most;
}

}  // namespace sluice::io
