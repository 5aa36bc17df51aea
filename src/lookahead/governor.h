// How far and how wide to look ahead, found out while running. Prefetch pays where the drive would
// be idle and predictions are good; elsewhere it costs (published trials: from −38 % to +5 %), and
// no formula tells in advance which it will be. So the governor tries, with a contract:
//
//   prefetch never costs more than 2 % against none, and is used where it pays.
//
// The idea is a champion that is challenged on credit. One level, the *incumbent*, plays. Now and
// then another, the *rival*, plays a *visit* of a few tokens between two stretches of the incumbent
// (A B A: a steady trend, such as a cache that warms up, cancels out). What visits show is averaged
// for each level, and the incumbent changes on evidence beyond the noise only: a step up the ladder
// needs more of it than a step down.
//
// Visits are paid from an account. Each step of the incumbent earns a share of its time (1 % while
// that is off; else 6 % of what it gains against off, at most 1 %). A visit pays what it took
// longer than the incumbent would have, and stops when the account is empty. So the arithmetic of
// the contract is that of the account: trying costs 1 % of the time and the one step that the
// account holds at the start, whatever the rivals do; the second percent is for wrong decisions
// until they are found out. A rival that turns out faster costs nothing and is seen again at once;
// one that is clearly slower rests twice as long each time, until conditions shift.
//
// What is compared is not a step's time as it is but what it would have been at the usual demand
// (misses, and those that prefetch saved): one token wants more experts than the next, and that is
// most of the noise. A level is also charged with what its wrong guesses will cost when somebody
// else plays: the share of them that has thrown out an expert which was then missed (a *regret*,
// experts/expert_cache.h), times what a miss adds to a step.
//
// The first visit, the *opening*, comes after a few steps, goes to distance 1 at full width, and
// lasts as long as it wins a good share of what can be hoped for; then that level is the incumbent.
// So a short reply has most of the gain, and what it may lose is still bounded by the account.
//
// Where nothing can be won nothing is tried: prefetch moves reads out of the stall into the time
// the drive is idle, so it gains at most the smaller of the two. With all experts resident the
// level is off, no router runs early, and the first misses wake the governor.
//
// In simulation (governor_test.cc; runs of 3,000 tokens, noise up to 20 % a step, 40 seeds each):
// where prefetch hurts, 0.2 to 1.2 % slower than off, at worst (of 800 runs) 2.5 %; where it pays
// by 24 %, 85 to 96 % of that are won, where by 8 %, 87 to 95 %. A run of 400 tokens where it hurts
// costs 1.4 %, at worst (of 200) 4.7 %; one of 96 where it pays wins 80 % of the gain. The rest of
// the gain is what checking against off costs. With the real parts around it, on simulated drives:
// docs/streaming.md, "Simulated".
//
// Deterministic: no clock, no randomness, no allocation. One thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "lookahead/reach.h"

namespace sluice {

/// What a decode step of one token took, and what its prefetches were worth.
struct StepReport {
  uint64_t step_ns = 0;
  uint64_t stall_ns = 0;       ///< of it: computing waited for experts
  uint64_t drive_busy_ns = 0;  ///< of it: at least one read was in service
  uint32_t miss_count = 0;
  uint32_t prefetch_useful_count = 0;
  uint32_t prefetch_wasted_count = 0;
  uint32_t regret_count = 0;  ///< misses of experts that had left for such a wasted one
};

enum class GovernorMode : uint8_t {
  adaptive,
  fixed,  ///< always the highest level
};

struct GovernorOptions {
  Reach most = {.distance = 2, .width = 8};  ///< distance at most 3
  GovernorMode mode = GovernorMode::adaptive;
};

class Governor {
 public:
  /// The ladder: off; distance 1 at half the width; then distances 1, 2, 3 at full width.
  static constexpr size_t kLevelMax = 5;

  explicit Governor(const GovernorOptions& options);

  /// For the next decode step.
  Reach level() const { return ladder_[playing_]; }
  void on_step(const StepReport& report);

  /// The level that has proven best so far, which level() leaves for visits only.
  Reach incumbent() const { return ladder_[incumbent_]; }
  uint64_t change_count() const { return change_count_; }  ///< of the incumbent
  uint64_t visit_count() const { return visit_count_; }

 private:
  static constexpr size_t kOff = 0;
  static constexpr size_t kBlockSteps = 4;  ///< measured at each side of a comparison

  /// Visits leave a running mean: an average at first, later one that forgets.
  struct Mean {
    double value = 0;
    double weight = 0;

    void add(double sample, double sample_weight, double weight_max);
  };

  /// What visits have shown of a level. A gain of 0.1: a step takes 10 % less than the incumbent's.
  struct Rival {
    Mean gain;                  ///< remembers long, to see small differences
    Mean recent_gain;           ///< remembers a few visits, to see changes
    uint64_t visited_step = 0;  ///< last
    uint64_t due_step = 0;      ///< not before this step again
    uint64_t rest_steps = 0;
  };

  /// settling → playing → visiting → settling; a visit is judged when the incumbent has settled.
  enum class Phase : uint8_t { settling, playing, visiting };

  /// How a step's time goes with its demand, seen from one step of the incumbent to the next. Texts
  /// want more at one token and less at another, which says nothing about a level; what is compared
  /// is therefore what a step would have taken at the usual demand.
  struct Fit {
    double demand = 0;      ///< mean
    double spread = 0;      ///< mean square of its change
    double together = 0;    ///< mean product of its change and the time's
    double noise = 0;       ///< what is left, squared, as a share of the time
    double step_count = 0;  ///< seen, up to a limit
    double last_demand = 0;
    double last_ns = 0;
    double slope() const;  ///< time that one missing expert adds
  };

  void watch_conditions(const StepReport& report);
  void count_regret(const StepReport& report);
  double comparable_ns(const StepReport& report) const;
  void fit(const StepReport& report);
  double visit_variance() const;
  void play(double step_ns);
  void send(size_t level);
  void visit(double step_ns);
  void settle();
  void fill_block(double step_ns);
  void judge_visit();
  void learn(Rival& rival, double gain, double weight);
  void make_incumbent(size_t level);
  void rest(Rival& rival, uint64_t steps);
  void on_shift();
  void earn(double step_ns);
  size_t choose_rival() const;
  bool can_afford(size_t level) const;
  double error_of(const Rival& rival) const;
  double hoped_gain(size_t level) const;
  double block_mean() const;

  std::array<Reach, kLevelMax> ladder_{};
  size_t level_count_ = 1;
  GovernorMode mode_;

  size_t incumbent_ = kOff;
  size_t playing_ = kOff;
  size_t rival_ = kOff;  ///< the level that visits, or did last
  Phase phase_ = Phase::settling;
  uint64_t step_count_ = 0;
  std::array<Rival, kLevelMax> rivals_{};  ///< [level]; the incumbent's own entry means nothing
  /// Of wasted guesses, the share that have thrown out an expert which is missed later on.
  double regret_share_;
  double wasted_count_ = 0;  ///< that it rests on, up to a limit
  double variance_;          ///< of the gain that one visit shows
  Fit fit_;

  std::array<double, kBlockSteps> block_{};  ///< the incumbent's latest steps, in ns
  size_t block_steps_ = 0;
  size_t settled_steps_ = 0;
  double before_ns_ = 0;  ///< a step before the visit
  double visit_ns_ = 0;   ///< all steps of the visit
  size_t visit_steps_ = 0;
  double credit_ns_ = 0;

  double usual_ns_ = 0;      ///< an incumbent's step, over some dozens of steps
  double recent_ns_ = 0;     ///< over the last few
  double usual_demand_ = 0;  ///< misses, and those that prefetch saved, a step
  double recent_demand_ = 0;
  double hope_ = 0;           ///< share of a step that prefetch could win at most; known while off
  uint32_t quiet_steps_ = 0;  ///< in a row without a miss or a useful prefetch

  uint64_t change_count_ = 0;
  uint64_t visit_count_ = 0;
};

}  // namespace sluice
