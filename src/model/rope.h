// Rotary position embedding: how fast each pair of a head's elements turns. Angles are frequency ·
// position; all that a model's scaling of its context changes is in the frequencies and in one
// factor. Pure arithmetic; any thread.
//
// YaRN: pairs that turn often within the trained context keep their frequency, those that turn less
// than once are slowed down by the factor by which the context grew, and those between are mixed
// (Peng et al. 2023, "YaRN: Efficient Context Window Extension of Large Language Models", section
// 3.2 and equation 22 for the magnitude).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice {

enum class RopeScaling : uint8_t { none, linear, yarn };

struct RopeConfig {
  uint32_t rotated_dim = 0;  ///< elements of a head that are rotated; even
  double base = 10000.0;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1.0;                   ///< by which the context grew
  uint32_t original_context_tokens = 0;  ///< before that; for YaRN
  double beta_fast = 32.0;               ///< turns within it from which a pair is left alone
  double beta_slow = 1.0;                ///< and up to which it is slowed down
  double magnitude = 1.0;                ///< times cosine and sine
  bool keeps_magnitude = false;          ///< YaRN's own factor on them is left out
};

struct RopeAngles {
  std::vector<double> frequencies;  ///< [rotated_dim / 2], radians per position
  float magnitude = 1.0f;           ///< times cosine and sine
};

/// `divisors` [rotated_dim / 2] come from the file, if it has any: each slows its pair down.
RopeAngles rope_angles(const RopeConfig& config, std::span<const float> divisors);

}  // namespace sluice
