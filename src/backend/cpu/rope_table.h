// The cosines and sines by which heads are rotated, [position][pair]. The table grows with the
// context; each row is computed once and serves every layer and head that turns at this pace.
// Written by one thread between the parallel steps that read it.
#pragma once

#include "backend/cpu/carver.h"
#include "backend/cpu/cpu_context.h"
#include "model/rope.h"

namespace sluice {

class RopeTable {
 public:
  explicit RopeTable(const RopeConfig& config) : config_(config) {}

  void lay_out(Carver& carve, size_t context_token_max);
  /// Call once, when the weights are loaded; `divisors` as for rope_angles().
  void set_angles(std::span<const float> divisors) { angles_ = rope_angles(config_, divisors); }
  /// Fills the rows of all positions before this one.
  void extend(const CpuContext& cpu, size_t position_end);

  /// Rotates the first elements of a head in place. REQUIRES: extended beyond the position.
  void rotate(const CpuContext& cpu, float* head, size_t position) const;

 private:
  RopeConfig config_;
  RopeAngles angles_;
  size_t position_end_ = 0;  ///< rows that are filled
  float* cos_ = nullptr;     ///< [context position][rotated_dim / 2]
  float* sin_ = nullptr;     ///< [context position][rotated_dim / 2]
};

}  // namespace sluice
