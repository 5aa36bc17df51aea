// What becomes of guesses, by examples; random traffic is in expert_store_random_test.cc.
#include <gtest/gtest.h>

#include <algorithm>

#include "experts/streamed_test.h"
#include "io/window.h"

namespace sluice {
namespace {

constexpr std::array<int32_t, 0> kNobody{};

/// Guesses an expert one layer ahead, unless told otherwise.
Guess guess_of(ExpertId id, uint32_t distance = 1, uint32_t rank = 0) {
  return {.id = id, .distance = distance, .rank = rank};
}

/// Lets everything that waits be read.
void land_all(Streamed& test) {
  do {
    test.store().pump();
    if (test.store().is_reading()) test.store().wait();
  } while (test.store().is_reading() || test.store().waiting_guess_count() > 0);
}

/// The windows that an expert's parts are read from.
uint64_t window_bytes(const Streamed& test, ExpertId id) {
  uint64_t bytes = 0;
  for (const ExpertPart& part : test.layout(id.layer).parts())
    bytes += io::window_of(part.extent(id.index), 4096).bytes;
  return bytes;
}

/// Bytes asked of the drive. None was read twice into the same place, or the test fails.
uint64_t bytes_read_once(Streamed& test) {
  std::vector<std::pair<const std::byte*, const std::byte*>> places;
  uint64_t bytes = 0;
  for (const FakeRead& read : test.drive().log()) {
    places.emplace_back(read.op.buffer, read.op.buffer + read.op.bytes);
    bytes += read.op.bytes;
  }
  std::ranges::sort(places);
  for (size_t i = 1; i < places.size(); ++i) EXPECT_LE(places[i - 1].second, places[i].first);
  return bytes;
}

TEST(ExpertStoreGuess, LandsAndIsAHit) {
  Streamed test;
  ExpertStore& store = test.store();
  store.guess(guess_of({1, 2}));
  EXPECT_EQ(store.waiting_guess_count(), 1u);
  EXPECT_EQ(store.whereabouts({1, 2}), Whereabouts::absent) << "a guess that waits has no slot";
  land_all(test);
  EXPECT_EQ(store.whereabouts({1, 2}), Whereabouts::guessed);
  EXPECT_TRUE(store.is_resident({1, 2}));
  const ExpertLease lease = store.acquire({1, 2}, 1);
  ASSERT_TRUE(lease && test.is_ready(lease, {1, 2}));
  EXPECT_TRUE(test.has_bytes(lease, {1, 2}));
  EXPECT_EQ(store.whereabouts({1, 2}), Whereabouts::resident);
  const ExpertStats stats = store.stats();
  EXPECT_EQ(stats.hit_count, 1u);
  EXPECT_EQ(stats.guesses[1].started_count, 1u);
  EXPECT_EQ(stats.guesses[1].useful_count, 1u);
  EXPECT_EQ(stats.prefetch_read_count, 2u);
  EXPECT_EQ(stats.prefetch_bytes, 96u * (70 + 43));
  EXPECT_EQ(stats.prefetch_useful_bytes, 96u * (70 + 43));
  EXPECT_EQ(stats.prefetch_promoted_count + stats.demand_read_count, 0u);
  test.check_at_rest();
}

TEST(ExpertStoreGuess, JoinedOnItsWayItIsReadOnceAndTheRestAsDemand) {
  Streamed test({.queue = {.prefetch_chunk_bytes = 4096, .prefetch_in_service_max = 1}});
  ExpertStore& store = test.store();
  ASSERT_EQ(window_bytes(test, {0, 3}), 3 * 8192u);
  store.guess(guess_of({0, 3}));
  store.pump();
  ASSERT_EQ(test.drive().log().size(), 1u) << "one chunk of 4 KiB";
  store.begin_layer(0, std::array{3, 3}, Ranking::worth);
  const ExpertLease lease = test.load({0, 3});
  EXPECT_TRUE(test.has_bytes(lease, {0, 3}));
  EXPECT_EQ(test.drive().log().size(), 1u + 3) << "what is left of each part is one read";
  EXPECT_EQ(bytes_read_once(test), 3 * 8192u);
  const ExpertStats stats = store.stats();
  EXPECT_EQ(stats.join_count, 1u);
  EXPECT_EQ(stats.prefetch_promoted_count, 1u);
  EXPECT_EQ(stats.guesses[1].useful_count, 1u);
  EXPECT_EQ(stats.demand_read_count, 0u) << "it was handed in as a prefetch";
  EXPECT_EQ(store.acquire({0, 3}, 1).ready(0b111), true);
  EXPECT_EQ(store.stats().guesses[1].useful_count, 1u) << "useful once";
  test.check_at_rest();
}

TEST(ExpertStoreGuess, WrongOnesAreGivenUpWhenTheLayerBegins) {
  Streamed test;
  ExpertStore& store = test.store();
  for (const uint32_t index : {1u, 2u, 3u}) store.guess(guess_of({0, index}, 1, index));
  store.guess(guess_of({2, 7}, 3));
  store.pump();
  const size_t started = test.drive().log().size();
  EXPECT_EQ(started, 4u) << "1 and a part of 2";
  EXPECT_EQ(store.waiting_guess_count(), 2u) << "3, and that for layer 2";
  store.begin_layer(0, std::array{2}, Ranking::worth);
  EXPECT_EQ(store.waiting_guess_count(), 1u);
  EXPECT_EQ(store.whereabouts({0, 1}), Whereabouts::absent);
  EXPECT_EQ(store.whereabouts({0, 2}), Whereabouts::guessed);
  const ExpertLease lease = test.load({0, 2});
  EXPECT_TRUE(test.has_bytes(lease, {0, 2}));
  test.queue().drain();
  GuessStats guesses = store.stats().all_guesses();
  EXPECT_EQ(guesses.started_count, 3u) << "layer 2 had its chance when 1 was given up";
  EXPECT_EQ(guesses.useful_count, 1u);
  EXPECT_EQ(guesses.cancelled_count, 1u);
  EXPECT_EQ(bytes_read_once(test),
            window_bytes(test, {0, 1}) + window_bytes(test, {0, 2}) + window_bytes(test, {2, 7}));
  EXPECT_EQ(store.stats().prefetch_bytes, 96u * (31 + 31 + 43) + 96 * (40 + 40 + 43));
  test.check_at_rest();
}

TEST(ExpertStoreGuess, AGivenUpSlotIsFreeWhenItsReadHasLanded) {
  Streamed test({.slots = {1, 1, 1}, .queue = {.prefetch_chunk_bytes = 4096}});
  ExpertStore& store = test.store();
  store.guess(guess_of({0, 1}));
  store.pump();
  store.begin_layer(0, std::array{5}, Ranking::worth);
  EXPECT_EQ(store.whereabouts({0, 1}), Whereabouts::absent);
  EXPECT_FALSE(store.acquire({0, 5}, 1)) << "bytes are still landing in the only slot";
  ASSERT_TRUE(store.is_reading());
  while (!store.acquire({0, 5}, 1)) store.wait();
  EXPECT_TRUE(test.has_bytes(test.load({0, 5}), {0, 5}));
  EXPECT_EQ(store.stats().miss_count, 1u);
  EXPECT_EQ(store.stats().guesses[1].cancelled_count, 1u);
  test.check_at_rest();
}

/// An expert may be wanted while what was given up of it is still landing.
TEST(ExpertStoreGuess, GivenUpAndWantedAfterAllItIsReadAgain) {
  Streamed test(
      {.drive = {.planned = {{0, FakeFault::delayed}}}, .queue = {.prefetch_chunk_bytes = 4096}});
  ExpertStore& store = test.store();
  store.guess(guess_of({0, 1}));
  store.pump();
  store.drop_guesses();
  EXPECT_FALSE(store.acquire({0, 1}, 1));
  while (!store.acquire({0, 1}, 1)) store.wait();
  const ExpertLease lease = test.load({0, 1});
  EXPECT_TRUE(test.has_bytes(lease, {0, 1}));
  EXPECT_EQ(store.stats().miss_count, 1u);
  EXPECT_EQ(store.stats().join_count, 1u);
  EXPECT_FALSE(store.error().has_value());
  test.check_at_rest();
}

TEST(ExpertStoreGuess, GetsASlotOnlyWhenItsReadWouldStart) {
  Streamed test;
  ExpertStore& store = test.store();
  for (uint32_t index = 0; index < 4; ++index) test.load({1, index});
  ASSERT_EQ(store.stats().eviction_count, 0u);
  const ExpertLease demand = store.acquire({0, 0}, 1);
  for (const uint32_t index : {5u, 6u, 7u}) store.guess(guess_of({1, index}));
  EXPECT_EQ(store.stats().eviction_count, 0u) << "nothing leaves for a guess that waits";
  store.pump();
  EXPECT_EQ(store.stats().eviction_count, 1u) << "beside a demand read 2 prefetches are in service";
  EXPECT_EQ(store.waiting_guess_count(), 2u);
  EXPECT_EQ(store.whereabouts({1, 0}), Whereabouts::absent) << "the least recently used has left";
  test.queue().drain();
  store.pump();
  EXPECT_EQ(store.waiting_guess_count(), 0u) << "4 are, when there is none";
  test.check_at_rest();
}

TEST(ExpertStoreGuess, WaitsForAsLongAsDemandIsReadWhereNothingMayBesideIt) {
  Streamed test({.queue = {.prefetch_in_service_beside_demand_max = 0}});
  ExpertStore& store = test.store();
  const ExpertLease demand = store.acquire({0, 0}, 1);
  store.guess(guess_of({1, 5}));
  while (!test.is_ready(demand, {0, 0})) {
    EXPECT_EQ(store.stats().all_guesses().started_count, 0u);
    store.wait();
  }
  store.pump();
  EXPECT_EQ(store.stats().all_guesses().started_count, 1u);
}

TEST(ExpertStoreGuess, NeverTakesTheSlotOfWhatIsExpectedToo) {
  Streamed test;
  ExpertStore& store = test.store();
  for (uint32_t index = 0; index < 4; ++index) test.load({1, index});
  store.begin_tokens(1);
  store.begin_layer(0, kNobody, Ranking::worth);
  for (uint32_t index = 0; index < 4; ++index) store.guess(guess_of({1, index}));
  store.guess(guess_of({1, 8}));
  store.pump();
  EXPECT_EQ(store.waiting_guess_count(), 0u);
  EXPECT_EQ(store.stats().all_guesses().started_count, 0u);
  EXPECT_EQ(store.stats().eviction_count, 0u);
  store.begin_tokens(1);
  store.guess(guess_of({1, 8}));
  store.pump();
  EXPECT_EQ(store.stats().eviction_count, 1u) << "that was the token before";
}

TEST(ExpertStoreGuess, ForTheNextTokenProtectsNobodyAndOutlivesThisOne) {
  Streamed test;
  ExpertStore& store = test.store();
  for (uint32_t index = 0; index < 4; ++index) test.load({2, index % 2});
  store.begin_tokens(1);
  store.begin_layer(1, kNobody, Ranking::worth);
  for (const uint32_t index : {0u, 1u}) store.guess(guess_of({2, index}, kNextToken));
  store.begin_layer(2, kNobody, Ranking::worth);
  const ExpertLease busy = store.acquire({0, 0}, 1);
  store.guess(guess_of({2, 5}, kNextToken));
  store.begin_tokens(1);
  store.begin_layer(0, kNobody, Ranking::worth);
  store.begin_layer(1, kNobody, Ranking::worth);
  land_all(test);
  EXPECT_EQ(store.whereabouts({2, 5}), Whereabouts::guessed);
  EXPECT_EQ(store.whereabouts({2, 0}), Whereabouts::absent);
  EXPECT_EQ(store.stats().guesses[0].started_count, 1u);
}

TEST(ExpertStoreGuess, EachDistanceHasItsCounts) {
  Streamed test({.slots = {9, 9, 9}});
  ExpertStore& store = test.store();
  store.guess(guess_of({0, 0}, 1));
  store.guess(guess_of({0, 1}, 2));
  store.guess(guess_of({0, 2}, 2));
  store.guess(guess_of({0, 3}, 3));
  store.guess(guess_of({1, 4}, 9));
  store.guess(guess_of({1, 5}, kNextToken));
  land_all(test);
  test.load({0, 1});
  test.load({1, 5});
  store.forget_all();
  const ExpertStats stats = store.stats();
  const std::array<std::array<uint64_t, 3>, 4> expected{
      {{1, 1, 0}, {1, 0, 1}, {2, 1, 1}, {2, 0, 2}}};
  for (size_t distance = 0; distance < 4; ++distance) {
    EXPECT_EQ(stats.guesses[distance].started_count, expected[distance][0]) << distance;
    EXPECT_EQ(stats.guesses[distance].useful_count, expected[distance][1]) << distance;
    EXPECT_EQ(stats.guesses[distance].wasted_count, expected[distance][2]) << distance;
    EXPECT_EQ(stats.guesses[distance].cancelled_count, 0u);
  }
  test.check_at_rest();
}

/// Evicted by demand, given back to the system, forgotten: gone before any use is wasted.
TEST(ExpertStoreGuess, WasteIsCountedHoweverItLeaves) {
  Streamed test({.slots = {1, 3, 1}});
  ExpertStore& store = test.store();
  for (const ExpertId id : {ExpertId{0, 0}, {1, 0}, {1, 1}, {1, 2}, {2, 0}})
    store.guess(guess_of(id));
  land_all(test);
  EXPECT_EQ(store.stats().guesses[1].started_count, 5u);
  test.load({0, 4});
  EXPECT_EQ(store.stats().guesses[1].wasted_count, 1u);
  EXPECT_EQ(store.give_back(1), 20'480u) << "a slot of the class that has slots to spare";
  EXPECT_EQ(store.stats().guesses[1].wasted_count, 2u);
  test.check_sums();
  store.forget_all();
  EXPECT_EQ(store.stats().guesses[1].wasted_count, 5u);
  EXPECT_EQ(store.stats().eviction_count, 2u);
  test.check_at_rest();
}

TEST(ExpertStoreGuess, AFailedOneIsForgottenWithoutAnError) {
  for (uint64_t part = 0; part < 3; ++part) {
    SCOPED_TRACE(part);
    Streamed test({.drive = {.planned = {{part, FakeFault::broken}}}});
    ExpertStore& store = test.store();
    store.guess(guess_of({0, 4}));
    land_all(test);
    EXPECT_FALSE(store.error().has_value());
    EXPECT_EQ(store.whereabouts({0, 4}), Whereabouts::absent);
    EXPECT_EQ(store.stats().guesses[1].cancelled_count, 1u);
    EXPECT_EQ(store.stats().prefetch_bytes, 0u);
    EXPECT_TRUE(test.has_bytes(test.load({0, 4}), {0, 4}));
    EXPECT_EQ(store.stats().miss_count, 1u);
    test.check_at_rest();
  }
}

TEST(ExpertStoreGuess, ReadAgainOnDemandTheErrorCounts) {
  Streamed test;
  ExpertStore& store = test.store();
  test.drive().break_range({0, 0, 260'000});
  store.guess(guess_of({0, 4}));
  land_all(test);
  EXPECT_FALSE(store.error().has_value());
  test.load({0, 4});
  ASSERT_TRUE(store.error().has_value());
  EXPECT_EQ(store.error()->kind, ErrorKind::io);
  store.give_up();
  EXPECT_FALSE(store.error().has_value());
  test.check_at_rest();
}

TEST(ExpertStoreGuess, AnErrorCountsWhenSomebodyWaitsForIt) {
  Streamed test({.drive = {.planned = {{2, FakeFault::broken}}}});
  ExpertStore& store = test.store();
  store.guess(guess_of({0, 4}));
  store.pump();
  ExpertLease lease = test.load({0, 4});
  ASSERT_TRUE(lease);
  EXPECT_TRUE(store.error().has_value());
  EXPECT_FALSE(test.is_ready(lease, {0, 4}));
  lease = {};
  store.give_up();
  EXPECT_EQ(store.stats().guesses[1].useful_count, 1u) << "the guess was right";
  test.check_at_rest();
}

/// One part has failed, the others are landing: until they have there is no lease, then a miss.
TEST(ExpertStoreGuess, AFailedOneStillLandingIsNotLeased) {
  Streamed test({.drive = {.planned = {{0, FakeFault::broken}, {2, FakeFault::delayed}}}});
  ExpertStore& store = test.store();
  store.guess(guess_of({0, 4}));
  store.pump();
  store.wait();
  ASSERT_TRUE(store.is_reading());
  EXPECT_FALSE(store.acquire({0, 4}, 1));
  EXPECT_EQ(store.stats().lookup_count, 0u);
  while (!store.acquire({0, 4}, 1)) store.wait();
  EXPECT_TRUE(test.has_bytes(test.load({0, 4}), {0, 4}));
  EXPECT_EQ(store.stats().miss_count, 1u);
  EXPECT_FALSE(store.error().has_value());
  test.check_at_rest();
}

TEST(ExpertStoreGuess, DroppingSparesWhatSomebodyWaitsFor) {
  Streamed test;
  ExpertStore& store = test.store();
  for (const uint32_t index : {0u, 1u, 2u, 3u}) store.guess(guess_of({1, index}, 1, index));
  store.pump();
  ASSERT_EQ(store.stats().guesses[1].started_count, 2u);
  const ExpertLease joined = store.acquire({1, 0}, 1);
  store.drop_guesses();
  EXPECT_EQ(store.waiting_guess_count(), 0u);
  while (!test.is_ready(joined, {1, 0})) store.wait();
  EXPECT_TRUE(test.has_bytes(joined, {1, 0}));
  test.queue().drain();
  EXPECT_EQ(store.stats().guesses[1].cancelled_count, 1u);
  test.check_at_rest();
}

/// A prompt that fails while its layers borrow must not leave the others without a slot.
TEST(ExpertStoreLending, EndsWhenTheRequestGivesUp) {
  Streamed test({.slots = {2, 2, 2}});
  ExpertStore& store = test.store();
  store.lend(std::array{ExpertCache::Share{.layer = 0, .slot_count = 9}}, 0);
  for (uint32_t index = 0; index < 4; ++index) test.load({0, index});
  EXPECT_FALSE(store.acquire({2, 0}, 1)) << "all of its slots are lent";
  store.give_up();
  EXPECT_TRUE(test.has_bytes(test.load({2, 0}), {2, 0}));
  test.check_at_rest();
}

TEST(ExpertStoreFill, TakesEmptySlotsAndIsNoGuess) {
  Streamed test;
  ExpertStore& store = test.store();
  test.load({2, 0});
  EXPECT_TRUE(store.fill({2, 1}));
  EXPECT_FALSE(store.fill({2, 1})) << "it is on its way";
  EXPECT_FALSE(store.fill({2, 2})) << "no slot is empty";
  land_all(test);
  EXPECT_EQ(store.whereabouts({2, 1}), Whereabouts::resident);
  ExpertStats stats = store.stats();
  EXPECT_EQ(stats.idle_fill_count, 1u);
  EXPECT_EQ(stats.all_guesses().started_count + stats.prefetch_read_count, 0u);
  EXPECT_EQ(stats.eviction_count, 0u);
  EXPECT_TRUE(test.has_bytes(test.load({2, 1}), {2, 1}));
  EXPECT_EQ(store.stats().hit_count, 1u);
  test.check_at_rest();
}

TEST(ExpertStoreFill, JoinedItIsHurriedAndStoppedItLeavesNothing) {
  Streamed test({.queue = {.prefetch_chunk_bytes = 4096, .prefetch_in_service_max = 1}});
  ExpertStore& store = test.store();
  EXPECT_TRUE(store.fill({0, 0}));
  EXPECT_TRUE(store.fill({0, 1}));
  store.pump();
  const ExpertLease lease = test.load({0, 0});
  EXPECT_TRUE(test.has_bytes(lease, {0, 0}));
  EXPECT_EQ(store.stats().join_count, 1u);
  EXPECT_EQ(store.stats().idle_fill_count, 0u) << "in the end somebody has asked";
  EXPECT_EQ(store.stats().prefetch_promoted_count, 0u) << "that counts guesses";
  store.drop_guesses();
  test.queue().drain();
  EXPECT_EQ(store.whereabouts({0, 1}), Whereabouts::absent);
  EXPECT_LT(bytes_read_once(test), window_bytes(test, {0, 0}) + window_bytes(test, {0, 1}));
  EXPECT_TRUE(store.fill({0, 1}));
  test.check_at_rest();
  EXPECT_EQ(store.stats().idle_fill_count, 1u);
}

}  // namespace
}  // namespace sluice
