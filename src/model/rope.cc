#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sluice {
namespace {

/// The pair that turns so often within the original context, as a real number.
double pair_that_turns(const RopeConfig& config, double turns) {
  const double wavelength = config.original_context_tokens / turns;
  return config.rotated_dim * std::log(wavelength / (2 * std::numbers::pi)) /
         (2 * std::log(config.base));
}

/// 1 for pairs that keep their frequency, 0 for those that are slowed down.
double share_kept(const RopeConfig& config, double pair) {
  const double low = std::max(0.0, std::floor(pair_that_turns(config, config.beta_fast)));
  const double high = std::min<double>(config.rotated_dim - 1,
                                       std::ceil(pair_that_turns(config, config.beta_slow)));
  return 1.0 - std::clamp((pair - low) / std::max(0.001, high - low), 0.0, 1.0);
}

}  // namespace

RopeAngles rope_angles(const RopeConfig& config, std::span<const float> divisors) {
  RopeAngles angles;
  for (uint32_t pair = 0; pair < config.rotated_dim / 2; ++pair) {
    double frequency = std::pow(config.base, -2.0 * pair / config.rotated_dim);
    if (!divisors.empty()) frequency /= static_cast<double>(divisors[pair]);
    const double slowed = frequency / config.factor;
    if (config.scaling == RopeScaling::linear) frequency = slowed;
    if (config.scaling == RopeScaling::yarn) {
      const double kept = share_kept(config, pair) * config.mix;
      frequency = slowed * (1 - kept) + frequency * kept;
    }
    angles.frequencies.push_back(frequency);
  }
  const bool grows = config.scaling == RopeScaling::yarn && !config.keeps_magnitude;
  const double prescribed = grows ? 1.0 + 0.1 * std::log(config.factor) : 1.0;
  angles.magnitude = static_cast<float>(config.magnitude * prescribed);
  return angles;
}

}  // namespace sluice
