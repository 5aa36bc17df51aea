#include "base/mpmc_queue.h"

#include <gtest/gtest.h>

#include <deque>
#include <thread>
#include <vector>

#include "base/random.h"

namespace sluice {
namespace {

TEST(MpmcQueue, HoldsTheNextPowerOfTwo) {
  EXPECT_EQ(MpmcQueue<int>(0).capacity(), 2u);
  EXPECT_EQ(MpmcQueue<int>(1).capacity(), 2u);
  EXPECT_EQ(MpmcQueue<int>(2).capacity(), 2u);
  EXPECT_EQ(MpmcQueue<int>(3).capacity(), 4u);
  EXPECT_EQ(MpmcQueue<int>(64).capacity(), 64u);
  EXPECT_EQ(MpmcQueue<int>(65).capacity(), 128u);
}

TEST(MpmcQueue, IsAQueueForOneThread) {
  for (const size_t capacity : {2, 4, 64}) {
    Random random(capacity);
    MpmcQueue<uint64_t> queue(capacity);
    std::deque<uint64_t> model;
    for (int step = 0; step < 20'000; ++step) {
      // Runs of pushes and of pops, so that the queue is often full and often empty.
      const bool push = (step / (2 * capacity)) % 2 == random.below(8) / 7;
      if (push) {
        const uint64_t item = random.next();
        ASSERT_EQ(queue.try_push(item), model.size() < capacity);
        if (model.size() < capacity) model.push_back(item);
      } else {
        const auto item = queue.try_pop();
        ASSERT_EQ(item.has_value(), !model.empty());
        if (model.empty()) continue;
        ASSERT_EQ(*item, model.front());
        model.pop_front();
      }
    }
  }
}

/// What one thread pushed as its `index`-th, in two halves so that a torn item is seen.
struct Item {
  uint64_t producer = ~uint64_t{0};
  uint64_t index = 0;
  uint64_t inverse = 0;
};

struct Crowd {
  size_t producer_count;
  size_t consumer_count;
  size_t capacity;
  uint64_t item_count;  ///< of each producer
};

/// What each consumer took, in its order.
std::vector<std::vector<Item>> run_crowd(const Crowd& crowd) {
  MpmcQueue<Item> queue(crowd.capacity);
  std::atomic<uint64_t> left{crowd.producer_count * crowd.item_count};
  std::vector<std::vector<Item>> taken(crowd.consumer_count);
  std::vector<std::thread> threads;
  for (uint64_t producer = 0; producer < crowd.producer_count; ++producer)
    threads.emplace_back([&, producer] {
      for (uint64_t index = 0; index < crowd.item_count; ++index)
        while (!queue.try_push({producer, index, ~index})) std::this_thread::yield();
    });
  for (auto& mine : taken)
    threads.emplace_back([&] {
      while (left.load(std::memory_order_relaxed) > 0) {
        if (const auto item = queue.try_pop()) {
          mine.push_back(*item);
          left.fetch_sub(1, std::memory_order_relaxed);
        } else {
          std::this_thread::yield();
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(queue.try_pop().has_value());
  return taken;
}

TEST(MpmcQueue, GivesEachItemToOneThreadAndKeepsEachProducersOrder) {
  for (const Crowd& crowd : {Crowd{1, 4, 2, 20'000}, Crowd{4, 1, 2, 5'000}, Crowd{3, 3, 2, 7'000},
                             Crowd{2, 2, 64, 20'000}}) {
    std::vector<std::vector<int>> seen(crowd.producer_count, std::vector<int>(crowd.item_count, 0));
    for (const auto& mine : run_crowd(crowd)) {
      std::vector<uint64_t> next(crowd.producer_count, 0);
      for (const Item& item : mine) {
        ASSERT_LT(item.producer, crowd.producer_count);
        ASSERT_LT(item.index, crowd.item_count);
        ASSERT_EQ(item.inverse, ~item.index);
        ASSERT_GE(item.index, next[item.producer]);
        next[item.producer] = item.index + 1;
        ++seen[item.producer][item.index];
      }
    }
    for (const auto& items : seen)
      for (const int times : items) ASSERT_EQ(times, 1);
  }
}

}  // namespace
}  // namespace sluice
