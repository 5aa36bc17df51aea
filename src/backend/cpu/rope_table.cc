#include "backend/cpu/rope_table.h"

#include <cmath>

namespace sluice {

void RopeTable::lay_out(Carver& carve, size_t context_token_max) {
  const size_t angles = context_token_max * config_.rotated_dim / 2;
  cos_ = carve.floats(angles);
  sin_ = carve.floats(angles);
}

/// Angles in double, so that far positions are as exact as near ones.
void RopeTable::extend(const CpuContext& cpu, size_t position_end) {
  if (position_end <= position_end_) return;
  CHECK(position_end <= cpu.limits.context_token_max);
  const size_t pairs = angles_.frequencies.size();
  cpu.for_tokens(position_end - position_end_, [&](size_t row) {
    const size_t position = position_end_ + row;
    for (size_t i = 0; i < pairs; ++i) {
      const double angle = static_cast<double>(position) * angles_.frequencies[i];
      cos_[position * pairs + i] = static_cast<float>(std::cos(angle)) * angles_.magnitude;
      sin_[position * pairs + i] = static_cast<float>(std::sin(angle)) * angles_.magnitude;
    }
  });
  position_end_ = position_end;
}

void RopeTable::rotate(const CpuContext& cpu, float* head, size_t position) const {
  const size_t pairs = angles_.frequencies.size();
  const auto kernel = cpu.config.architecture->rope == RopeKind::neox ? cpu.kernels.rope_neox
                                                                      : cpu.kernels.rope_adjacent;
  kernel(head, cos_ + position * pairs, sin_ + position * pairs, pairs);
}

}  // namespace sluice
