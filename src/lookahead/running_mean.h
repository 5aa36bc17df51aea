// Means that forget, for numbers that come one at a time and drift. Pure; any thread.
#pragma once

#include <algorithm>

namespace sluice {

/// Moves a mean by this share of its way to the sample: it remembers about 1 / share samples.
inline void follow(double& mean, double sample, double share) {
  mean += share * (sample - mean);
}

/// An average at first; once its weight is at its limit, a mean that forgets.
struct WeightedMean {
  double value = 0;
  double weight = 0;

  void add(double sample, double sample_weight, double weight_max) {
    weight = std::min(weight + sample_weight, weight_max);
    value += (sample - value) * sample_weight / weight;
  }
};

}  // namespace sluice
