// How fast the compute threads can read memory: the ceiling of decoding with everything resident.
#include <algorithm>
#include <numeric>

#include "engine/engine_impl.h"
#include "os/clock.h"

namespace sluice {
namespace {

constexpr uint64_t kBytesMax = 256u << 20;
constexpr size_t kPieceBytes = 1u << 20;  ///< one task: many, so that all threads have work
constexpr int kPasses = 3;                ///< the best counts: a ceiling, not an average

/// Sums 64-bit words; the compiler vectorises it, and memory is slower than that.
uint64_t sum_words(const std::byte* begin, size_t bytes) {
  const auto* words = reinterpret_cast<const uint64_t*>(begin);
  return std::accumulate(words, words + bytes / sizeof(uint64_t), uint64_t{0});
}

}  // namespace

double Engine::measure_ram_rate() {
  Impl& impl = *impl_;
  const IdleFill::Request request(*impl.idle_fill);
  // Slots that hold experts, and the dense weights: memory that has been touched. Untouched pages
  // would all be the same page of zeros.
  std::vector<std::span<const std::byte>> pieces;
  uint64_t bytes = 0;
  const auto add = [&](std::span<const std::byte> memory) {
    for (size_t at = 0; at < memory.size() && bytes < kBytesMax; at += pieces.back().size()) {
      pieces.push_back(memory.subspan(at, std::min(kPieceBytes, memory.size() - at)));
      bytes += pieces.back().size();
    }
  };
  for (const auto& memory : impl.slots->resident_pieces()) add(memory);
  for (const auto& memory : impl.model->dense_pieces()) add(memory);
  if (bytes == 0) return 0;

  std::atomic<uint64_t> keep{0};  // so that the sums are not optimised away
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const uint64_t start = os::now_ns();
    impl.pool->run_queue(pieces.size(), [&](size_t index, size_t) {
      keep.fetch_add(sum_words(pieces[index].data(), pieces[index].size()),
                     std::memory_order_relaxed);
    });
    best = std::max(best, static_cast<double>(bytes) / os::seconds_between(start, os::now_ns()));
  }
  return best;
}

}  // namespace sluice
