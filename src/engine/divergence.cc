#include "engine/divergence.h"

#include <algorithm>
#include <cmath>

namespace sluice {
namespace {

size_t index_of_largest(const auto& values) {
  return static_cast<size_t>(std::ranges::max_element(values) - values.begin());
}

double kl_divergence(std::span<const float> logits, double log_sum, const BaseRow& base) {
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double log_q = base.log_probability(i);
    if (log_q > -kLogitsBaseDepth) sum += std::exp(log_q) * (log_q - (logits[i] - log_sum));
  }
  return sum;
}

}  // namespace

double log_sum_exp(std::span<const float> logits) {
  const double largest = std::ranges::max(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

Estimate exp_of(const Estimate& exponent) {
  const double value = std::exp(exponent.value);
  return {value, value * exponent.error};
}

Estimate Moments::mean() const {
  CHECK(count_ > 0);
  const auto n = static_cast<double>(count_);
  const double mean = sum_ / n;
  const double variance = std::max(squares_ / n - mean * mean, 0.0);  // rounding
  return {mean, count_ > 1 ? std::sqrt(variance / (n - 1)) : 0.0};
}

double quantile(std::span<const double> sorted, double fraction) {
  CHECK(!sorted.empty() && fraction >= 0 && fraction <= 1);
  const double place = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

void Divergence::add(std::span<const float> logits, double log_sum, const BaseRow& base,
                     size_t next) {
  CHECK(logits.size() == base.codes.size() && next < logits.size());
  const double nll = log_sum - logits[next];
  const double base_nll = -base.log_probability(next);
  nll_.add(nll);
  base_nll_.add(base_nll);
  products_ += nll * base_nll;
  values_.push_back(kl_divergence(logits, log_sum, base));
  kld_.add(values_.back());
  const double delta = std::exp(-nll) - std::exp(-base_nll);
  delta_p_.add(delta);
  delta_p_squared_.add(delta * delta);
  same_top_.add(index_of_largest(logits) == index_of_largest(base.codes) ? 1 : 0);
}

DivergenceReport Divergence::report() const {
  const Estimate nll = nll_.mean();
  const Estimate base_nll = base_nll_.mean();
  const auto n = static_cast<double>(nll_.count());
  const double covariance =
      n > 1 ? (products_ / n - nll.value * base_nll.value) / (n - 1) : 0.0;  // of the means
  const double ratio_variance =
      nll.error * nll.error + base_nll.error * base_nll.error - 2 * covariance;
  const Estimate squares = delta_p_squared_.mean();
  const double rms = std::sqrt(squares.value);
  DivergenceReport report{
      .base_perplexity = exp_of(base_nll),
      .log_ratio = {nll.value - base_nll.value, std::sqrt(std::max(ratio_variance, 0.0))},
      .correlation = covariance / (nll.error * base_nll.error),
      .kld = kld_.mean(),
      .sorted = values_,
      .same_top = same_top_.mean(),
      .delta_p = delta_p_.mean(),
      .delta_p_rms = {rms, rms > 0 ? squares.error / (2 * rms) : 0.0}};
  std::ranges::sort(report.sorted);
  return report;
}

}  // namespace sluice
