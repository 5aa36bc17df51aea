#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "base/check.h"
#include "base/elementary.h"

namespace sluice {
namespace {

constexpr float kHighest = std::numeric_limits<float>::max();

Status check_range(std::string_view name, float value, float low, float high) {
  if (low <= value && value <= high) return {};  // false for NaN
  return make_error(ErrorKind::usage, "{} is {}; it must be between {} and {}", name, value, low,
                    high);
}

}  // namespace

Status check_sampling(const SamplingOptions& options) {
  if (!(options.temperature >= 0) || !std::isfinite(options.temperature))
    return make_error(ErrorKind::usage, "temperature is {}; it must be a number of at least 0",
                      options.temperature);
  if (options.top_k < 0)
    return make_error(ErrorKind::usage, "top-k is {}; it must be at least 0 (0 turns it off)",
                      options.top_k);
  if (auto status = check_range("top-p", options.top_p, 0, 1); !status) return status;
  if (auto status = check_range("min-p", options.min_p, 0, 1); !status) return status;
  if (!(options.repeat_penalty > 0) || !std::isfinite(options.repeat_penalty))
    return make_error(ErrorKind::usage, "repeat-penalty is {}; it must be a number above 0",
                      options.repeat_penalty);
  return {};
}

Sampler::Sampler(const SamplingOptions& options, size_t vocabulary_size)
    : options_(options), random_(options.seed), candidates_(vocabulary_size) {
  CHECK(check_sampling(options).ok());
  CHECK(vocabulary_size > 0);
}

int32_t Sampler::sample(std::span<const float> logits, std::span<const int32_t> recent) {
  CHECK(logits.size() == candidates_.size());
  for (size_t i = 0; i < logits.size(); ++i) candidates_[i] = {logits[i], static_cast<int32_t>(i)};
  penalise(logits, recent);
  if (options_.temperature == 0) return std::ranges::min_element(candidates_, comes_before)->token;

  const std::span<Candidate> all(candidates_);
  const std::span<Candidate> likely = keep_top_k(all);
  const double total = softmax(likely);
  // Both filters keep the likeliest candidates, so the result is the same in either order; min-p
  // costs less and leaves top-p less to sort. Its share is of all that softmax saw.
  return draw(keep_top_p(keep_min_p(likely), total));
}

void Sampler::penalise(std::span<const float> logits, std::span<const int32_t> recent) {
  const float penalty = options_.repeat_penalty;
  if (penalty == 1) return;
  for (const int32_t token : recent.last(std::min(recent.size(), options_.repeat_window))) {
    if (token < 0 || static_cast<size_t>(token) >= logits.size()) continue;
    // From the logit as it was: a token seen twice is penalised once.
    const float logit = logits[static_cast<size_t>(token)];
    const float penalised = logit > 0 ? logit / penalty : logit * penalty;
    candidates_[static_cast<size_t>(token)].value = std::clamp(penalised, -kHighest, kHighest);
  }
}

bool Sampler::comes_before(const Candidate& a, const Candidate& b) {
  return a.value != b.value ? a.value > b.value : a.token < b.token;
}

std::span<Sampler::Candidate> Sampler::keep_top_k(std::span<Candidate> candidates) const {
  const auto k = static_cast<size_t>(options_.top_k);
  if (k == 0 || k >= candidates.size()) return candidates;
  const auto middle = candidates.begin() + static_cast<ptrdiff_t>(k);
  std::partial_sort(candidates.begin(), middle, candidates.end(), comes_before);
  return candidates.first(k);
}

double Sampler::softmax(std::span<Candidate> candidates) const {
  const float highest = std::ranges::min_element(candidates, comes_before)->value;
  double total = 0;
  for (Candidate& candidate : candidates) {
    candidate.value = exp_f32((candidate.value - highest) / options_.temperature);
    total += candidate.value;
  }
  return total;
}

std::span<Sampler::Candidate> Sampler::keep_min_p(std::span<Candidate> candidates) const {
  // The likeliest weight is e^0 = 1, so a weight is its ratio to the likeliest.
  const auto dropped = [&](const Candidate& c) { return c.value < options_.min_p; };
  const auto end = std::remove_if(candidates.begin(), candidates.end(), dropped);
  return candidates.first(static_cast<size_t>(end - candidates.begin()));
}

std::span<Sampler::Candidate> Sampler::keep_top_p(std::span<Candidate> candidates,
                                                  double total) const {
  if (options_.top_p >= 1) return candidates;
  const double wanted = options_.top_p * total;
  constexpr size_t kFirstSorted = 256;
  size_t sorted = 0;
  size_t kept = 0;
  double sum = 0;
  do {
    // Nearly always a few candidates are enough: sort no more than are looked at.
    if (kept == sorted) {
      const size_t next = std::min(candidates.size(), std::max(kFirstSorted, 4 * sorted));
      std::partial_sort(candidates.begin() + static_cast<ptrdiff_t>(sorted),
                        candidates.begin() + static_cast<ptrdiff_t>(next), candidates.end(),
                        comes_before);
      sorted = next;
    }
    sum += candidates[kept++].value;
  } while (sum < wanted && kept < candidates.size());
  return candidates.first(kept);
}

int32_t Sampler::draw(std::span<const Candidate> candidates) {
  double total = 0;
  for (const Candidate& candidate : candidates) total += candidate.value;
  const double point = random_.uniform() * total;
  double sum = 0;
  int32_t drawn = candidates.front().token;
  for (const Candidate& candidate : candidates) {
    if (candidate.value == 0) continue;  // its share is empty
    drawn = candidate.token;
    sum += candidate.value;
    if (point < sum) break;
  }
  return drawn;
}

}  // namespace sluice
