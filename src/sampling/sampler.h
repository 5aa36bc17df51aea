// Logits to one token. A repeat penalty over the recent tokens comes first; then temperature 0 is
// greedy, and any other the usual chain: top-k, softmax with temperature, top-p, min-p, one draw.
// The same seed, logits and options give the same token on every machine (exp is the project's own,
// sums are taken in a fixed order). One thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/result.h"

namespace sluice {

struct SamplingOptions {
  float temperature = 0.8f;     ///< 0: greedy, ties to the lowest id
  int32_t top_k = 40;           ///< 0: off
  float top_p = 0.95f;          ///< 1: off
  float min_p = 0.05f;          ///< 0: off
  float repeat_penalty = 1.0f;  ///< 1: off; > 1 divides positive and multiplies negative logits
  size_t repeat_window = 64;    ///< how many of the last tokens the penalty looks at
  uint64_t seed = 0;
};

/// One line naming the option when a value is out of range or not finite.
Status check_sampling(const SamplingOptions& options);

class Sampler {
 public:
  /// `vocabulary_size` sizes the buffers, so that sample() allocates nothing.
  Sampler(const SamplingOptions& options, size_t vocabulary_size);

  /// REQUIRES: logits are finite and vocabulary_size many. `recent` holds the tokens so far, the
  /// latest last. Does not remember the token: the caller appends it to its own list.
  int32_t sample(std::span<const float> logits, std::span<const int32_t> recent);

 private:
  struct Candidate {
    float value;  ///< a logit, then a weight: the probability relative to the likeliest one
    int32_t token;
  };
  /// The order of likelihood: higher values first, ties by the lower id.
  static bool comes_before(const Candidate& a, const Candidate& b);

  // The links of the chain, each over the candidates that the one before kept.
  void penalise(std::span<const float> logits, std::span<const int32_t> recent);
  std::span<Candidate> keep_top_k(std::span<Candidate> candidates) const;
  /// Makes logits weights; gives their sum.
  double softmax(std::span<Candidate> candidates) const;
  std::span<Candidate> keep_min_p(std::span<Candidate> candidates) const;
  std::span<Candidate> keep_top_p(std::span<Candidate> candidates, double total) const;
  int32_t draw(std::span<const Candidate> candidates);

  SamplingOptions options_;
  Random random_;
  std::vector<Candidate> candidates_;  ///< [vocabulary_size]
};

}  // namespace sluice
