#include "engine/replay_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/random.h"
#include "engine/trace_replay.h"
#include "experts/routing_trace_writer.h"
#include "testing/temp_folder.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A layer's turn, told simply: the distinct experts in order.
struct SimpleTurn {
  uint32_t layer;
  std::vector<uint16_t> experts;
  std::vector<int32_t> all;  ///< [token][used]
  bool is_prompt;
};

/// A recording in a file, made from random steps.
class Recording {
 public:
  struct Shape {
    uint32_t layer_count = 2;
    uint32_t expert_count = 6;
    uint32_t used_count = 2;
    uint32_t step_count = 10;
    uint32_t prompt_percent = 20;  ///< of the steps
  };

  Recording(uint64_t seed, const Shape& shape) : shape_(shape), random_(seed) {
    auto writer = RoutingTraceWriter::create(
        path(), {.expert_counts = std::vector<uint32_t>(shape.layer_count, shape.expert_count),
                 .used_count = shape.used_count,
                 .distance_max = 2,
                 .name = "random"});
    CHECK(writer.ok());
    for (uint32_t step = 0; step < shape.step_count; ++step) add_step(**writer);
    CHECK((*writer)->close().ok());
  }

  std::string path() const { return folder_.path() + "/random.trace"; }
  RoutingHistory history() const {
    auto history = RoutingHistory::read(path());
    CHECK(history.ok());
    return std::move(*history);
  }
  const std::vector<SimpleTurn>& turns() const { return turns_; }
  const std::vector<uint32_t>& step_tokens() const { return step_tokens_; }
  size_t used_count() const { return shape_.used_count; }

 private:
  void add_step(RoutingTraceWriter& writer) {
    const bool prompt = random_.below(100) < shape_.prompt_percent;
    const auto tokens = static_cast<uint32_t>(prompt ? 2 + random_.below(3) : 1);
    writer.begin(prompt ? StepKind::prompt : StepKind::decode, tokens);
    for (uint32_t layer = 0; layer < shape_.layer_count; ++layer) {
      std::vector<int32_t> all;
      for (uint32_t token = 0; token < tokens; ++token) add_token(all);
      writer.routing(layer, all);
      std::vector<uint16_t> distinct;
      for (const int32_t id : all)
        if (std::ranges::find(distinct, id) == distinct.end())
          distinct.push_back(static_cast<uint16_t>(id));
      if (tokens > 1) std::ranges::sort(distinct);
      turns_.push_back({layer, distinct, all, prompt});
      step_tokens_.push_back(layer == 0 ? tokens : 0);
    }
    writer.end();
  }
  void add_token(std::vector<int32_t>& all) {
    const size_t begin = all.size();
    while (all.size() < begin + shape_.used_count) {
      // Low ids twice as likely.
      const auto id = static_cast<int32_t>(
          std::min(random_.below(shape_.expert_count), random_.below(shape_.expert_count)));
      if (std::find(all.begin() + static_cast<std::ptrdiff_t>(begin), all.end(), id) == all.end())
        all.push_back(id);
    }
  }

  TempFolder folder_;
  Shape shape_;
  Random random_;
  std::vector<SimpleTurn> turns_;
  std::vector<uint32_t> step_tokens_;  ///< beside turns_: where a step begins, its tokens
};

ReplayPool pool_of(const Recording::Shape& shape, PoolKind kind, uint32_t slots) {
  return {.kind = kind,
          .slots_per_layer = slots,
          .expert_counts = std::vector<uint32_t>(shape.layer_count, shape.expert_count),
          .used_count = shape.used_count};
}

uint64_t misses_of(std::string_view policy, const ReplayPool& pool, const RoutingHistory& history) {
  const auto cache = make_replay_cache(policy, pool, history);
  std::vector<uint8_t> hits(64);
  uint64_t misses = 0;
  for (size_t i = 0; i < history.turn_count(); ++i) {
    const auto turn = history.turn(i);
    const auto turn_hits = std::span(hits).first(turn.experts.size());
    cache->play(turn, turn_hits);
    misses += static_cast<uint64_t>(std::ranges::count(turn_hits, 0));
  }
  return misses;
}

// Perfect hindsight ---------------------------------------------------------------------------

/// The fewest misses possible, by trying everything: for each set of experts that may be here the
/// fewest misses that lead to it. A set is a mask over all layers' experts.
class EveryChoice {
 public:
  EveryChoice(uint32_t slot_count, uint32_t expert_count)
      : slot_count_(slot_count), expert_count_(expert_count) {}

  uint64_t fewest(const std::vector<SimpleTurn>& turns) {
    std::map<uint32_t, uint64_t> now{{0, 0}};
    for (const SimpleTurn& turn : turns) {
      std::map<uint32_t, uint64_t> next;
      uint32_t wanted = 0;
      for (const uint16_t expert : turn.experts)
        wanted |= 1u << (turn.layer * expert_count_ + expert);
      for (const auto& [here, misses] : now) reach(here, wanted, misses, next);
      now = std::move(next);
    }
    uint64_t best = std::numeric_limits<uint64_t>::max();
    for (const auto& [here, misses] : now) best = std::min(best, misses);
    return best;
  }

 private:
  void reach(uint32_t here, uint32_t wanted, uint64_t misses,
             std::map<uint32_t, uint64_t>& next) const {
    const uint32_t missing = wanted & ~here;
    const uint64_t total = misses + static_cast<uint64_t>(std::popcount(missing));
    const bool waves = static_cast<uint32_t>(std::popcount(wanted)) > slot_count_;
    const uint32_t all = here | wanted;
    for (uint32_t set = all;; set = (set - 1) & all) {
      const bool fits = static_cast<uint32_t>(std::popcount(set)) <= slot_count_;
      if (fits && (waves || (set & wanted) == wanted)) {
        const auto [place, fresh] = next.emplace(set, total);
        if (!fresh) place->second = std::min(place->second, total);
      }
      if (set == 0) break;
    }
  }

  const uint32_t slot_count_;
  const uint32_t expert_count_;
};

TEST(Belady, IsTheBestOfAllChoicesInALayer) {
  const Recording::Shape shape = {.layer_count = 1, .expert_count = 7, .step_count = 14};
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Recording recording(seed, shape);
    for (const uint32_t slots : {2u, 3u, 5u})
      EXPECT_EQ(misses_of("belady", pool_of(shape, PoolKind::layer, slots), recording.history()),
                EveryChoice(slots, 7).fewest(recording.turns()))
          << seed << ", " << slots << " slots";
  }
}

TEST(Belady, IsTheBestOfAllChoicesInARing) {
  const Recording::Shape shape = {
      .layer_count = 2, .expert_count = 4, .used_count = 1, .step_count = 10};
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Recording recording(seed, shape);
    for (const uint32_t slots : {1u, 2u})
      EXPECT_EQ(misses_of("belady", pool_of(shape, PoolKind::ring, slots), recording.history()),
                EveryChoice(2 * slots, 4).fewest(recording.turns()))
          << seed << ", " << slots << " slots";
  }
}

TEST(Belady, NoPolicyMissesLess) {
  const Recording::Shape shape = {.layer_count = 3, .expert_count = 20, .step_count = 400};
  const Recording recording(7, shape);
  const RoutingHistory history = recording.history();
  for (const PoolKind kind : {PoolKind::layer, PoolKind::ring}) {
    for (const uint32_t slots : {2u, 5u, 9u, 15u, 20u}) {
      const ReplayPool pool = pool_of(shape, kind, slots);
      for (const std::string_view policy : replay_policy_names())
        EXPECT_LE(misses_of("belady", pool, history), misses_of(policy, pool, history)) << policy;
    }
  }
}

// Policies against plain ones ------------------------------------------------------------------

/// What a layer asks for in a turn.
struct PlainTurn {
  std::map<uint32_t, double> weights;  ///< [expert], how much its tokens want it
  bool goes_on = false;                ///< a prompt of which batches follow
};

/// Keeps every use of every expert, so that any worth can be computed from its definition.
struct Uses {
  struct Use {
    double time;  ///< in tokens
    double weight;
  };
  std::map<uint32_t, std::vector<Use>> uses;  ///< [expert]
  std::map<uint32_t, uint64_t> last;          ///< [expert], counting uses
  uint64_t count = 0;
  double now = 0;

  void add(uint32_t expert, double weight) {
    uses[expert].push_back({now, weight});
    last[expert] = ++count;
  }
  double decayed(uint32_t expert) const {
    double sum = 0;
    for (const Use& use : uses.at(expert)) sum += use.weight * std::exp2((use.time - now) / 64);
    return sum + 1e-12 * static_cast<double>(last.at(expert));  // ties: least recent first
  }
};

/// Slots as a set, searched from end to end.
class PlainCache {
 public:
  PlainCache(uint32_t slot_count, bool decays) : slot_count_(slot_count), decays_(decays) {}

  uint64_t play(const PlainTurn& turn, Uses& uses) {
    std::vector<uint32_t> leased, absent;
    for (const auto& [expert, weight] : turn.weights) {
      (here_.contains(expert) ? leased : absent).push_back(expert);
      if (here_.contains(expert)) uses.add(expert, weight);
    }
    if (!turn.goes_on)
      std::ranges::stable_sort(absent, {}, [&](uint32_t id) { return turn.weights.at(id); });
    for (const uint32_t expert : absent) {
      if (here_.size() == slot_count_) {
        if (leased.size() == slot_count_) leased.erase(leased.begin());
        here_.erase(least(leased, uses, decays_ && !turn.goes_on));
      }
      here_.insert(expert);
      leased.push_back(expert);
      uses.add(expert, turn.weights.at(expert));
    }
    return absent.size();
  }

 private:
  uint32_t least(const std::vector<uint32_t>& leased, const Uses& uses, bool by_worth) const {
    std::vector<uint32_t> may_leave;
    for (const uint32_t id : here_)
      if (std::ranges::find(leased, id) == leased.end()) may_leave.push_back(id);
    return *std::ranges::min_element(may_leave, {}, [&](uint32_t id) {
      return by_worth ? uses.decayed(id) : static_cast<double>(uses.last.at(id));
    });
  }

  const size_t slot_count_;
  const bool decays_;
  std::set<uint32_t> here_;
};

PlainTurn plain_turn(const Recording& recording, size_t index, uint32_t first_expert) {
  const SimpleTurn& turn = recording.turns()[index];
  PlainTurn plain;
  size_t behind = 0;
  for (size_t i = index + 1; i < recording.turns().size() && turn.is_prompt; ++i) {
    if (!recording.turns()[i].is_prompt) break;
    behind += recording.step_tokens()[i];
  }
  plain.goes_on = behind > 0;
  const size_t tokens = turn.all.size() / recording.used_count();
  for (size_t i = 0; i < turn.all.size(); ++i) {
    const double later = double(tokens - 1 - i / recording.used_count() + behind);
    plain.weights[first_expert + static_cast<uint32_t>(turn.all[i])] += std::exp2(-later / 128);
  }
  return plain;
}

uint64_t plain_misses(const Recording& recording, const Recording::Shape& shape, PoolKind kind,
                      uint32_t slots, std::string_view policy) {
  Uses uses;
  const bool ring = kind == PoolKind::ring;
  std::vector<PlainCache> caches(
      ring ? 1 : shape.layer_count,
      PlainCache(ring ? slots * shape.layer_count : slots, policy == "decay"));
  uint64_t misses = 0;
  for (size_t i = 0; i < recording.turns().size(); ++i) {
    const uint32_t layer = recording.turns()[i].layer;
    uses.now += recording.step_tokens()[i];
    misses +=
        caches[ring ? 0 : layer].play(plain_turn(recording, i, layer * shape.expert_count), uses);
  }
  return misses;
}

TEST(ReplayPolicies, LruAndDecayDoWhatTheirDefinitionsSay) {
  const Recording::Shape shape = {.layer_count = 2, .expert_count = 12, .step_count = 300};
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const Recording recording(seed, shape);
    const RoutingHistory history = recording.history();
    for (const PoolKind kind : {PoolKind::layer, PoolKind::ring})
      for (const uint32_t slots : {2u, 3u, 6u, 11u, 12u})
        for (const std::string_view policy : {"lru", "decay"})
          EXPECT_EQ(misses_of(policy, pool_of(shape, kind, slots), history),
                    plain_misses(recording, shape, kind, slots, policy))
              << policy << ", " << slots << " slots, seed " << seed;
  }
}

TEST(ReplayPolicies, WithASlotForEachExpertEachMissesOnce) {
  const Recording::Shape shape = {.layer_count = 2, .expert_count = 5, .step_count = 100};
  const Recording recording(3, shape);
  const RoutingHistory history = recording.history();
  for (const PoolKind kind : {PoolKind::layer, PoolKind::ring})
    for (const std::string_view policy : replay_policy_names())
      EXPECT_EQ(misses_of(policy, pool_of(shape, kind, 5), history), 10u) << policy;
}

TEST(ReplayPolicies, GoldenMisses) {
  const Recording::Shape shape = {
      .layer_count = 4, .expert_count = 24, .used_count = 3, .step_count = 500};
  const Recording recording(11, shape);
  const RoutingHistory history = recording.history();
  std::vector<uint64_t> misses;
  for (const PoolKind kind : {PoolKind::layer, PoolKind::ring})
    for (const std::string_view policy : {"lru", "contest", "belady"})
      misses.push_back(misses_of(policy, pool_of(shape, kind, 8), history));
  EXPECT_THAT(misses, ElementsAre(4737, 4377, 3080, 5253, 4374, 2620));
}

// The history and its report -------------------------------------------------------------------

TEST(RoutingHistory, APromptAsksForEachExpertOnce) {
  const TempFolder folder;
  const std::string path = folder.path() + "/p.trace";
  auto writer = RoutingTraceWriter::create(
      path, {.expert_counts = {0, 8}, .used_count = 2, .distance_max = 2, .name = ""});
  (*writer)->begin(StepKind::prompt, 3);
  (*writer)->routing(1, std::vector<int32_t>{7, 2, 2, 5, 5, 7});
  (*writer)->end();
  (*writer)->begin(StepKind::decode, 1);
  (*writer)->predicted(1, 2, std::vector<uint32_t>{6, 1, 0});
  (*writer)->predicted(1, 1, std::vector<uint32_t>{4, 6});
  (*writer)->routing(1, std::vector<int32_t>{6, 4});
  (*writer)->end();
  ASSERT_TRUE((*writer)->close().ok());

  const auto history = RoutingHistory::read(path);
  ASSERT_TRUE(history.ok());
  ASSERT_EQ(history->turn_count(), 2u);
  EXPECT_THAT(history->turn(0).experts, ElementsAre(2, 5, 7));
  EXPECT_EQ(history->turn(0).chosen.size(), 6u);
  EXPECT_THAT(history->turn(1).experts, ElementsAre(6, 4)) << "in the order of the router";
  EXPECT_THAT(history->turn(1).foreseen, ElementsAre(3, 1));
  EXPECT_EQ(history->lookup_count(), 5u);
  EXPECT_EQ(history->recall(1).foreseen, 2u);
  EXPECT_EQ(history->recall(2).foreseen, 1u);
  EXPECT_EQ(history->recall(2).lookups, 2u) << "the prompt was not predicted";

  const auto report = replay_trace({.path = path, .raw = {}, .slot_counts = {4}, .policies = {}});
  ASSERT_TRUE(report.ok());
  const ReplayRow* lru = report->find("lru", 4);
  ASSERT_NE(lru, nullptr);
  EXPECT_EQ(lru->misses, 5u);
  EXPECT_EQ(lru->decode_misses, 2u);
  EXPECT_THAT(lru->foreseen_misses, ElementsAre(2, 1));
}

TEST(ReplayTrace, RefusesTooFewSlots) {
  const Recording recording(1, {});
  const auto report =
      replay_trace({.path = recording.path(), .raw = {}, .slot_counts = {1}, .policies = {}});
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().kind, ErrorKind::usage);
  EXPECT_THAT(report.error().message, HasSubstr("--slots 1"));
}

TEST(ReplayTrace, SweepsTheUsualSizesWhenNoneAreGiven) {
  const Recording recording(1, {.layer_count = 1, .expert_count = 10, .used_count = 2});
  const auto report =
      replay_trace({.path = recording.path(), .raw = {}, .slot_counts = {}, .policies = {"lru"}});
  ASSERT_TRUE(report.ok());
  std::vector<uint32_t> slots;
  for (const ReplayRow& row : report->rows) slots.push_back(row.slots_per_layer);
  EXPECT_THAT(slots, ElementsAre(2, 3, 4, 5, 7, 9));
}

}  // namespace
}  // namespace sluice
