#include "lookahead/governor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <deque>
#include <string>
#include <vector>

#include "base/random.h"

namespace sluice {
namespace {

constexpr uint32_t kWidth = 8;
constexpr Reach kOff = {0, 0};
constexpr std::array<Reach, 5> kLadder = {
    {kOff, {1, kWidth / 2}, {1, kWidth}, {2, kWidth}, {3, kWidth}}};

/// A machine on paper, described by a few numbers. Prefetch moves reads into the time of computing,
/// as far as they are foreseen, in time, and the drive can take them; and it costs memory
/// bandwidth, routers, cache space and the drive's attention.
struct Machine {
  double compute_ms = 100;
  double read_ms = 2.5;                                  ///< one expert
  double miss_count = 40;                                ///< a step, without prefetch
  std::array<double, 3> recall = {0.70, 0.60, 0.52};     ///< [distance − 1]
  std::array<double, 3> precision = {0.80, 0.70, 0.60};  ///< [distance − 1]
  std::array<double, 3> in_time = {0.80, 0.95, 1.00};    ///< [distance − 1]
  double narrow_recall = 0.65;                           ///< half the width's, of the full width's
  double narrow_precision = 1.25;
  double router_ms = 0.3;    ///< for each distance
  double contention = 0.03;  ///< of the time spent prefetching, added to computing
  double pollution = 0.05;   ///< misses that a wasted prefetch causes at once
  double regret = 0;         ///< misses that it causes some steps later, whatever plays then
  double blocking = 0.1;     ///< of the prefetching that exceeds computing, delays demand
};

constexpr Machine pays() {
  return {};
}
constexpr Machine hurts() {
  return {.recall = {0.3, 0.25, 0.2}, .precision = {0.3, 0.25, 0.2}, .contention = 0.6};
}
constexpr Machine hurts_a_little() {
  return {.recall = {0.2, 0.18, 0.15}, .precision = {0.3, 0.25, 0.2}, .contention = 0.3};
}
constexpr Machine slow_drive() {
  return {.compute_ms = 20,
          .read_ms = 7,
          .precision = {0.6, 0.5, 0.4},
          .contention = 0.3,
          .blocking = 0.4};
}
constexpr Machine all_resident() {
  return {.miss_count = 0};
}
constexpr Machine far_is_best() {
  return {.precision = {0.9, 0.85, 0.8}, .in_time = {0.1, 0.5, 1.0}};
}
constexpr Machine near_is_best() {
  return {.precision = {0.8, 0.4, 0.25}, .pollution = 0.3};
}
constexpr Machine pays_a_little() {
  return {.miss_count = 8};
}

constexpr Machine costs_later() {
  return {.precision = {0.5, 0.45, 0.4}, .narrow_precision = 1, .pollution = 0, .regret = 0.9};
}

struct Step {
  double compute_ms = 0, stall_ms = 0, busy_ms = 0, misses = 0, useful = 0, wasted = 0;
  double ms() const { return compute_ms + stall_ms; }
};

Step simulate(const Machine& machine, Reach level, double miss_count) {
  if (level == kOff) {
    const double stall = miss_count * machine.read_ms;
    return {machine.compute_ms, stall, stall, miss_count, 0, 0};
  }
  const size_t d = level.distance - 1;
  const bool narrow = level.width < kWidth;
  const double recall = machine.recall[d] * (narrow ? machine.narrow_recall : 1);
  const double precision =
      std::min(1.0, machine.precision[d] * (narrow ? machine.narrow_precision : 1));
  const double foreseen = miss_count * recall;
  const double wasted = foreseen * (1 / precision - 1);
  const double prefetch_ms = (foreseen + wasted) * machine.read_ms;
  const double fits = std::min(1.0, machine.compute_ms / std::max(prefetch_ms, 1e-9));
  const double useful = foreseen * machine.in_time[d] * fits;
  const double misses = miss_count - useful + machine.pollution * wasted * fits;
  const double excess_ms = std::max(0.0, prefetch_ms - machine.compute_ms);
  const double stall = misses * machine.read_ms + machine.blocking * excess_ms;
  const double compute = machine.compute_ms + machine.router_ms * level.distance +
                         machine.contention * prefetch_ms * fits;
  return {compute, stall, stall + prefetch_ms * fits, misses, useful, wasted};
}

struct Phase {
  Machine machine;
  int step_count;
};

/// What may disturb the governor.
struct Weather {
  double noise = 0;      ///< standard deviation of a step's time; one in a hundred takes 3 times
  double warming = 0;    ///< more misses at the start: 1 + warming · e^(−t/300)
  double wandering = 0;  ///< of the misses, with the text's topic
};

double normal(Random& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return radius * std::cos(6.283185307179586 * random.uniform());
}

/// The step as the governor sees it.
StepReport report_of(const Step& step, const Weather& weather, Random& random, double regrets = 0) {
  double factor = std::max(0.3, 1 + weather.noise * normal(random));
  if (weather.noise > 0 && random.below(100) == 0) factor *= 3;
  const auto ns = [&](double ms) { return static_cast<uint64_t>(ms * factor * 1e6); };
  const auto count = [&](double mean) {
    const double noisy = std::max(0.0, mean * (1 + weather.noise * normal(random)));
    return static_cast<uint32_t>(noisy + random.uniform());
  };
  return {.step_ns = ns(step.ms()),
          .stall_ns = ns(step.stall_ms),
          .drive_busy_ns = ns(std::min(step.busy_ms, step.ms())),
          .miss_count = count(step.misses),
          .prefetch_useful_count = count(step.useful),
          .prefetch_wasted_count = count(step.wasted),
          .regret_count = count(regrets)};
}

constexpr size_t kRegretDelay = 30;  // steps

/// Time without noise, in ms: governed, always off, and at the best level of each phase.
struct Times {
  double governed = 0, off = 0, best = 0;
  double regret() const { return governed / off - 1; }
  double share_of_gain() const { return off > best ? (off - governed) / (off - best) : 0; }
};

Times run(const std::vector<Phase>& phases, const Weather& weather, uint64_t seed) {
  Random random(seed);
  Governor governor({.most = kLadder.back()});
  Times times;
  std::deque<double> wasted(kRegretDelay);  // in the last steps
  int t = 0;
  for (const auto& [machine, step_count] : phases) {
    std::array<double, kLadder.size()> at_level{};
    for (const int end = t + step_count; t < end; ++t) {
      const double misses = machine.miss_count * (1 + weather.warming * std::exp(-t / 300.0)) *
                            (1 + weather.wandering * std::sin(t / 57.0));
      for (size_t i = 0; i < kLadder.size(); ++i) {
        const Step step = simulate(machine, kLadder[i], misses);
        at_level[i] += step.ms() + machine.regret * step.wasted * machine.read_ms;
      }
      const double regrets = machine.regret * wasted.front();
      const Step step = simulate(machine, governor.level(), misses + regrets);
      wasted.pop_front();
      wasted.push_back(step.wasted);
      times.governed += step.ms();
      governor.on_step(report_of(step, weather, random, regrets));
    }
    times.off += at_level[0];
    times.best += *std::min_element(at_level.begin(), at_level.end());
  }
  return times;
}

constexpr int kSeedCount = 40;
constexpr int kSteps = 3000;
constexpr Weather kWeathers[] = {{},
                                 {.noise = 0.05},
                                 {.noise = 0.2},
                                 {.noise = 0.2, .warming = 3},
                                 {.noise = 0.1, .wandering = 0.4}};

struct Summary {
  double regret = 0, regret_most = -1, share_of_gain = 0;
  int over_count = 0;  ///< runs that cost more than 2 %
};

Summary run_seeds(const std::vector<Phase>& phases, const Weather& weather) {
  Summary summary;
  for (uint64_t seed = 1; seed <= kSeedCount; ++seed) {
    const Times times = run(phases, weather, seed * 7919);
    summary.regret += times.regret() / kSeedCount;
    summary.regret_most = std::max(summary.regret_most, times.regret());
    summary.over_count += times.regret() > 0.02 ? 1 : 0;
    summary.share_of_gain += times.share_of_gain() / kSeedCount;
  }
  return summary;
}

void report(const char* name, const Weather& weather, const Summary& summary) {
  std::printf("  %-28s noise %2.0f %%: %+6.2f %% against off (worst %+6.2f %%), %4.0f %% of gain\n",
              name, 100 * weather.noise, 100 * summary.regret, 100 * summary.regret_most,
              100 * summary.share_of_gain);
}

TEST(Governor, CostsAtMostTwoPercentWherePrefetchHurts) {
  struct Case {
    const char* name;
    std::vector<Phase> phases;
  };
  const Case cases[] = {{"hurts", {{hurts(), kSteps}}},
                        {"hurts a little", {{hurts_a_little(), kSteps}}},
                        {"slow drive", {{slow_drive(), kSteps}}},
                        {"hurts, then resident", {{hurts(), 1500}, {all_resident(), 1500}}}};
  for (const auto& [name, phases] : cases) {
    for (const Weather& weather : kWeathers) {
      SCOPED_TRACE(name);
      const Summary summary = run_seeds(phases, weather);
      report(name, weather, summary);
      EXPECT_LE(summary.regret, 0.015) << "on average";
      EXPECT_LE(summary.over_count, 1) << "runs beyond the 2 %, of 40";
      EXPECT_LE(summary.regret_most, 0.03) << "the unluckiest of them";
    }
  }
}

TEST(Governor, TakesNineTenthsOfTheGainWherePrefetchPays) {
  struct Case {
    const char* name;
    std::vector<Phase> phases;
    double share_of_gain;
  };
  const Case cases[] = {{"pays", {{pays(), kSteps}}, 0.9},
                        {"far is best", {{far_is_best(), kSteps}}, 0.88},
                        {"near is best", {{near_is_best(), kSteps}}, 0.9},
                        // 8 % are to be won, which takes longer to be seen below the noise.
                        {"pays a little", {{pays_a_little(), kSteps}}, 0.82}};
  for (const auto& [name, phases, share_of_gain] : cases) {
    for (const Weather& weather : kWeathers) {
      SCOPED_TRACE(name);
      const Summary summary = run_seeds(phases, weather);
      report(name, weather, summary);
      EXPECT_GE(summary.share_of_gain, share_of_gain - (weather.warming > 0 ? 0.03 : 0));
      EXPECT_LE(summary.regret_most, 0.0);
    }
  }
}

/// Misses that a wrong guess causes dozens of steps later fall on whoever plays then. The account
/// of visits cannot see that; the count of regrets must. (Without it: 30 and 47 % lost.)
TEST(Governor, ChargesALevelWithWhatItsGuessesCostLater) {
  for (const double wandering : {0.0, 0.4}) {
    const Weather weather{.wandering = wandering};
    const Summary summary = run_seeds({{costs_later(), kSteps}}, weather);
    report("costs later", weather, summary);
    EXPECT_LE(summary.regret, 0.025);
    EXPECT_LE(summary.regret_most, 0.04);
  }
}

/// A chat's first answer has a hundred tokens: what it wins must not come after them.
TEST(Governor, FindsMostOfTheGainInAShortReply) {
  double share = 0;
  for (uint64_t seed = 1; seed <= kSeedCount; ++seed)
    share += run({{pays(), 96}}, {.noise = 0.1}, seed).share_of_gain() / kSeedCount;
  std::printf("  96 steps: %.0f %% of the gain\n", 100 * share);
  EXPECT_GE(share, 0.7);
}

/// While conditions change something is lost each time; never more than always off would have
/// taken, and soon made up for.
TEST(Governor, FollowsChangesOfConditions) {
  struct Case {
    const char* name;
    std::vector<Phase> phases;
    double share_of_gain;
  };
  const Case cases[] = {
      {"pays, then hurts", {{pays(), 1500}, {hurts(), 1500}}, 0.7},
      {"hurts, then pays", {{hurts(), 1500}, {pays(), 1500}}, 0.7},
      {"pays, resident, pays", {{pays(), 1000}, {all_resident(), 1000}, {pays(), 1000}}, 0.85},
      {"to and fro", {{pays(), 750}, {hurts(), 750}, {pays(), 750}, {hurts(), 750}}, 0.5}};
  for (const auto& [name, phases, share_of_gain] : cases) {
    for (const Weather& weather : kWeathers) {
      SCOPED_TRACE(name);
      const Summary summary = run_seeds(phases, weather);
      report(name, weather, summary);
      EXPECT_GE(summary.share_of_gain, share_of_gain);
      EXPECT_LE(summary.regret_most, 0.0);
    }
  }
}

/// A short run cannot tell much, and need not: what it may lose is bounded by the account.
TEST(Governor, ShortRunsLoseLittle) {
  constexpr int kRunCount = 200;
  double regret = 0, most = 0;
  for (uint64_t seed = 1; seed <= kRunCount; ++seed) {
    const double one = run({{hurts(), 400}}, {.noise = 0.2}, seed).regret();
    regret += one / kRunCount;
    most = std::max(most, one);
  }
  std::printf("  400 steps: %+.2f %% against off, worst %+.2f %%\n", 100 * regret, 100 * most);
  EXPECT_LE(most, 0.06);
  EXPECT_LE(regret, 0.02);
}

StepReport quiet_step() {
  return {.step_ns = 100'000'000};
}

StepReport stalled_step(Reach level) {
  Random random(1);
  return report_of(simulate(pays(), level, 40), {}, random);
}

TEST(Governor, NothingIsTriedWhileAllExpertsAreResident) {
  Governor governor({.most = {2, kWidth}});
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(governor.level(), kOff);
    governor.on_step(quiet_step());
  }
  EXPECT_EQ(governor.visit_count(), 0u);
}

TEST(Governor, GoesOffAtOnceWithoutMissesAndWakesWithThem) {
  Governor governor({.most = {2, kWidth}});
  const auto play = [&](int step_count) {
    for (int i = 0; i < step_count; ++i) governor.on_step(stalled_step(governor.level()));
  };
  play(400);
  EXPECT_GT(governor.incumbent().distance, 0u);
  for (int i = 0; i < 16; ++i) governor.on_step(quiet_step());
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(governor.level(), kOff) << i << " steps later";
    governor.on_step(quiet_step());
  }
  play(100);
  EXPECT_GT(governor.incumbent().distance, 0u);
}

TEST(Governor, ADriveThatIsNeverIdleHasNothingToGive) {
  Governor governor({.most = {2, kWidth}});
  for (int i = 0; i < 500; ++i) {
    ASSERT_EQ(governor.level(), kOff);
    governor.on_step({.step_ns = 100'000'000,
                      .stall_ns = 60'000'000,
                      .drive_busy_ns = 99'500'000,
                      .miss_count = 30});
  }
}

TEST(Governor, StaysWithinWhatTheUserAllows) {
  Governor governor({.most = {1, 1}});
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(governor.level() == kOff || governor.level() == (Reach{1, 1}));
    governor.on_step(stalled_step(governor.level()));
  }
  EXPECT_EQ(governor.incumbent(), (Reach{1, 1}));
}

TEST(Governor, OpensWithDistanceOneAtFullWidth) {
  for (const uint32_t width : {1u, kWidth}) {
    Governor governor({.most = {3, width}});
    while (governor.visit_count() == 0) governor.on_step(stalled_step(kOff));
    EXPECT_EQ(governor.level(), (Reach{1, width}));
  }
}

TEST(Governor, MayBeFixed) {
  Governor fixed({.most = {2, kWidth}, .mode = GovernorMode::fixed});
  Governor off({.most = {0, kWidth}});
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(fixed.level(), (Reach{2, kWidth}));
    ASSERT_EQ(off.level(), kOff);
    fixed.on_step(stalled_step(fixed.level()));
    off.on_step(stalled_step(off.level()));
  }
}

TEST(Governor, IsAFunctionOfItsInputs) {
  Governor a({.most = {3, kWidth}}), b({.most = {3, kWidth}});
  Random random_a(5), random_b(5);
  for (int i = 0; i < 2000; ++i) {
    ASSERT_EQ(a.level(), b.level());
    a.on_step(report_of(simulate(pays(), a.level(), 40), {.noise = 0.2}, random_a));
    b.on_step(report_of(simulate(pays(), b.level(), 40), {.noise = 0.2}, random_b));
  }
}

TEST(Governor, OddReportsDoNoHarm) {
  Governor governor({.most = {3, kWidth}});
  Random random(9);
  for (int i = 0; i < 100000; ++i) {
    const auto any = [&] { return random.next() >> random.below(64); };
    governor.on_step({.step_ns = any(),
                      .stall_ns = any(),
                      .drive_busy_ns = any(),
                      .miss_count = static_cast<uint32_t>(any()),
                      .prefetch_useful_count = static_cast<uint32_t>(any()),
                      .prefetch_wasted_count = static_cast<uint32_t>(any()),
                      .regret_count = static_cast<uint32_t>(any())});
    ASSERT_LE(governor.level().distance, 3u);
  }
}

}  // namespace
}  // namespace sluice
