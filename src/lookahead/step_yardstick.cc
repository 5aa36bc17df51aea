#include "lookahead/step_yardstick.h"

#include <algorithm>

#include "lookahead/running_mean.h"

namespace sluice {
namespace {

constexpr double kStepsMin = 12;
constexpr double kStepsMax = 64;
constexpr double kSpreadMin = 0.1;  ///< demand that hardly changes shows nothing
constexpr double kWastedMax = 500;
constexpr double kNoiseMin = 0.01 * 0.01;  ///< no step's time is known better than that
constexpr double kLeastShare = 0.3;        ///< a step counts with at least so much of its own time
constexpr double kOutlier = 2.5;           ///< a longer step counts as so many usual ones

}  // namespace

void StepYardstick::count_regret(const StepReport& report) {
  wasted_count_ = std::min(wasted_count_ + report.prefetch_wasted_count, kWastedMax);
  regret_share_ +=
      (report.regret_count - regret_share_ * report.prefetch_wasted_count) / wasted_count_;
  regret_share_ = std::clamp(regret_share_, 0.0, 1.0);
}

/// Time that one missing expert adds.
double StepYardstick::slope() const {
  return !has_learnt() || spread_ < kSpreadMin ? 0 : std::max(0.0, together_ / spread_);
}

double StepYardstick::measure_ns(const StepReport& report, double usual_ns) const {
  const double own_ns = static_cast<double>(report.step_ns);
  const double at_usual_demand_ns = own_ns + slope() * (demand_ - report.demand_count());
  const double paid_ns =
      at_usual_demand_ns + slope() * regret_share_ * report.prefetch_wasted_count;
  return std::min(std::max(paid_ns, kLeastShare * own_ns), kOutlier * usual_ns);
}

void StepYardstick::learn(const StepReport& report, double usual_ns) {
  const double step_ns = std::min(static_cast<double>(report.step_ns), kOutlier * usual_ns);
  const double demand = report.demand_count();
  step_count_ = std::min(step_count_ + 1, kStepsMax);
  const double share = 1 / step_count_;
  follow(demand_, demand, share);
  if (last_ns_ > 0) {
    const double more = demand - last_demand_, longer_ns = step_ns - last_ns_;
    follow(spread_, more * more, share);
    follow(together_, more * longer_ns, share);
    const double rest = (longer_ns - slope() * more) / usual_ns;
    // A difference of two steps varies twice as much as one.
    if (has_learnt()) follow(noise_, rest * rest / 2, 1 / (step_count_ - kStepsMin + 1));
  }
  last_ns_ = step_ns;
  last_demand_ = demand;
}

bool StepYardstick::has_learnt() const {
  return step_count_ >= kStepsMin;
}

double StepYardstick::noise() const {
  return std::max(noise_, kNoiseMin);
}

}  // namespace sluice
