#include "bench/machine_limits.h"

#include <algorithm>

#include "os/clock.h"

namespace sluice::bench {
namespace {

constexpr int kTries = 5;

/// Units per second: the best of some tries of `work`, which does so many.
template <class Work>
double best_rate(double units, const Work& work) {
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    const uint64_t start = os::now_ns();
    work();
    best = std::max(best, units / os::seconds_between(start, os::now_ns()));
  }
  return best;
}

}  // namespace

/// 16 independent sums, which any compiler turns into wide loads.
double measure_read_rate(std::span<const std::byte> memory) {
  volatile uint32_t keep = 0;
  return best_rate(static_cast<double>(memory.size()), [&] {
    uint32_t sums[16] = {};
    for (size_t at = 0; at + sizeof sums <= memory.size(); at += sizeof sums) {
      const auto* words = reinterpret_cast<const uint32_t*>(memory.data() + at);
      for (size_t i = 0; i < 16; ++i) sums[i] += words[i];
    }
    for (const uint32_t sum : sums) keep = keep + sum;
  });
}

double measure_multiply_rate(const kernels::KernelTable& table) {
  if (table.multiply_only == nullptr) return 0;
  constexpr size_t kRounds = 1 << 20;
  const auto products = static_cast<double>(table.multiply_only(kRounds));
  return best_rate(2 * products, [&] { table.multiply_only(kRounds); });
}

}  // namespace sluice::bench
