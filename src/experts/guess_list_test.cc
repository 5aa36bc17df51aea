#include "experts/guess_list.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace sluice {
namespace {

TEST(GuessList, NearestLayerThenNearestGuessThenRank) {
  GuessList list(10);
  list.add({.id = {5, 1}, .distance = 2, .rank = 0});
  list.add({.id = {4, 2}, .distance = 2, .rank = 1});
  list.add({.id = {4, 3}, .distance = 1, .rank = 7});
  list.add({.id = {4, 4}, .distance = 2, .rank = 0});
  list.add({.id = {0, 5}, .distance = kNextToken, .rank = 0});
  std::vector<uint32_t> order;
  while (!list.empty()) order.push_back(list.pop().id.index);
  EXPECT_EQ(order, (std::vector<uint32_t>{3, 4, 2, 1, 5}));
}

TEST(GuessList, OfTwoGuessesForAnExpertTheMoreUrgentStays) {
  GuessList list(10);
  list.add({.id = {3, 0}, .distance = 2, .rank = 0});
  list.add({.id = {3, 1}, .distance = 1, .rank = 5});
  list.add({.id = {3, 0}, .distance = 1, .rank = 6});  // truer, and behind 1
  list.add({.id = {3, 1}, .distance = 2, .rank = 0});  // says nothing new
  list.add({.id = {3, 1}, .distance = kNextToken, .rank = 0});
  EXPECT_EQ(list.size(), 2u);
  EXPECT_EQ(list.pop().id.index, 1u);
  const Guess last = list.pop();
  EXPECT_EQ(last.id.index, 0u);
  EXPECT_EQ(last.distance, 1u);
  EXPECT_EQ(last.rank, 6u);
}

TEST(GuessList, WhenFullTheLeastUrgentIsDropped) {
  GuessList list(2);
  list.add({.id = {1, 0}});
  list.add({.id = {2, 0}});
  list.add({.id = {3, 0}});  // less urgent than both
  EXPECT_EQ(list.size(), 2u);
  list.add({.id = {0, 0}});
  EXPECT_EQ(list.pop().id.layer, 0u);
  EXPECT_EQ(list.pop().id.layer, 1u);
  EXPECT_TRUE(list.empty());
}

TEST(GuessList, ALayersGuessesLeaveTogether) {
  GuessList list(8);
  for (const uint32_t layer : {1, 2, 1, 3, 2}) {
    list.add({.id = {layer, static_cast<uint32_t>(list.size())}});
  }
  list.drop_layer(1);
  list.drop_layer(7);
  EXPECT_EQ(list.size(), 3u);
  EXPECT_EQ(list.pop().id.layer, 2u);
  EXPECT_EQ(list.pop().id.layer, 2u);
  EXPECT_EQ(list.pop().id.layer, 3u);
}

/// For comparing: the smaller comes first.
auto key(const Guess& guess) {
  return std::tuple(guess.distance == kNextToken ? 1 : 0, guess.id.layer, guess.distance,
                    guess.rank, guess.id.index);
}

TEST(GuessList, IsASortedListWithoutDuplicates) {
  constexpr size_t kCapacity = 9;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    GuessList list(kCapacity);
    std::vector<Guess> model;
    for (int step = 0; step < 2000; ++step) {
      const uint64_t what = random.below(8);
      if (what < 5) {
        const Guess guess{
            .id = {static_cast<uint32_t>(random.below(4)), static_cast<uint32_t>(random.below(6))},
            .distance =
                random.below(5) == 0 ? kNextToken : static_cast<uint32_t>(1 + random.below(3)),
            .rank = static_cast<uint32_t>(random.below(4))};
        list.add(guess);
        const auto same = std::ranges::find(model, guess.id, &Guess::id);
        if (same == model.end())
          model.push_back(guess);
        else if (key(guess) < key(*same))
          *same = guess;
        std::ranges::sort(model, {}, key);
        if (model.size() > kCapacity) model.pop_back();
      } else if (what < 7 && !model.empty()) {
        ASSERT_EQ(key(list.pop()), key(model.front()));
        model.erase(model.begin());
      } else if (random.below(3) == 0) {
        const auto layer = static_cast<uint32_t>(random.below(4));
        list.drop_layer(layer);
        std::erase_if(model, [&](const Guess& guess) { return guess.id.layer == layer; });
      }
      ASSERT_EQ(list.size(), model.size());
      ASSERT_EQ(list.empty(), model.empty());
    }
    list.clear();
    EXPECT_TRUE(list.empty());
  }
}

TEST(GuessListDeathTest, NothingComesOutOfAnEmptyList) {
  GuessList list(2);
  EXPECT_DEATH(list.pop(), "check failed");
}

}  // namespace
}  // namespace sluice
