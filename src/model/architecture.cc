#include "model/architecture.h"

namespace sluice {
namespace {

constexpr Architecture kArchitectures[] = {
    {.name = "qwen3moe",
     .gating = {.function = GatingFunction::softmax, .renormalise = true, .scale = 1.0f},
     .query_key_norm = QueryKeyNorm::per_head,
     .rope = RopeKind::neox},
};

}  // namespace

const Architecture* find_architecture(std::string_view name) {
  for (const Architecture& row : kArchitectures)
    if (row.name == name) return &row;
  return nullptr;
}

std::string supported_architectures() {
  std::string names;
  for (const Architecture& row : kArchitectures) {
    if (!names.empty()) names += ", ";
    names += row.name;
  }
  return names;
}

}  // namespace sluice
