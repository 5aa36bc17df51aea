// The statistics behind perplexity and behind comparing two engines' probabilities, as
// llama-perplexity computes them, so that numbers can be laid side by side; all in double.
//
// At a position let p be this model's probability of a token and q the base's. With t the token
// that follows in the text:
//
//   nll = −ln p(t)                         perplexity = e^(mean nll)
//   KL divergence = Σ q · (ln q − ln p)    over tokens with ln q > −16
//   Δp = p(t) − q(t)
//
// The error of a mean is its standard error, √(variance / (n − 1)); errors of other numbers follow
// from it to first order. Pure; one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/logits_base.h"

namespace sluice {

/// ln Σ e^logit
double log_sum_exp(std::span<const float> logits);

struct Estimate {
  double value = 0;
  double error = 0;
};

/// e^x of a number that is known so well.
Estimate exp_of(const Estimate& exponent);

/// Sums that give a mean and its standard error.
class Moments {
 public:
  void add(double value) {
    ++count_;
    sum_ += value;
    squares_ += value * value;
  }
  uint64_t count() const { return count_; }
  /// REQUIRES: count() > 0. One value alone has no error.
  Estimate mean() const;

 private:
  uint64_t count_ = 0;
  double sum_ = 0;
  double squares_ = 0;
};

/// The value below which `fraction` of the sorted values lie, between neighbours by straight lines.
/// REQUIRES: at least one value; 0 ≤ fraction ≤ 1.
double quantile(std::span<const double> sorted, double fraction);

/// Shares and probabilities are from 0 to 1.
struct DivergenceReport {
  Estimate base_perplexity;
  Estimate log_ratio;          ///< ln of perplexity over that of the base
  double correlation = 0;      ///< of the two nll; NaN where one of them never varies
  Estimate kld;                ///< mean
  std::vector<double> sorted;  ///< the divergence of every position
  Estimate same_top;           ///< share of positions whose likeliest token is the same
  Estimate delta_p;            ///< mean
  Estimate delta_p_rms;
};

class Divergence {
 public:
  /// A position: this model's logits and their log_sum_exp(), the base's row, the token that
  /// follows. REQUIRES: as many logits as codes; finite ones.
  void add(std::span<const float> logits, double log_sum, const BaseRow& base, size_t next);

  /// REQUIRES: a position was added.
  DivergenceReport report() const;

 private:
  Moments nll_, base_nll_, kld_, delta_p_, delta_p_squared_, same_top_;
  double products_ = 0;         ///< Σ nll · base nll
  std::vector<double> values_;  ///< [position]: 8 bytes, where the base has 2 for every token
};

}  // namespace sluice
