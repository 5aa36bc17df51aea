// What visits have shown of each level: how much a step gains when it plays instead of the
// incumbent, how sure that is, and when the next visit is due. A gain of 0.1 means that a step
// takes 10 % less.
//
// Each level has two means, one that remembers long, to see small differences, and one of the last
// few visits: where the two contradict each other conditions have changed, and the recent one
// counts. How far visits of one level scatter is learnt over all levels, since noise is the
// machine's. A level that has nothing more to show for now rests, twice as long each time.
//
// Gains are against the incumbent, whose own record means nothing; crown() restates them when
// another takes its place. Steps are counted by the governor. Nothing allocates. One thread at a
// time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "lookahead/running_mean.h"

namespace sluice {

class VisitRecords {
 public:
  static constexpr size_t kLevelMax = 5;
  /// What proves a level better: a step up the ladder needs more of it than a step down.
  enum class Proof : uint8_t { up, down };
  /// Visits that are proof of a step down, and what a loser is still known by.
  static constexpr double kVisitsDown = 2;
  static constexpr double kGainMin = 0.01;  ///< less is not worth trying for

  double gain(size_t level) const { return records_[level].gain.value; }
  /// The gain that a level may have with some luck; what is known from long ago leaves more to
  /// hope.
  double hoped_gain(size_t level, uint64_t step) const;

  /// A visit begins. `variance` is that of its gain, as far as the noise of steps explains it.
  void begin_visit(double variance);
  uint64_t visit_count() const { return visit_count_; }
  /// What the visit has shown. `weight`: 1 for one of full length.
  void learn(size_t level, double gain, double weight, double variance);

  bool is_proven(size_t level, Proof proof) const;
  /// Nothing more is to be seen of it for now: it is hopeless, or known well.
  bool has_shown_all(size_t level) const;
  /// Twice as long as last time, but at most so many steps.
  void let_rest(size_t level, uint64_t step, uint64_t steps_max);
  bool is_rested(size_t level, uint64_t step) const { return records_[level].due_step <= step; }
  void note_visited(size_t level, uint64_t step) { records_[level].visited_step = step; }

  /// The winner takes the loser's place; nobody rests but the loser, for a while. By what factor a
  /// step is now shorter.
  double crown(size_t winner, size_t loser, uint64_t step);
  /// Conditions have shifted: what was known is half forgotten, and nobody rests.
  void half_forget(uint64_t step);
  void forget() { records_ = {}; }

 private:
  struct Record {
    WeightedMean gain;
    WeightedMean recent_gain;
    uint64_t visited_step = 0;  ///< last
    uint64_t due_step = 0;      ///< not before this step again
    uint64_t rest_steps = 0;

    /// Nothing is known but this.
    void restate(const WeightedMean& known) { gain = recent_gain = known; }
    void rest(uint64_t step, uint64_t steps) {
      rest_steps = steps;
      due_step = step + steps;
    }
  };
  double error_of(const Record& record) const;
  void learn_scatter(const Record& record, double gain, double weight, double variance);

  std::array<Record, kLevelMax> records_{};
  /// Of the gain that one visit shows. At first a guess: steps of 20 % noise, in blocks of four.
  double variance_ = 0.12 * 0.12;
  uint64_t visit_count_ = 0;
};

}  // namespace sluice
