#include "lookahead/governor.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace sluice {
namespace {

// The account.
constexpr double kTryingShare = 0.010;  ///< of the time while off is the incumbent
constexpr double kTryingShareMin = 0.006;
constexpr double kTryingOfGain = 0.06;   ///< of what the incumbent gains
constexpr double kCreditStartSteps = 1;  ///< in steps
constexpr double kCreditMaxSteps = 4;
constexpr double kStakeMinSteps = 0.4;  ///< less would end most visits before they show anything

// Evidence, in standard errors.
constexpr double kProofUp = 2.25;
constexpr double kProofDown = 1.5;
constexpr double kProofForgotten = 2.5;  ///< by which recent visits contradict the long memory
constexpr double kVisitsUp = 2.5;
constexpr double kVisitsDown = 2;
constexpr double kMemoryVisits = 64;
constexpr double kRecentVisits = 4;
constexpr double kVarianceStart = 0.12 * 0.12;  ///< a step's noise of 20 %, over blocks of four
constexpr double kNoiseMin = 0.01 * 0.01;       ///< no step's time is known better than that
constexpr double kFitMinSteps = 12;
constexpr double kFitMaxSteps = 64;
constexpr double kRegretStart = 0.1;
constexpr double kRegretMinCount = 50;  ///< wasted guesses that outweigh it
constexpr double kRegretMaxCount = 500;
constexpr double kGainMin = 0.01;  ///< less is not worth trying for

// The opening.
constexpr uint64_t kOpeningStep = 6;
constexpr size_t kOpeningLevel = 2;  ///< distance 1 at full width is the best guess of what is best
constexpr size_t kOpeningBlocks = 4;   ///< a visit goes on for so long
constexpr double kOpeningGain = 0.35;  ///< if it wins that share of what can be hoped for
constexpr double kHopeToOpen = 0.04;

constexpr double kKnowledgeSteps = 128;  ///< after so many, half of it is out of date
constexpr uint64_t kRestMinSteps = 16;
constexpr uint64_t kRestMaxSteps = 512;
constexpr uint64_t kRestMaxOffSteps = 128;  ///< off is what the contract is about
constexpr uint32_t kQuietSteps = 16;
constexpr double kOutlier = 2.5;    ///< a longer step counts as so many usual ones
constexpr double kFast = 1.0 / 8;   ///< of a mean that follows some steps
constexpr double kSlow = 1.0 / 64;  ///< and of one that follows some dozens
constexpr double kShift = 0.25;     ///< relative change of time that is more than noise
constexpr double kDemandShift = 0.5;

double square(double x) {
  return x * x;
}

void follow(double& mean, double sample, double share) {
  mean += share * (sample - mean);
}

}  // namespace

void Governor::Mean::add(double sample, double sample_weight, double weight_max) {
  weight = std::min(weight + sample_weight, weight_max);
  value += (sample - value) * sample_weight / weight;
}

Governor::Governor(const GovernorOptions& options)
    : mode_(options.mode),
      regret_share_(kRegretStart),
      wasted_count_(kRegretMinCount),
      variance_(kVarianceStart) {
  const Reach most = options.most;
  CHECK(most.distance <= 3);
  if (most.distance == 0 || most.width == 0) return;
  if (most.width > 1) ladder_[level_count_++] = {1, most.width / 2};
  for (uint32_t distance = 1; distance <= most.distance; ++distance)
    ladder_[level_count_++] = {distance, most.width};
  if (mode_ == GovernorMode::fixed) incumbent_ = playing_ = level_count_ - 1;
}

void Governor::on_step(const StepReport& report) {
  if (level_count_ == 1 || mode_ == GovernorMode::fixed || report.step_ns == 0) return;
  if (step_count_++ == 0) {
    usual_ns_ = recent_ns_ = static_cast<double>(report.step_ns);
    credit_ns_ = kCreditStartSteps * usual_ns_;
    usual_demand_ = recent_demand_ = report.miss_count;
  }
  watch_conditions(report);
  count_regret(report);
  const double step_ns = comparable_ns(report);
  if (phase_ != Phase::visiting) fit(report);
  if (phase_ == Phase::playing)
    play(step_ns);
  else if (phase_ == Phase::visiting)
    visit(step_ns);
  else
    fill_block(step_ns);
}

double Governor::Fit::slope() const {
  return step_count < kFitMinSteps || spread < 0.1 ? 0 : std::max(0.0, together / spread);
}

/// What the step would have taken at the usual demand, and what it will cost later.
double Governor::comparable_ns(const StepReport& report) const {
  const double slope = fit_.slope();
  const double demand = report.miss_count + report.prefetch_useful_count;
  const double step_ns = static_cast<double>(report.step_ns) + slope * (fit_.demand - demand) +
                         slope * regret_share_ * report.prefetch_wasted_count;
  return std::clamp(step_ns, 0.3 * static_cast<double>(report.step_ns), kOutlier * usual_ns_);
}

void Governor::fit(const StepReport& report) {
  const double step_ns = std::min(static_cast<double>(report.step_ns), kOutlier * usual_ns_);
  const double demand = report.miss_count + report.prefetch_useful_count;
  fit_.step_count = std::min(fit_.step_count + 1, kFitMaxSteps);
  const double share = 1 / fit_.step_count;
  follow(fit_.demand, demand, share);
  if (fit_.last_ns > 0) {
    const double more = demand - fit_.last_demand, longer_ns = step_ns - fit_.last_ns;
    follow(fit_.spread, square(more), share);
    follow(fit_.together, more * longer_ns, share);
    const double rest = (longer_ns - fit_.slope() * more) / usual_ns_;
    if (fit_.step_count >= kFitMinSteps)
      follow(fit_.noise, square(rest) / 2, 1 / (fit_.step_count - kFitMinSteps + 1));
  }
  fit_.last_ns = step_ns;
  fit_.last_demand = demand;
}

/// A guess that is not used has taken a place, and what left for it may be missed when another
/// level plays, which then gets the blame. So each level is charged with what its guesses will
/// cost.
void Governor::count_regret(const StepReport& report) {
  wasted_count_ = std::min(wasted_count_ + report.prefetch_wasted_count, kRegretMaxCount);
  regret_share_ +=
      (report.regret_count - regret_share_ * report.prefetch_wasted_count) / wasted_count_;
  regret_share_ = std::clamp(regret_share_, 0.0, 1.0);
}

/// A visit of kBlockSteps steps is compared with twice as many.
double Governor::visit_variance() const {
  return std::max(fit_.noise, kNoiseMin) * (1.0 / kBlockSteps + 0.5 / kBlockSteps);
}

void Governor::watch_conditions(const StepReport& report) {
  const double step_ns = static_cast<double>(report.step_ns);
  const uint32_t demand = report.miss_count + report.prefetch_useful_count;
  quiet_steps_ = demand == 0 ? quiet_steps_ + 1 : 0;
  if (quiet_steps_ == kQuietSteps && incumbent_ != kOff) {
    make_incumbent(kOff);
    rivals_ = {};  // When misses return, all is open again.
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
    on_shift();
  }
}

/// An incumbent's step outside of a visit: send a rival when one is worth its credit.
void Governor::play(double step_ns) {
  earn(step_ns);
  block_[block_steps_++ % kBlockSteps] = step_ns;
  if (std::abs(recent_ns_ / usual_ns_ - 1) > kShift) {
    usual_ns_ = recent_ns_;
    on_shift();
  }
  if (visit_count_ == 0 && step_count_ >= kOpeningStep && hope_ > kHopeToOpen)
    return send(std::min(kOpeningLevel, level_count_ - 1));
  if (fit_.step_count < kFitMinSteps) return;
  const size_t level = choose_rival();
  if (level != incumbent_) send(level);
}

void Governor::send(size_t level) {
  if (visit_count_ == 0) variance_ = 2 * visit_variance();
  rival_ = playing_ = level;
  phase_ = Phase::visiting;
  before_ns_ = block_mean();
  visit_ns_ = 0;
  visit_steps_ = 0;
  ++visit_count_;
}

/// The first step of a visit pays like the others, but shows little: nothing was prefetched for it
/// before. It is left out of the comparison.
void Governor::visit(double step_ns) {
  credit_ns_ -= step_ns - before_ns_;
  if (visit_steps_++ > 0) visit_ns_ += step_ns;
  const bool bankrupt = credit_ns_ < 0 && visit_steps_ > 1;
  if (bankrupt) return settle();
  if (visit_steps_ <= kBlockSteps) return;
  const double gain = 1 - visit_ns_ / static_cast<double>(visit_steps_ - 1) / before_ns_;
  const bool is_opening = visit_count_ == 1 && gain > kOpeningGain * hope_;
  if (!is_opening) return settle();
  if (visit_steps_ <= kOpeningBlocks * kBlockSteps) return;
  learn(rivals_[rival_], gain, kVisitsDown);
  make_incumbent(rival_);
}

/// Lets the incumbent fill a block anew.
void Governor::settle() {
  playing_ = incumbent_;
  phase_ = Phase::settling;
  block_steps_ = 0;
  settled_steps_ = 0;
}

/// The first step still profits or suffers from the level before.
void Governor::fill_block(double step_ns) {
  earn(step_ns);
  if (settled_steps_++ == 0) return;
  block_[block_steps_++] = step_ns;
  if (block_steps_ < kBlockSteps) return;
  phase_ = Phase::playing;
  if (visit_steps_ > 0) judge_visit();
}

void Governor::judge_visit() {
  const double measured_steps = static_cast<double>(visit_steps_ - 1);
  const double visit_mean = visit_ns_ / measured_steps;
  const double gain = 1 - visit_mean / ((before_ns_ + block_mean()) / 2);
  visit_steps_ = 0;
  Rival& rival = rivals_[rival_];
  rival.visited_step = step_count_;
  learn(rival, std::clamp(gain, -1.0, 1.0), measured_steps / kBlockSteps);

  const bool up = rival_ > incumbent_;
  const double proof = (up ? kProofUp : kProofDown) * error_of(rival);
  const double visits = up ? kVisitsUp : kVisitsDown;
  if (rival.gain.weight >= visits && rival.gain.value > proof) return make_incumbent(rival_);

  const bool hopeless = rival.gain.value + 2 * error_of(rival) < kGainMin;
  const bool known = rival.gain.weight >= kMemoryVisits;
  if (hopeless || known) {
    const uint64_t most = rival_ == kOff ? kRestMaxOffSteps : kRestMaxSteps;
    rest(rival, std::clamp(2 * rival.rest_steps, kRestMinSteps, most));
  }
}

/// When a few recent visits contradict the long memory, conditions have changed, and it is they
/// that count.
void Governor::learn(Rival& rival, double gain, double weight) {
  if (rival.gain.weight >= 2) {
    const double off = std::min(square(gain - rival.gain.value) * weight, 9 * variance_);
    follow(variance_, off * rival.gain.weight / (rival.gain.weight + 1),
           std::max(kSlow * 2, 1 / (3 + static_cast<double>(visit_count_))));
  }
  variance_ = std::max(variance_, visit_variance() / 2);
  rival.gain.add(gain, weight, kMemoryVisits);
  rival.recent_gain.add(gain, weight, kRecentVisits);
  if (rival.gain.weight <= kRecentVisits) return;
  const double contradiction = std::abs(rival.gain.value - rival.recent_gain.value);
  const double recent_error = std::sqrt(variance_ / (2 * kRecentVisits - 1));
  if (contradiction > kProofForgotten * recent_error) rival.gain = rival.recent_gain;
}

void Governor::rest(Rival& rival, uint64_t steps) {
  rival.rest_steps = steps;
  rival.due_step = step_count_ + steps;
}

/// All gains were measured against the old incumbent; from now on they are against the new one. Who
/// wins does so by luck as well as by merit: the others are not judged by the luck, and the loser
/// soon gets another chance.
void Governor::make_incumbent(size_t level) {
  const Mean winner = rivals_[level].gain;
  const double proven_gain = std::max(0.0, winner.value - error_of(rivals_[level]));
  const double rebase = 1 / (1 - proven_gain);
  rivals_[incumbent_].gain = {0, winner.weight};
  for (Rival& rival : rivals_) {
    rival.gain.value = 1 - (1 - rival.gain.value) * rebase;
    rival.gain.weight = std::min(rival.gain.weight, winner.weight);
    rival.recent_gain = rival.gain;
    rest(rival, 0);
  }
  Rival& loser = rivals_[incumbent_];
  loser.gain = {loser.gain.value / 2, std::min(loser.gain.weight, kVisitsDown)};
  loser.recent_gain = loser.gain;
  rest(loser, kRestMinSteps);
  incumbent_ = level;
  usual_ns_ /= rebase;
  recent_ns_ = usual_ns_;
  ++change_count_;
  visit_steps_ = 0;  // What an interrupted visit has seen is not judged.
  settle();
}

/// Conditions have changed: what was known is half forgotten, and nobody rests.
void Governor::on_shift() {
  for (Rival& rival : rivals_) {
    rest(rival, 0);
    rival.gain = {rival.gain.value / 2, std::min(rival.gain.weight, 1.0)};
    rival.recent_gain = rival.gain;
  }
}

/// The rival of which most can be hoped, among those that have rested; but off goes first when its
/// turn has come, for the contract is about off. The incumbent when nobody is to visit.
size_t Governor::choose_rival() const {
  if (credit_ns_ <= 0 || (incumbent_ == kOff && hope_ < kGainMin)) return incumbent_;
  const auto may_go = [&](size_t level) {
    return level != incumbent_ && rivals_[level].due_step <= step_count_ && can_afford(level);
  };
  if (may_go(kOff)) return kOff;
  size_t best = incumbent_;
  double most_hoped = -2;
  for (size_t level = 1; level < level_count_; ++level) {
    const double hoped = hoped_gain(level);
    if (!may_go(level) || hoped < most_hoped) continue;
    most_hoped = hoped;
    best = level;
  }
  return best;
}

/// Whether the account bears what the visit may be hoped to cost. (A full one bears any.)
bool Governor::can_afford(size_t level) const {
  const double loss = std::max(0.0, -hoped_gain(level));
  const double price = loss * (kBlockSteps + 1) * usual_ns_;
  return credit_ns_ >=
         std::clamp(price, kStakeMinSteps * usual_ns_, 0.9 * kCreditMaxSteps * usual_ns_);
}

double Governor::error_of(const Rival& rival) const {
  return std::sqrt(variance_ / std::max(rival.gain.weight, 0.5));
}

/// What is known from long ago leaves more to hope.
double Governor::hoped_gain(size_t level) const {
  const Rival& rival = rivals_[level];
  const double age = static_cast<double>(step_count_ - rival.visited_step) / kKnowledgeSteps;
  return rival.gain.value + error_of(rival) * std::sqrt(1 + age);
}

void Governor::earn(double step_ns) {
  double share = kTryingShare;
  if (incumbent_ != kOff)
    share = std::clamp(-kTryingOfGain * rivals_[kOff].gain.value, kTryingShareMin, share);
  credit_ns_ = std::min(credit_ns_ + share * step_ns, kCreditMaxSteps * usual_ns_);
  follow(usual_ns_, step_ns, std::max(kSlow, 1 / static_cast<double>(step_count_)));
  follow(recent_ns_, step_ns, kFast);
}

double Governor::block_mean() const {
  return std::accumulate(block_.begin(), block_.end(), 0.0) / kBlockSteps;
}

}  // namespace sluice
