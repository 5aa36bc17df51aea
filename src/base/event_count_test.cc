#include "base/event_count.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace sluice {
namespace {

TEST(EventCount, ATicketFromBeforeAnAnnouncementDoesNotSleep) {
  EventCount events;
  const auto ticket = events.current();
  events.wake(0);  // Announces, though it rouses nobody.
  events.park(ticket);
  EXPECT_NE(events.current(), ticket);
  const auto later = events.current();
  events.wake_all();
  events.park(later);
  events.park(ticket);
}

// Each waits for the other's turn 20,000 times. One wake-up lost, and the test hangs.
TEST(EventCount, NoWakeUpIsLostBetweenTwoThreads) {
  constexpr int kTurns = 20'000;
  std::array<EventCount, 2> events;
  std::atomic<int> turn{0};
  const auto play = [&](int self) {
    for (int mine = self; mine < kTurns; mine += 2) {
      for (;;) {
        const auto ticket = events[static_cast<size_t>(self)].current();
        if (turn.load(std::memory_order_relaxed) == mine) break;
        events[static_cast<size_t>(self)].park(ticket);
      }
      turn.store(mine + 1, std::memory_order_relaxed);
      events[static_cast<size_t>(1 - self)].wake(1);
    }
  };
  std::thread other([&] { play(1); });
  play(0);
  other.join();
  EXPECT_EQ(turn.load(), kTurns);
}

// Tokens come one by one, in pairs or for all; they are all taken, whoever sleeps.
TEST(EventCount, AnnouncementsReachManySleepers) {
  constexpr int kTokens = 30'000;
  EventCount events;
  std::atomic<int> tokens{0}, taken{0};
  std::atomic<bool> stop{false};
  const auto take = [&] {
    int left = tokens.load(std::memory_order_relaxed);
    while (left > 0 && !tokens.compare_exchange_weak(left, left - 1)) continue;
    return left > 0;
  };
  std::vector<std::thread> sleepers;
  for (int i = 0; i < 4; ++i)
    sleepers.emplace_back([&] {
      for (;;) {
        const auto ticket = events.current();
        if (take())
          ++taken;
        else if (stop.load(std::memory_order_relaxed))
          return;
        else
          events.park(ticket);
      }
    });
  for (int given = 0; given < kTokens; given += 3) {
    tokens += 1;
    events.wake(1);
    tokens += 2;
    if (given % 2 == 0)
      events.wake(2);
    else
      events.wake_all();
    while (given % 64 == 0 && tokens.load() > 0) std::this_thread::yield();
  }
  stop = true;
  events.wake_all();
  for (std::thread& sleeper : sleepers) sleeper.join();
  EXPECT_EQ(taken.load(), kTokens);
}

}  // namespace
}  // namespace sluice
