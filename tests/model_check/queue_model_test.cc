// base/mpmc_queue.h against every interleaving: two producers of two items each, two consumers,
// two cells, so that the ring is gone round twice, is full and is empty.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/model_check/explorer.h"
#include "tests/model_check/queue_words.h"

namespace sluice::model_check {
namespace {

class QueueModel {
 public:
  static constexpr size_t kProducers = 2, kConsumers = 2, kItemsEach = 2;
  static constexpr size_t kItems = kProducers * kItemsEach;

  struct Thread {
    QueueHand hand;
    uint8_t is_waiting = 0;  ///< refused: looks on when looking can bring something new
    uint8_t count = 0;       ///< items pushed
  };
  struct State {
    QueueWords<2> queue;
    uint8_t taken_count = 0;
    uint8_t item_at[kItems] = {};  ///< by position: the item taken there, from 1; else 0
    Thread threads[kProducers + kConsumers];
  };

  explicit QueueModel(QueueFlaw flaw = QueueFlaw::none) : flaw_(flaw) {}

  State start() const { return {}; }
  size_t thread_count() const { return kProducers + kConsumers; }
  size_t choice_count(const State&, size_t) const { return 1; }

  Move step(State& state, size_t thread, size_t) const {
    return thread < kProducers ? produce(state, thread) : consume(state, state.threads[thread]);
  }

  std::string step_name(const State& state, size_t thread) const {
    constexpr const char* kSteps[] = {"position", "number", "claim", "first", "second"};
    const Thread& self = state.threads[thread];
    return fmt::format("{} {}: {} {}", thread < kProducers ? "producer" : "consumer", thread,
                       kSteps[self.hand.at], self.hand.position);
  }

  std::string_view wrong_with(const State& state) const {
    uint8_t last[kProducers] = {};  // taken, of each producer
    for (size_t position = 0; position < kItems; ++position) {
      const uint8_t item = state.item_at[position];
      if (item == 0) continue;
      if (item > kItems) return "what was taken was never pushed";
      uint8_t& before = last[(item - 1) / kItemsEach];
      if (item == before) return "an item was taken twice";
      if (item < before) return "a producer's items changed places";
      before = item;
    }
    return {};
  }

 private:
  Move produce(State& state, size_t thread) const {
    Thread& self = state.threads[thread];
    if (self.count == kItemsEach) return Move::ended;
    if (self.is_waiting != 0 && state.queue.looks_full()) return Move::blocked;
    self.hand.item = static_cast<uint8_t>(1 + thread * kItemsEach + self.count);
    const Progress progress = push_step(state.queue, self.hand, flaw_);
    self.is_waiting = progress == Progress::refused;
    if (progress == Progress::done) {
      ++self.count;
      self.hand = {};
    }
    return Move::ran;
  }

  Move consume(State& state, Thread& self) const {
    if (self.hand.at == QueueHand::load_position && state.taken_count == kItems) return Move::ended;
    if (self.is_waiting != 0 && state.queue.looks_empty()) return Move::blocked;
    const Progress progress = pop_step(state.queue, self.hand, flaw_);
    self.is_waiting = progress == Progress::refused;
    if (progress == Progress::done) {
      uint8_t& place = state.item_at[self.hand.position % kItems];
      place = self.hand.item == 0 || place != 0 ? kNever : self.hand.item;
      ++state.taken_count;
      self.hand = {};
    }
    return Move::ran;
  }

  static constexpr uint8_t kNever = 255;
  const QueueFlaw flaw_;
};

TEST(QueueModel, EachItemIsTakenOnceAndInItsProducersOrder) {
  const Verdict verdict = explore(QueueModel());
  EXPECT_EQ(verdict.wrong, "") << verdict.text();
  EXPECT_EQ(verdict.state_count, 47'787u) << "the model has changed: was that meant?";
}

TEST(QueueModel, EveryFlawIsFound) {
  for (const QueueFlaw flaw : {QueueFlaw::claim_without_exchange, QueueFlaw::publish_before_writing,
                               QueueFlaw::free_before_reading}) {
    const Verdict verdict = explore(QueueModel(flaw));
    EXPECT_NE(verdict.wrong, "") << "flaw " << static_cast<int>(flaw);
    EXPECT_FALSE(verdict.trace.empty());
  }
}

}  // namespace
}  // namespace sluice::model_check
