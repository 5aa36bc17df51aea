#include "experts/slot_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace sluice {
namespace {

constexpr PartMask kAll = 0b111;

enum class Op {
  begin_read,
  part0,
  part1,
  part2,
  fail,
  try_give_up,
  add_lease,
  try_add_lease,
  drop_lease,
  clear
};
constexpr std::array kOps{Op::begin_read,    Op::part0,     Op::part1,       Op::part2,
                          Op::fail,          Op::add_lease, Op::try_give_up, Op::drop_lease,
                          Op::try_add_lease, Op::clear};

/// The state machine of the header once more, in plain words.
struct Model {
  SlotPhase phase = SlotPhase::empty;
  PartMask parts = 0;
  uint32_t leases = 0;

  auto operator<=>(const Model&) const = default;

  bool in_service() const { return phase == SlotPhase::reading || phase == SlotPhase::failed; }

  bool allows(Op op) const {
    switch (op) {
      case Op::begin_read:
        return phase == SlotPhase::empty;
      case Op::part0:
      case Op::part1:
      case Op::part2:
      case Op::fail:
        return in_service();
      case Op::add_lease:
        return phase == SlotPhase::reading || phase == SlotPhase::resident;
      case Op::try_give_up:
        return phase != SlotPhase::empty && leases == 0;
      case Op::try_add_lease:
        return phase != SlotPhase::empty;
      case Op::drop_lease:
        return leases > 0;
      case Op::clear:
        return leases == 0 && (phase == SlotPhase::resident || phase == SlotPhase::failed);
    }
    return false;
  }

  /// What the operation answers; true for those that answer nothing.
  bool apply(Op op) {
    const SlotPhase before = phase;
    switch (op) {
      case Op::begin_read:
        phase = SlotPhase::reading;
        break;
      case Op::part0:
      case Op::part1:
      case Op::part2:
        parts |= PartMask{1} << (static_cast<int>(op) - static_cast<int>(Op::part0));
        if (phase == SlotPhase::reading && parts == kAll) phase = SlotPhase::resident;
        break;
      case Op::fail:
        phase = SlotPhase::failed;
        break;
      case Op::try_give_up:
        if (phase == SlotPhase::reading) phase = SlotPhase::failed;
        return before != SlotPhase::resident;
      case Op::try_add_lease:
        leases += phase != SlotPhase::failed;
        return before != SlotPhase::failed;
      case Op::add_lease:
        ++leases;
        break;
      case Op::drop_lease:
        --leases;
        break;
      case Op::clear:
        *this = {};
        break;
    }
    return true;
  }
};

bool apply(SlotState& state, Op op) {
  switch (op) {
    case Op::begin_read:
      state.begin_read();
      break;
    case Op::part0:
    case Op::part1:
    case Op::part2:
      state.part_ready(PartMask{1} << (static_cast<int>(op) - static_cast<int>(Op::part0)), kAll);
      break;
    case Op::fail:
      state.fail();
      break;
    case Op::try_give_up:
      return state.try_give_up();
    case Op::add_lease:
      state.add_lease();
      break;
    case Op::try_add_lease:
      return state.try_add_lease();
    case Op::drop_lease:
      state.drop_lease();
      break;
    case Op::clear:
      state.clear();
      break;
  }
  return true;
}

void expect_equal(const SlotState& state, const Model& model) {
  EXPECT_EQ(state.phase(), model.phase);
  EXPECT_EQ(state.lease_count(), model.leases);
  for (PartMask parts = 0; parts <= kAll; ++parts)
    EXPECT_EQ(state.ready(parts), (model.parts & parts) == parts) << parts;
}

/// Calls visit(path, model) for every state with at most one lease, with one way to get there.
void for_each_state(const std::function<void(const std::vector<Op>&, const Model&)>& visit) {
  std::set<Model> seen{{}};
  std::vector<std::pair<std::vector<Op>, Model>> open{{{}, {}}};
  for (size_t i = 0; i < open.size(); ++i) {
    const auto [path, model] = open[i];
    visit(path, model);
    for (const Op op : kOps) {
      if (!model.allows(op)) continue;
      Model next = model;
      next.apply(op);
      if (next.leases > 1) continue;
      if (!seen.insert(next).second) continue;
      open.push_back({path, next});
      open.back().first.push_back(op);
    }
  }
  // empty; reading with 7 sets of parts, resident, failed with 8: each with and without a lease
  EXPECT_EQ(seen.size(), 1u + 2 * (7 + 1 + 8));
}

void walk(SlotState& state, const std::vector<Op>& path) {
  for (const Op op : path) apply(state, op);
}

TEST(SlotState, EveryTransitionThatIsAllowed) {
  for_each_state([](const std::vector<Op>& path, const Model& model) {
    for (const Op op : kOps) {
      if (!model.allows(op)) continue;
      SlotState state;
      walk(state, path);
      expect_equal(state, model);
      Model next = model;
      const bool answer = next.apply(op);
      EXPECT_EQ(apply(state, op), answer);
      expect_equal(state, next);
    }
  });
}

TEST(SlotStateDeathTest, EveryTransitionThatIsForbidden) {
  int forbidden = 0;
  for_each_state([&](const std::vector<Op>& path, const Model& model) {
    for (const Op op : kOps) {
      if (model.allows(op)) continue;
      ++forbidden;
      SlotState state;
      walk(state, path);
      EXPECT_DEATH(apply(state, op), "check failed")
          << "operation " << static_cast<int>(op) << " after " << path.size() << " steps";
    }
  });
  EXPECT_EQ(forbidden, 9 + 7 * (3 + 3) + (6 + 7) + 8 * (3 + 4));
}

TEST(SlotState, LeasesAreCounted) {
  SlotState state;
  state.begin_read();
  for (uint32_t i = 0; i < 1000; ++i) state.add_lease();
  EXPECT_EQ(state.lease_count(), 1000u);
  state.part_ready(0b1, 0b1);
  EXPECT_EQ(state.phase(), SlotPhase::resident);
  EXPECT_EQ(state.lease_count(), 1000u) << "a landing part leaves the leases alone";
  for (uint32_t i = 0; i < 1000; ++i) state.drop_lease();
  state.clear();
  EXPECT_EQ(state.phase(), SlotPhase::empty);
  EXPECT_FALSE(state.ready(0b1)) << "an empty slot has no parts";
}

/// All ways to merge two sequences of operations.
void for_each_merge(const std::vector<Op>& a, const std::vector<Op>& b,
                    const std::function<void(const std::vector<Op>&)>& visit) {
  std::vector<Op> order;
  const std::function<void(size_t, size_t)> extend = [&](size_t i, size_t j) {
    if (i == a.size() && j == b.size()) return visit(order);
    if (i < a.size()) {
      order.push_back(a[i]);
      extend(i + 1, j);
      order.pop_back();
    }
    if (j < b.size()) {
      order.push_back(b[j]);
      extend(i, j + 1);
      order.pop_back();
    }
  };
  extend(0, 0);
}

TEST(SlotState, TheReaderAndTheHolderMayInterleaveInAnyWay) {
  const std::vector<Op> holder{Op::add_lease, Op::add_lease, Op::drop_lease, Op::drop_lease};
  int merges = 0;
  for_each_merge({Op::part1, Op::part0, Op::part2}, holder, [&](const std::vector<Op>& order) {
    ++merges;
    SlotState state;
    state.begin_read();
    Model model{.phase = SlotPhase::reading};
    for (const Op op : order) {
      ASSERT_TRUE(model.allows(op));
      model.apply(op);
      apply(state, op);
      expect_equal(state, model);
    }
    EXPECT_EQ(state.phase(), SlotPhase::resident);
  });
  EXPECT_EQ(merges, 35);
}

TEST(SlotState, AFailureAnywhereLeavesItFailed) {
  const std::vector<Op> parts{Op::part0, Op::part1, Op::part2};
  for_each_merge(parts, {Op::fail}, [](const std::vector<Op>& order) {
    if (order.back() == Op::fail) return;  // the slot is resident by then
    SlotState state;
    state.begin_read();
    state.add_lease();
    walk(state, order);
    EXPECT_EQ(state.phase(), SlotPhase::failed);
    state.drop_lease();
    state.clear();
  });
}

// Bytes written before part_ready are seen by whoever sees the part; what a lease's holder read is
// over before the slot is cleared and written anew. Under the thread sanitizer a missing ordering
// is a report.
TEST(SlotState, PublishesBytesBetweenThreads) {
  constexpr uint64_t kRounds = 20'000;
  struct Shared {
    SlotState state;
    std::array<uint64_t, 3> parts{};  ///< the bytes of the slot
  };
  const auto shared = std::make_unique<Shared>();
  std::thread computing([&] {
    for (uint64_t round = 1; round <= kRounds; ++round) {
      for (size_t part = 0; part < 3; ++part) {
        while (!shared->state.ready(PartMask{1} << part)) std::this_thread::yield();
        ASSERT_EQ(shared->parts[part], round * 3 + part);
      }
      shared->state.drop_lease();
      while (shared->state.lease_count() == 0 && round < kRounds) std::this_thread::yield();
    }
  });
  for (uint64_t round = 1; round <= kRounds; ++round) {
    shared->state.begin_read();
    shared->state.add_lease();
    for (size_t part = 0; part < 3; ++part) {
      shared->parts[part] = round * 3 + part;
      shared->state.part_ready(PartMask{1} << part, kAll);
    }
    while (shared->state.lease_count() > 0) std::this_thread::yield();
    shared->state.clear();
  }
  computing.join();
}

}  // namespace
}  // namespace sluice
