// How near two cores are: nanoseconds that a cache line takes from one to the other. Where cores
// sit on several chiplets, each with its own way to memory, two of one chiplet (some 35 ns apart)
// share what two of different ones (150 ns) have twice. A virtual machine's cores wander between
// the two states, so a race of programs that wait for memory compares only runs of the same one.
//
//   core_distance    prints the nanoseconds between the two cores that two busy threads get
#include <atomic>
#include <cstdio>
#include <thread>

#include "os/clock.h"
#include "os/cpu.h"

namespace {

constexpr int kRounds = 20000;              ///< some 2 ms
constexpr int kFirstRounds = kRounds / 10;  ///< until both threads run

/// Waits until the other side has written `value`.
void await(const std::atomic<int>& turn, int value) {
  while (turn.load(std::memory_order_acquire) != value) sluice::os::spin_pause();
}

/// Two threads hand one number to and fro.
double line_ns() {
  alignas(128) std::atomic<int> turn{0};
  std::thread other([&] {
    for (int round = 0; round < kRounds; ++round) {
      await(turn, 2 * round + 1);
      turn.store(2 * round + 2, std::memory_order_release);
    }
  });
  uint64_t start = 0;
  for (int round = 0; round < kRounds; ++round) {
    if (round == kFirstRounds) start = sluice::os::now_ns();
    turn.store(2 * round + 1, std::memory_order_release);
    await(turn, 2 * round + 2);
  }
  const double seconds = sluice::os::seconds_between(start, sluice::os::now_ns());
  other.join();
  return seconds * 1e9 / (2 * (kRounds - kFirstRounds));
}

}  // namespace

int main() {
  if (std::thread::hardware_concurrency() < 2) {
    std::fputs("core_distance: needs two cores\n", stderr);
    return 1;
  }
  std::printf("%.0f\n", line_ns());
}
