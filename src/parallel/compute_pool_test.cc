#include "parallel/compute_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "os/clock.h"

namespace sluice {
namespace {

// From one thread to more than this machine has cores.
class ComputePoolTest : public ::testing::TestWithParam<size_t> {
 protected:
  ComputePool pool_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Threads, ComputePoolTest, ::testing::Range(size_t{1}, size_t{9}));

TEST_P(ComputePoolTest, RunsOnEveryThreadOnce) {
  ASSERT_EQ(pool_.thread_count(), GetParam());
  std::vector<int> calls(GetParam(), 0);  // Plain ints: each belongs to one thread.
  std::vector<std::thread::id> ids(GetParam());
  pool_.run([&](size_t thread_index) {
    ++calls.at(thread_index);
    ids[thread_index] = std::this_thread::get_id();
  });
  EXPECT_EQ(calls, std::vector<int>(GetParam(), 1));
  EXPECT_EQ(std::set(ids.begin(), ids.end()).size(), GetParam());
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  // The team stays the same.
  pool_.run([&](size_t thread_index) { EXPECT_EQ(ids[thread_index], std::this_thread::get_id()); });
}

TEST_P(ComputePoolTest, RangesCoverEachIndexOnceInWholeGrains) {
  for (const size_t count : {0, 1, 2, 3, 7, 8, 9, 31, 64, 65, 1000, 1001}) {
    for (const size_t grain : {1, 3, 8, 64}) {
      std::vector<int> seen(count, 0);
      std::atomic<size_t> calls{0};
      pool_.run_ranges(count, grain, [&](size_t begin, size_t end) {
        ++calls;
        EXPECT_LT(begin, end);
        EXPECT_EQ(begin % grain, 0u);
        EXPECT_TRUE(end % grain == 0 || end == count);
        for (size_t i = begin; i < end; ++i) ++seen.at(i);
      });
      ASSERT_EQ(seen, std::vector<int>(count, 1)) << count << " by " << grain;
      EXPECT_LE(calls, pool_.thread_count());
    }
  }
}

TEST_P(ComputePoolTest, RangesUseAllThreadsWhenThereIsEnough) {
  std::atomic<size_t> calls{0};
  pool_.run_ranges(1000, 10, [&](size_t, size_t) { ++calls; });
  EXPECT_EQ(calls, GetParam());
}

TEST_P(ComputePoolTest, QueueTakesEachIndexOnce) {
  for (const size_t count : {0, 1, 2, 3, 100, 1017}) {
    std::vector<int> seen(count, 0);
    std::vector<size_t> taken(GetParam(), 0);  // Plain: each belongs to one thread.
    pool_.run_queue(count, [&](size_t i, size_t thread_index) {
      ++seen.at(i);
      ++taken.at(thread_index);
    });
    ASSERT_EQ(seen, std::vector<int>(count, 1)) << count;
    EXPECT_EQ(std::accumulate(taken.begin(), taken.end(), size_t{0}), count);
  }
}

TEST_P(ComputePoolTest, GuidedRangesCoverEachIndexOnceAndNoneIsTooLong) {
  for (const size_t count : {0, 1, 2, 3, 100, 1017}) {
    for (const size_t longest : {1, 7, 2000}) {
      std::vector<int> seen(count, 0);
      pool_.run_guided(count, longest, [&](size_t begin, size_t end, size_t thread_index) {
        EXPECT_LT(begin, end);
        EXPECT_LE(end - begin, longest);
        EXPECT_LT(thread_index, GetParam());
        for (size_t i = begin; i < end; ++i) ++seen.at(i);
      });
      ASSERT_EQ(seen, std::vector<int>(count, 1)) << count << " by at most " << longest;
    }
  }
}

TEST_P(ComputePoolTest, GuidedRangesShrinkTowardsTheEnd) {
  std::vector<size_t> lengths(1000, 0);  // Of the range that begins there.
  pool_.run_guided(1000, 1000,
                   [&](size_t begin, size_t end, size_t) { lengths[begin] = end - begin; });
  std::erase(lengths, 0u);
  EXPECT_EQ(lengths.front(), 1000 / GetParam() / 2);
  EXPECT_EQ(lengths.back(), 1u);
  EXPECT_TRUE(std::is_sorted(lengths.rbegin(), lengths.rend()));
}

TEST_P(ComputePoolTest, QueueLetsOthersGoOnWhileOneIsBusy) {
  if (GetParam() == 1) GTEST_SKIP() << "needs two threads";
  // Task 0 waits for all the others: with fixed ranges it would wait for ever.
  constexpr size_t kCount = 50;
  std::atomic<size_t> finished{0};
  pool_.run_queue(kCount, [&](size_t i, size_t) {
    while (i == 0 && finished < kCount - 1) std::this_thread::yield();
    ++finished;
  });
  EXPECT_EQ(finished, kCount);
}

TEST_P(ComputePoolTest, EachCallSeesWhatTheLastOneWrote) {
  // A chain through all threads: call n reads what other threads wrote in call n − 1. A barrier
  // that lets anything through breaks it, and TSan sees the race.
  constexpr size_t kCalls = 5'000;
  const size_t n = GetParam();
  std::vector<uint64_t> from(n), to(n);
  std::iota(from.begin(), from.end(), 1);
  uint64_t sum = n * (n + 1) / 2;
  for (size_t call = 0; call < kCalls; ++call) {
    pool_.run([&](size_t i) { to[i] = from[(i + 1) % n] + call; });
    from.swap(to);
    sum += n * call;
    ASSERT_EQ(std::accumulate(from.begin(), from.end(), uint64_t{0}), sum);
  }
}

TEST_P(ComputePoolTest, SurvivesAHundredThousandCalls) {
  const bool typical = GetParam() == 2 || GetParam() == 4;
  const size_t call_count = typical ? 100'000 : 10'000;
  std::vector<uint64_t> counts(GetParam() * 16, 0);  // 16: a cache line each.
  for (size_t call = 0; call < call_count; ++call) pool_.run([&](size_t i) { ++counts[i * 16]; });
  for (size_t i = 0; i < GetParam(); ++i) EXPECT_EQ(counts[i * 16], call_count) << i;
}

TEST_P(ComputePoolTest, WakesFromSleep) {
  std::atomic<size_t> calls{0};
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // The team has gone to sleep.
    pool_.run([&](size_t thread_index) {
      // So may the caller, while the last thread takes its time.
      if (thread_index == pool_.thread_count() - 1)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++calls;
    });
  }
  EXPECT_EQ(calls, 20 * GetParam());
}

/// Called between tasks, on the caller's thread and nowhere else, and when all have come to an end.
TEST_P(ComputePoolTest, TheInterludeIsTheCallersBetweenTasks) {
  const std::thread::id caller = std::this_thread::get_id();
  size_t calls = 0;  // A plain number: it belongs to the caller.
  bool in_task = false;
  pool_.set_interlude([&] {
    ASSERT_EQ(std::this_thread::get_id(), caller);
    ASSERT_FALSE(in_task);
    ++calls;
  });
  std::atomic<size_t> callers_tasks{0};
  pool_.run_queue(100, [&](size_t, size_t thread_index) {
    if (thread_index != 0) return;
    in_task = true;
    ++callers_tasks;
    in_task = false;
  });
  EXPECT_GE(calls, callers_tasks);
  calls = 0;
  pool_.run([](size_t) {});
  EXPECT_GE(calls, 1u);
  calls = 0;
  pool_.set_interlude({});
  pool_.run_queue(10, [](size_t, size_t) {});
  EXPECT_EQ(calls, 0u);
}

/// While another thread takes its time the caller looks after its reads, over and over.
TEST(ComputePool, TheInterludeGoesOnWhileOthersCompute) {
  ComputePool pool(2);
  if (pool.thread_count() < 2) GTEST_SKIP() << "needs two threads";
  std::atomic<size_t> calls{0};
  pool.set_interlude([&] { ++calls; });
  bool seen = false;
  pool.run([&](size_t thread_index) {
    if (thread_index == 0) return;
    const uint64_t start = os::now_ns();
    while (calls < 2 && os::now_ns() - start < 2'000'000'000) continue;
    seen = calls >= 2;
  });
  EXPECT_TRUE(seen);
}

TEST(ComputePool, ComesAndGoes) {
  for (size_t i = 0; i < 100; ++i) {
    ComputePool pool(1 + i % 4);  // Some end before their threads have begun.
    if (i % 3 == 0) continue;
    std::atomic<size_t> calls{0};
    pool.run([&](size_t) { ++calls; });
    ASSERT_EQ(calls, pool.thread_count());
  }
}

TEST(ComputePool, SeveralPoolsWorkSideBySide) {
  const auto use = [] {
    ComputePool pool(3);
    std::vector<size_t> counts(3, 0);
    for (int i = 0; i < 1000; ++i) pool.run([&](size_t thread_index) { ++counts[thread_index]; });
    EXPECT_EQ(counts, std::vector<size_t>(3, 1000));
  };
  std::thread other(use);
  use();
  other.join();
}

TEST(ComputePoolDeathTest, NoThreadsAreOurMistake) {
  EXPECT_DEATH(ComputePool(0), "check failed");
}

}  // namespace
}  // namespace sluice
