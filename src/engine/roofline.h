// How close a run came to what the machine allows: the time that the drive, the memory and the
// cores would each need by themselves for the same work, the floor that follows, and the share
// reached. Pure; any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice {

struct RooflineInput {
  double measured_s = 0;     ///< the whole of the steps
  double stall_s = 0;        ///< of that, waiting for experts
  uint64_t drive_bytes = 0;  ///< read from the drive during the steps
  double drive_bytes_per_s = 0;
  uint64_t ram_bytes = 0;  ///< weights that computing read
  double ram_bytes_per_s = 0;
};

struct Roofline {
  double drive_s = 0;      ///< the drive alone, at its probed rate
  double ram_s = 0;        ///< the memory alone, at its measured rate
  double compute_s = 0;    ///< what computing took, measured: everything but the stall
  double floor_s = 0;      ///< the largest of them: no schedule can be faster with these kernels
  double reached = 0;      ///< floor / measured; 1 is perfect overlap
  std::string_view limit;  ///< "drive", "memory" or "compute": which of them is the floor
};

Roofline roofline_of(const RooflineInput& input);

}  // namespace sluice
