#include "model/expert_layout.h"

#include <algorithm>

#include "base/check.h"

namespace sluice {

ExpertLayout::ExpertLayout(uint32_t expert_count, std::span<const ExpertPart> parts)
    : expert_count_(expert_count), part_count_(parts.size()) {
  CHECK(!parts.empty() && parts.size() <= kExpertPartCountMax);
  std::ranges::copy(parts, parts_.begin());
  CHECK(parts.back().kind == ExpertPartKind::down);
  down_index_ = part_count_ - 1;
}

uint64_t ExpertLayout::expert_bytes() const {
  uint64_t bytes = 0;
  for (const ExpertPart& part : parts()) bytes += part.first_expert.bytes;
  return bytes;
}

ExpertView ExpertLayout::view(std::span<const std::byte* const> part_data) const {
  ExpertView view;
  for (size_t i = 0; i < part_count_; ++i) {
    Matrix matrix = parts_[i].shape;
    matrix.data = part_data[i];
    switch (parts_[i].kind) {
      case ExpertPartKind::gate: view.gate = matrix; break;
      case ExpertPartKind::up: view.up = matrix; break;
      case ExpertPartKind::down: view.down = matrix; break;
      case ExpertPartKind::gate_up:
        view.gate = matrix.rows_from(0, matrix.rows / 2);
        view.up = matrix.rows_from(matrix.rows / 2, matrix.rows / 2);
        break;
    }
  }
  return view;
}

}  // namespace sluice
