// The parking of the reading threads against every interleaving, and the whole of their queues and
// parking under random schedules.
#include "tests/model_check/pool_model.h"

#include <gtest/gtest.h>

namespace sluice::model_check {
namespace {

/// 2 callers × 2 workers, a read each.
using SmallPool = PoolModel<2, 2, 1, 2>;
/// As many reads as workers, so that all of them can be in service at once.
using BarrierPool = PoolModel<1, 2, 2, 2>;
/// Too large for all interleavings, above all with the queues cut into their accesses.
using WidePool = PoolModel<3, 4, 4, 4>;

template <typename Pool>
void expect_right(const Pool& pool, size_t state_count) {
  const Verdict verdict = explore(pool);
  EXPECT_EQ(verdict.wrong, "") << verdict.text();
  EXPECT_EQ(verdict.state_count, state_count) << "the model has changed: was that meant?";
}

// (2 callers × 2 workers with two reads each have 12,883,148 states in batches of 2; looked through
// once, in November 2026, nothing found.)
TEST(PoolModel, NoWakeUpIsLost) {
  expect_right(SmallPool({}), 207'108);
  expect_right(PoolModel<2, 1, 2, 4>({}), 162'404);
  expect_right(PoolModel<1, 2, 3, 4>({}), 177'682);
  expect_right(PoolModel<1, 2, 2, 2>({.batch = 2}), 28'422);
}

// A read in service needs the other one in service to end: only if each read rouses a worker of its
// own do they come to that.
TEST(PoolModel, EachReadRousesAWorker) {
  for (const size_t batch : {1, 2}) {
    const Verdict verdict = explore(BarrierPool({.service = Service::together, .batch = batch}));
    EXPECT_EQ(verdict.wrong, "") << verdict.text();
  }
}

TEST(PoolModel, EveryFlawOfTheParkingIsFound) {
  for (const ParkingFlaw flaw : {ParkingFlaw::look_before_ticket, ParkingFlaw::announce_before_push,
                                 ParkingFlaw::rouse_only, ParkingFlaw::stop_without_announcing}) {
    const Verdict verdict = explore(SmallPool({.flaw = flaw}));
    EXPECT_EQ(verdict.wrong, kDeadlock) << "flaw " << static_cast<int>(flaw);
  }
}

TEST(PoolModel, RousingOnlyWhereTheQueueWasEmptyLeavesAWorkerAsleep) {
  const Verdict verdict = explore(
      BarrierPool({.service = Service::together, .flaw = ParkingFlaw::rouse_when_it_was_empty}));
  EXPECT_EQ(verdict.wrong, kDeadlock);
}

// Of two callers each waits for room in mid-batch, and neither has roused anybody. Why a batch must
// fit into the queue whatever else is in flight, as os/async_read.h demands it does.
TEST(PoolModel, BatchesThatDoNotFitIntoTheQueueHang) {
  EXPECT_EQ(explore(PoolModel<2, 1, 2, 2>({.batch = 2})).wrong, kDeadlock);
  EXPECT_EQ(explore(PoolModel<2, 1, 2, 4>({.batch = 2})).wrong, "");
}

// A million random schedules in three tests; what is rare is seldom wide, so most of them are
// narrow.
template <typename Pool>
void expect_right_at_random(size_t batch, size_t walk_count, uint64_t first_seed) {
  const Pool pool({.grain = QueueGrain::accesses, .batch = batch});
  const Verdict verdict = random_walks(pool, walk_count, first_seed);
  EXPECT_EQ(verdict.wrong, "") << verdict.text();
  EXPECT_GT(verdict.state_count, 100 * walk_count);
}

TEST(PoolModel, NoWakeUpIsLostInRandomSchedulesOf3CallersAnd4Workers) {
  expect_right_at_random<WidePool>(1, 50'000, 1);
  expect_right_at_random<PoolModel<3, 4, 4, 16>>(4, 50'000, 1'000'001);
}

TEST(PoolModel, NoWakeUpIsLostInRandomSchedulesWithFullQueues) {
  expect_right_at_random<PoolModel<2, 4, 3, 2>>(1, 300'000, 2'000'001);
}

TEST(PoolModel, NoWakeUpIsLostInRandomSchedulesOf2CallersAnd3Workers) {
  expect_right_at_random<PoolModel<2, 3, 2, 4>>(2, 600'000, 3'000'001);
}

TEST(PoolModel, RandomSchedulesFindFlawsToo) {
  for (const ParkingFlaw flaw : {ParkingFlaw::look_before_ticket, ParkingFlaw::announce_before_push,
                                 ParkingFlaw::rouse_only, ParkingFlaw::stop_without_announcing}) {
    const WidePool model({.grain = QueueGrain::accesses, .flaw = flaw});
    const Verdict verdict = random_walks(model, 100'000, 1);
    EXPECT_EQ(verdict.wrong, kDeadlock) << "flaw " << static_cast<int>(flaw);
  }
  for (const QueueFlaw flaw : {QueueFlaw::claim_without_exchange, QueueFlaw::publish_before_writing,
                               QueueFlaw::free_before_reading}) {
    const WidePool model({.grain = QueueGrain::accesses, .queue_flaw = flaw});
    EXPECT_NE(random_walks(model, 100'000, 1).wrong, "") << "flaw " << static_cast<int>(flaw);
  }
}

}  // namespace
}  // namespace sluice::model_check
