#include "lookahead/governor.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "lookahead/running_mean.h"

namespace sluice {
namespace {

// The opening.
constexpr uint64_t kOpeningStep = 6;
constexpr size_t kOpeningBlocks = 4;   ///< a visit goes on for so long
constexpr double kOpeningGain = 0.35;  ///< if it wins that share of what can be hoped for
constexpr double kHopeToOpen = 0.04;

constexpr uint64_t kRestMaxSteps = 512;
constexpr uint64_t kRestMaxOffSteps = 128;  ///< off is what the contract is about
constexpr uint32_t kQuietSteps = 16;
constexpr double kFast = 1.0 / 8;   ///< of a mean that follows some steps
constexpr double kSlow = 1.0 / 64;  ///< and of one that follows some dozens
constexpr double kShift = 0.25;     ///< relative change of time that is more than noise
constexpr double kDemandShift = 0.5;

}  // namespace

double Governor::Block::mean_ns() const {
  return std::accumulate(step_ns.begin(), step_ns.end(), 0.0) / kBlockSteps;
}

Governor::Governor(const GovernorOptions& options) : mode_(options.mode) {
  const Reach most = options.most;
  CHECK(most.distance <= kDistanceMax);
  if (most.distance == 0 || most.width == 0) return;
  if (most.width > 1) ladder_[level_count_++] = {1, most.width / 2};
  opening_level_ = level_count_;  // distance 1 at full width is the best guess of what is best
  for (uint32_t distance = 1; distance <= most.distance; ++distance)
    ladder_[level_count_++] = {distance, most.width};
  if (mode_ == GovernorMode::fixed) incumbent_ = playing_ = level_count_ - 1;
}

void Governor::on_step(const StepReport& report) {
  if (level_count_ == 1 || mode_ == GovernorMode::fixed || report.step_ns == 0) return;
  if (step_count_++ == 0) {
    usual_ns_ = recent_ns_ = static_cast<double>(report.step_ns);
    usual_demand_ = recent_demand_ = report.miss_count;
    account_.open(usual_ns_);
  }
  watch_conditions(report);
  yardstick_.count_regret(report);
  const double step_ns = yardstick_.measure_ns(report, usual_ns_);
  if (phase_ != Phase::visiting) yardstick_.learn(report, usual_ns_);
  if (phase_ == Phase::playing)
    play(step_ns);
  else if (phase_ == Phase::visiting)
    visit(step_ns);
  else
    fill_block(step_ns);
}

void Governor::watch_conditions(const StepReport& report) {
  const double step_ns = static_cast<double>(report.step_ns);
  const uint32_t demand = report.demand_count();
  quiet_steps_ = demand == 0 ? quiet_steps_ + 1 : 0;
  if (quiet_steps_ == kQuietSteps && incumbent_ != kOff) {
    make_incumbent(kOff);
    records_.forget();  // When misses return, all is open again.
    hope_ = 0;
  }
  if (playing_ == kOff) {
    const double stall = static_cast<double>(report.stall_ns) / step_ns;
    const double idle = 1 - static_cast<double>(report.drive_busy_ns) / step_ns;
    follow(hope_, std::clamp(std::min(stall, idle), 0.0, 1.0), step_count_ == 1 ? 1 : kFast);
  }
  follow(recent_demand_, demand, kFast);
  follow(usual_demand_, demand, kSlow);
  if (std::abs(recent_demand_ - usual_demand_) > kDemandShift * usual_demand_ + 0.5) {
    usual_demand_ = recent_demand_;
    records_.half_forget(step_count_);
  }
}

/// An incumbent's step outside of a visit: send a rival when one is worth its credit.
void Governor::play(double step_ns) {
  earn(step_ns);
  block_.add(step_ns);
  if (std::abs(recent_ns_ / usual_ns_ - 1) > kShift) {
    usual_ns_ = recent_ns_;
    records_.half_forget(step_count_);
  }
  if (visit_count() == 0 && step_count_ >= kOpeningStep && hope_ > kHopeToOpen)
    return send(opening_level_);
  if (!yardstick_.has_learnt()) return;
  const size_t level = choose_rival();
  if (level != incumbent_) send(level);
}

void Governor::earn(double step_ns) {
  const double share = incumbent_ == kOff ? VisitAccount::kShareWhileOff
                                          : VisitAccount::share_of(-records_.gain(kOff));
  account_.earn(share * step_ns, usual_ns_);
  follow(usual_ns_, step_ns, std::max(kSlow, 1 / static_cast<double>(step_count_)));
  follow(recent_ns_, step_ns, kFast);
}

/// The rival of which most can be hoped, among those that have rested; but off goes first when its
/// turn has come, for the contract is about off. The incumbent when nobody is to visit.
size_t Governor::choose_rival() const {
  const bool is_hopeless = incumbent_ == kOff && hope_ < VisitRecords::kGainMin;
  if (account_.is_empty() || is_hopeless) return incumbent_;
  const auto may_go = [&](size_t level) {
    return level != incumbent_ && records_.is_rested(level, step_count_) && can_afford(level);
  };
  if (may_go(kOff)) return kOff;
  size_t best = incumbent_;
  double most_hoped = -2;
  for (size_t level = 1; level < level_count_; ++level) {
    const double hoped = records_.hoped_gain(level, step_count_);
    if (!may_go(level) || hoped < most_hoped) continue;
    most_hoped = hoped;
    best = level;
  }
  return best;
}

bool Governor::can_afford(size_t level) const {
  const double loss = std::max(0.0, -records_.hoped_gain(level, step_count_));
  return account_.bears(loss * (kBlockSteps + 1) * usual_ns_, usual_ns_);
}

void Governor::send(size_t level) {
  records_.begin_visit(visit_variance());
  rival_ = playing_ = level;
  phase_ = Phase::visiting;
  before_ns_ = block_.mean_ns();
  visit_ns_ = 0;
  visit_steps_ = 0;
}

/// A visit of kBlockSteps steps is compared with twice as many.
double Governor::visit_variance() const {
  return yardstick_.noise() * (1.0 / kBlockSteps + 0.5 / kBlockSteps);
}

/// The first step of a visit pays like the others, but shows little: nothing was prefetched for it
/// before. It is left out of the comparison.
void Governor::visit(double step_ns) {
  account_.pay(step_ns - before_ns_);
  if (visit_steps_++ > 0) visit_ns_ += step_ns;
  if (account_.is_overdrawn() && visit_steps_ > 1) return settle();
  if (visit_steps_ <= kBlockSteps) return;
  const double gain = visit_gain_against(before_ns_);
  const bool is_opening = visit_count() == 1 && gain > kOpeningGain * hope_;
  if (!is_opening) return settle();
  if (visit_steps_ <= kOpeningBlocks * kBlockSteps) return;
  records_.learn(rival_, gain, VisitRecords::kVisitsDown, visit_variance());
  make_incumbent(rival_);
}

double Governor::visit_gain_against(double incumbent_ns) const {
  return 1 - visit_ns_ / static_cast<double>(visit_steps_ - 1) / incumbent_ns;
}

/// Lets the incumbent fill a block anew.
void Governor::settle() {
  playing_ = incumbent_;
  phase_ = Phase::settling;
  block_.step_count = 0;
  settled_steps_ = 0;
}

/// The first step still profits or suffers from the level before.
void Governor::fill_block(double step_ns) {
  earn(step_ns);
  if (settled_steps_++ == 0) return;
  block_.add(step_ns);
  if (block_.step_count < kBlockSteps) return;
  phase_ = Phase::playing;
  if (visit_steps_ > 0) judge_visit();
}

void Governor::judge_visit() {
  const double gain = visit_gain_against((before_ns_ + block_.mean_ns()) / 2);
  const double weight = static_cast<double>(visit_steps_ - 1) / kBlockSteps;
  visit_steps_ = 0;
  records_.note_visited(rival_, step_count_);
  records_.learn(rival_, std::clamp(gain, -1.0, 1.0), weight, visit_variance());
  const auto proof = rival_ > incumbent_ ? VisitRecords::Proof::up : VisitRecords::Proof::down;
  if (records_.is_proven(rival_, proof)) return make_incumbent(rival_);
  if (records_.has_shown_all(rival_))
    records_.let_rest(rival_, step_count_, rival_ == kOff ? kRestMaxOffSteps : kRestMaxSteps);
}

void Governor::make_incumbent(size_t level) {
  usual_ns_ /= records_.crown(level, incumbent_, step_count_);
  recent_ns_ = usual_ns_;
  incumbent_ = level;
  visit_steps_ = 0;  // What an interrupted visit has seen is not judged.
  settle();
}

}  // namespace sluice
