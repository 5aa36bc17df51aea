// Rotary position embedding: how fast each pair of a head's elements turns. Angles are frequency ·
// position; all that a model's scaling of its context changes is in the frequencies and in one
// factor. Pure arithmetic; any thread.
//
// Pair i of d elements turns by base^(−2i/d) a position (Su et al. 2021, "RoFormer",
// section 3.2.2). The ways to make a context longer:
//
//   linear    all pairs are slowed down by the factor by which the context grew (Chen et al. 2023,
//             "Extending Context Window of Large Language Models via Position Interpolation")
//   YaRN      pairs that turn often within the trained context keep their frequency, those that
//             turn less than once are slowed down, and those between are mixed (Peng et al. 2023,
//             "YaRN: Efficient Context Window Extension of Large Language Models", section 3.2 and
//             equation 22 for the magnitude)
//   divisors  the file slows each pair down as it likes. That is how Llama 3 comes (one row for all
//             contexts), and LongRoPE (Ding et al. 2024, "LongRoPE: Extending LLM Context Window
//             Beyond 2 Million Tokens"): a row for contexts as long as the original one, and one
//             for longer ones, with a magnitude that the file gives
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
  uint32_t original_context_tokens = 0;  ///< before that; for YaRN and LongRoPE
  double beta_fast = 32.0;               ///< turns within it from which a pair is left alone
  double beta_slow = 1.0;                ///< and up to which it is slowed down
  double mix = 1.0;                      ///< share of YaRN's mixing; 0 would be linear
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
