// How far and how wide to look ahead, found out while running. Prefetch pays where the drive would
// be idle and predictions are good; elsewhere it costs (published trials: from −38 % to +5 %), and
// no formula tells in advance which it will be. So the governor tries, with a contract:
//
//   prefetch never costs more than 2 % against none, and is used where it pays.
//
// The idea is a champion that is challenged on credit. One level, the *incumbent*, plays. Now and
// then another, the *rival*, plays a *visit* of a few tokens between two stretches of the incumbent
// (A B A: a steady trend, such as a cache that warms up, cancels out). The parts:
//
//   step_yardstick   makes steps comparable: what counts is not a step's time as it is but what it
//                    would have been at the usual demand, had it paid for its guesses
//   visit_account    pays for visits, and ends one that costs more than it holds. The second
//                    percent of the contract is for wrong decisions until they are found out
//   visit_records    what visits have shown of each level, and whether that is more than noise,
//                    without which the incumbent stays
//
// A rival that turns out faster costs nothing and is seen again at once; one that is clearly slower
// rests twice as long each time, until conditions shift.
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
#include "lookahead/step_report.h"
#include "lookahead/step_yardstick.h"
#include "lookahead/visit_account.h"
#include "lookahead/visit_records.h"

namespace sluice {

enum class GovernorMode : uint8_t {
  adaptive,
  fixed,  ///< always the highest level
};

struct GovernorOptions {
  Reach most = {.distance = 2, .width = 8};
  GovernorMode mode = GovernorMode::adaptive;
};

class Governor {
 public:
  explicit Governor(const GovernorOptions& options);

  /// For the next decode step.
  Reach level() const { return ladder_[playing_]; }
  void on_step(const StepReport& report);

  /// The level that has proven best so far, which level() leaves for visits only.
  Reach incumbent() const { return ladder_[incumbent_]; }
  uint64_t visit_count() const { return records_.visit_count(); }

 private:
  /// The ladder: off; distance 1 at half the width; then distances 1, 2, 3 at full width.
  static constexpr size_t kLevelMax = VisitRecords::kLevelMax;
  static_assert(kLevelMax == 2 + kDistanceMax);
  static constexpr size_t kOff = 0;
  static constexpr size_t kBlockSteps = 4;  ///< measured at each side of a comparison

  /// settling → playing → visiting → settling; a visit is judged when the incumbent has settled.
  enum class Phase : uint8_t { settling, playing, visiting };

  /// The incumbent's latest steps, in ns.
  struct Block {
    std::array<double, kBlockSteps> step_ns{};
    size_t step_count = 0;  ///< since it was begun

    void add(double ns) { step_ns[step_count++ % kBlockSteps] = ns; }
    double mean_ns() const;
  };

  void watch_conditions(const StepReport& report);
  void play(double step_ns);
  void send(size_t level);
  void visit(double step_ns);
  void settle();
  void fill_block(double step_ns);
  void judge_visit();
  void make_incumbent(size_t level);
  void earn(double step_ns);
  size_t choose_rival() const;
  bool can_afford(size_t level) const;
  double visit_variance() const;
  /// All steps of the visit but the first, of which there are visit_steps_ − 1.
  double visit_gain_against(double incumbent_ns) const;

  std::array<Reach, kLevelMax> ladder_{};
  size_t level_count_ = 1;
  size_t opening_level_ = kOff;
  GovernorMode mode_;

  size_t incumbent_ = kOff;
  size_t playing_ = kOff;
  size_t rival_ = kOff;  ///< the level that visits, or did last
  Phase phase_ = Phase::settling;
  uint64_t step_count_ = 0;

  StepYardstick yardstick_;
  VisitAccount account_;
  VisitRecords records_;

  Block block_;
  size_t settled_steps_ = 0;
  double before_ns_ = 0;    ///< a step before the visit
  double visit_ns_ = 0;     ///< all steps of the visit but the first
  size_t visit_steps_ = 0;  ///< 0: there is none to be judged

  double usual_ns_ = 0;      ///< an incumbent's step, over some dozens of steps
  double recent_ns_ = 0;     ///< over the last few
  double usual_demand_ = 0;  ///< of a step, see StepReport
  double recent_demand_ = 0;
  double hope_ = 0;           ///< share of a step that prefetch could win at most; known while off
  uint32_t quiet_steps_ = 0;  ///< in a row without demand
};

}  // namespace sluice
