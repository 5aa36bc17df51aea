// The states of a slot against every interleaving of those who touch it, and the model's word
// against the code's.
#include "tests/model_check/slot_model.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <vector>

namespace sluice::model_check {
namespace {

template <typename Slot>
void expect_right(const Slot& slot, size_t state_count) {
  const Verdict verdict = explore(slot);
  EXPECT_EQ(verdict.wrong, "") << verdict.text();
  EXPECT_EQ(verdict.state_count, state_count) << "the model has changed: was that meant?";
}

TEST(SlotModel, NobodyComputesFromBytesThatAreNotThere) {
  expect_right(SlotModel<1, 2>(), 5'981);
  expect_right(SlotModel<2, 3>(), 44'083);
}

TEST(SlotModel, EveryFlawIsFound) {
  struct Case {
    SlotFlaw flaw;
    std::string_view wrong;
  };
  for (const Case& one : {
           Case{SlotFlaw::clear_ignores_leases, kForbidden},
           Case{SlotFlaw::clear_ignores_reads, kForbidden},
           Case{SlotFlaw::ready_before_bytes, kLacksBytes},
           Case{SlotFlaw::part_ready_without_exchange, kDeadlock},
           Case{SlotFlaw::failure_is_forgotten, kRisen},
           Case{SlotFlaw::lease_in_two_steps, kForbidden},
           Case{SlotFlaw::read_without_look, kMisread},
       }) {
    const Verdict verdict = explore(SlotModel<1, 2>(one.flaw));
    EXPECT_EQ(verdict.wrong, one.wrong) << "flaw " << static_cast<int>(one.flaw);
    EXPECT_FALSE(verdict.trace.empty());
  }
}

/// A transition of the model and the same one of the code.
struct Transition {
  SlotWord (*model)(const SlotWord&);
  void (*code)(SlotState&);
};
constexpr Transition kTransitions[] = {
    {[](const SlotWord& w) { return w.begin_read(); }, [](SlotState& s) { s.begin_read(); }},
    {[](const SlotWord& w) { return w.part_ready(0); },
     [](SlotState& s) { s.part_ready(0b01, kAllSlotParts); }},
    {[](const SlotWord& w) { return w.part_ready(1); },
     [](SlotState& s) { s.part_ready(0b10, kAllSlotParts); }},
    {[](const SlotWord& w) { return w.fail(); }, [](SlotState& s) { s.fail(); }},
    {[](const SlotWord& w) { return w.give_up(); }, [](SlotState& s) { s.try_give_up(); }},
    {[](const SlotWord& w) { return w.add_lease(); }, [](SlotState& s) { s.add_lease(); }},
    {[](const SlotWord& w) { return w.try_add_lease(); }, [](SlotState& s) { s.try_add_lease(); }},
    {[](const SlotWord& w) { return w.drop_lease(); }, [](SlotState& s) { s.drop_lease(); }},
    {[](const SlotWord& w) { return w.clear(); }, [](SlotState& s) { s.clear(); }},
};

// Every state with at most two leases, reached by code and model on the same way.
TEST(SlotModel, ItsWordMovesAsTheCodeDoes) {
  using Way = std::vector<const Transition*>;
  std::set<SlotWord> seen{{}};
  std::vector<std::pair<SlotWord, Way>> open{{{}, {}}};
  for (size_t i = 0; i < open.size(); ++i) {
    const auto [word, way] = open[i];
    SlotState state;
    for (const Transition* transition : way) transition->code(state);
    EXPECT_EQ(static_cast<uint8_t>(state.phase()), word.phase);
    EXPECT_EQ(state.lease_count(), word.leases);
    for (PartMask parts = 0; parts <= kAllSlotParts; ++parts)
      EXPECT_EQ(state.ready(parts), (word.parts & parts) == parts);
    for (const Transition& transition : kTransitions) {
      const SlotWord next = transition.model(word);
      if (next.is_forbidden != 0 || next.leases > 2) continue;
      if (!seen.insert(next).second) continue;
      open.emplace_back(next, way);
      open.back().second.push_back(&transition);
    }
  }
  // empty; reading with 3 sets of parts, resident, failed with 4: those with 0, 1 and 2 leases
  EXPECT_EQ(seen.size(), 1u + 3 * (3 + 1 + 4));
}

}  // namespace
}  // namespace sluice::model_check
