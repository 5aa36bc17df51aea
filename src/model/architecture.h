// The architecture table: one row per model family, saying which variant of each building block it
// uses. What a file's keys can override (model/config.h) is a default here. Supporting a family
// means adding a row, and a building block only where the family needs a new one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice {

/// How router logits become mixing weights.
enum class GatingFunction : uint8_t { softmax = 1, sigmoid = 2 };

/// Where query and key are normalised before rotation.
enum class QueryKeyNorm : uint8_t { none, per_head };

/// Which elements of a head are rotated together.
enum class RopeKind : uint8_t { neox };  ///< neox: element i with i + rotated/2

struct GatingRule {
  GatingFunction function = GatingFunction::softmax;
  bool renormalise = true;  ///< the chosen weights are divided by their sum
  float scale = 1.0f;       ///< applied last
};

struct Architecture {
  std::string_view name;  ///< `general.architecture`
  GatingRule gating;
  QueryKeyNorm query_key_norm;
  RopeKind rope;
};

/// Null when the family is not supported.
const Architecture* find_architecture(std::string_view name);

/// "qwen3moe, …", for messages.
std::string supported_architectures();

}  // namespace sluice
