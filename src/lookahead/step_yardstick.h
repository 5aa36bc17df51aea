// Makes decode steps comparable. The governor wants to know what a level of lookahead does to a
// step; what it sees is mostly the text, which wants more experts at one token and fewer at the
// next. So a step counts with the time that it would have taken
//
//   at the usual demand: how times go with demand is learnt from one step to the next, so that a
//   drift of either says nothing;
//
//   had it paid for its guesses: one that is not used has taken a place, and what left for it may
//   be missed when another level plays, which then gets the blame. Each level is charged with what
//   its wrong guesses will cost: the share of them that has thrown out an expert which was then
//   missed (a *regret*, experts/expert_cache.h), times what a miss adds to a step.
//
// Nothing allocates. One thread at a time.
#pragma once

#include "lookahead/step_report.h"

namespace sluice {

class StepYardstick {
 public:
  /// Learns what wrong guesses cost later. For every step, before it is measured.
  void count_regret(const StepReport& report);

  /// What the step counts with. `usual_ns`: a usual step's time; a freak counts as a few of those.
  double measure_ns(const StepReport& report, double usual_ns) const;

  /// Learns how time goes with demand. For steps of one level that follow each other.
  void learn(const StepReport& report, double usual_ns);
  bool has_learnt() const;

  /// How much measured steps of one level differ by chance: a variance, with a usual step as 1.
  double noise() const;

 private:
  double slope() const;

  double demand_ = 0;      ///< mean
  double spread_ = 0;      ///< mean square of its change
  double together_ = 0;    ///< mean product of its change and the time's
  double noise_ = 0;       ///< what is left, squared, as a share of the time
  double step_count_ = 0;  ///< learnt from, up to a limit
  double last_demand_ = 0;
  double last_ns_ = 0;

  /// Regrets for each wasted guess; those that right guesses cause are counted with them.
  double regret_share_ = 0.1;
  double wasted_count_ = 50;  ///< that it rests on, up to a limit; at first, what outweighs a guess
};

}  // namespace sluice
