#include "engine/roofline.h"

#include <algorithm>

namespace sluice {

Roofline roofline_of(const RooflineInput& input) {
  const auto seconds = [](uint64_t bytes, double rate) {
    return rate > 0 ? static_cast<double>(bytes) / rate : 0.0;
  };
  Roofline roof;
  roof.drive_s = seconds(input.drive_bytes, input.drive_bytes_per_s);
  roof.ram_s = seconds(input.ram_bytes, input.ram_bytes_per_s);
  roof.compute_s = std::max(0.0, input.measured_s - input.stall_s);
  roof.floor_s = std::max({roof.drive_s, roof.ram_s, roof.compute_s});
  roof.limit = roof.floor_s == roof.compute_s ? "compute"
               : roof.floor_s == roof.drive_s ? "drive"
                                              : "memory";
  if (input.measured_s > 0) roof.reached = std::min(1.0, roof.floor_s / input.measured_s);
  return roof;
}

}  // namespace sluice
