#include "lookahead/visit_records.h"

#include <algorithm>
#include <cmath>

namespace sluice {
namespace {

// Evidence, in standard errors and in visits.
constexpr double kErrorsUp = 2.25;
constexpr double kErrorsDown = 1.5;
constexpr double kVisitsUp = 2.5;
constexpr double kErrorsForgotten = 2.5;  ///< by which recent visits contradict the long memory

constexpr double kMemoryVisits = 64;
constexpr double kRecentVisits = 4;
constexpr double kKnowledgeSteps = 128;     ///< after so many, half of it is out of date
constexpr double kScatterShare = 1.0 / 32;  ///< that one visit has in what scatter is known

constexpr uint64_t kRestMinSteps = 16;

double square(double x) {
  return x * x;
}

}  // namespace

double VisitRecords::error_of(const Record& record) const {
  return std::sqrt(variance_ / std::max(record.gain.weight, 0.5));
}

double VisitRecords::hoped_gain(size_t level, uint64_t step) const {
  const Record& record = records_[level];
  const double age = static_cast<double>(step - record.visited_step) / kKnowledgeSteps;
  return record.gain.value + error_of(record) * std::sqrt(1 + age);
}

/// The first visit has nothing but the noise of steps to go by, which is not all of it.
void VisitRecords::begin_visit(double variance) {
  if (visit_count_++ == 0) variance_ = 2 * variance;
}

void VisitRecords::learn(size_t level, double gain, double weight, double variance) {
  Record& record = records_[level];
  learn_scatter(record, gain, weight, variance);
  record.gain.add(gain, weight, kMemoryVisits);
  record.recent_gain.add(gain, weight, kRecentVisits);
  if (record.gain.weight <= kRecentVisits) return;
  const double contradiction = std::abs(record.gain.value - record.recent_gain.value);
  const double recent_error = std::sqrt(variance_ / (2 * kRecentVisits - 1));
  if (contradiction > kErrorsForgotten * recent_error) record.gain = record.recent_gain;
}

/// How far the visit is off what was known of its level. Never less than half of what the noise of
/// steps explains, lest a few visits that happen to agree look like certainty.
void VisitRecords::learn_scatter(const Record& record, double gain, double weight,
                                 double variance) {
  if (record.gain.weight >= 2) {
    const double off = std::min(square(gain - record.gain.value) * weight, 9 * variance_);
    follow(variance_, off * record.gain.weight / (record.gain.weight + 1),
           std::max(kScatterShare, 1 / (3 + static_cast<double>(visit_count_))));
  }
  variance_ = std::max(variance_, variance / 2);
}

bool VisitRecords::is_proven(size_t level, Proof proof) const {
  const Record& record = records_[level];
  const bool up = proof == Proof::up;
  return record.gain.weight >= (up ? kVisitsUp : kVisitsDown) &&
         record.gain.value > (up ? kErrorsUp : kErrorsDown) * error_of(record);
}

bool VisitRecords::has_shown_all(size_t level) const {
  const Record& record = records_[level];
  const bool hopeless = record.gain.value + 2 * error_of(record) < kGainMin;
  const bool known = record.gain.weight >= kMemoryVisits;
  return hopeless || known;
}

void VisitRecords::let_rest(size_t level, uint64_t step, uint64_t steps_max) {
  Record& record = records_[level];
  record.rest(step, std::clamp(2 * record.rest_steps, kRestMinSteps, steps_max));
}

/// Who wins does so by luck as well as by merit: the others are not judged by the luck, and the
/// loser soon gets another chance.
double VisitRecords::crown(size_t winner, size_t loser, uint64_t step) {
  const WeightedMean won = records_[winner].gain;
  const double proven_gain = std::max(0.0, won.value - error_of(records_[winner]));
  const double factor = 1 / (1 - proven_gain);
  records_[loser].gain = {0, won.weight};
  for (Record& record : records_) {
    record.restate(
        {1 - (1 - record.gain.value) * factor, std::min(record.gain.weight, won.weight)});
    record.rest(step, 0);
  }
  Record& lost = records_[loser];
  lost.restate({lost.gain.value / 2, std::min(lost.gain.weight, kVisitsDown)});
  lost.rest(step, kRestMinSteps);
  return factor;
}

void VisitRecords::half_forget(uint64_t step) {
  for (Record& record : records_) {
    record.restate({record.gain.value / 2, std::min(record.gain.weight, 1.0)});
    record.rest(step, 0);
  }
}

}  // namespace sluice
