// Nothing allocates on the token path: counts every operator new of this program while a session
// decodes with a cache too small for its experts.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <new>

#include "engine/engine.h"

namespace {

// By thread, in order of their first allocation.
constexpr size_t kThreadsMax = 256;
std::array<std::atomic<uint64_t>, kThreadsMax> allocation_counts{};
std::atomic<size_t> thread_count{0};
thread_local size_t this_thread = kThreadsMax;

void* counted(std::size_t bytes, std::size_t alignment) {
  if (this_thread == kThreadsMax) this_thread = thread_count.fetch_add(1) % kThreadsMax;
  allocation_counts[this_thread].fetch_add(1, std::memory_order_relaxed);
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) {
  return counted(bytes, alignof(std::max_align_t));
}
void* operator new[](std::size_t bytes) {
  return counted(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace sluice {
namespace {

void expect_no_allocation(EngineOptions options) {
  options.cache.slots_per_layer = 6;
  options.ring_slots = 40;
  options.census = "off";
  auto engine = Engine::open(SLUICE_SOURCE_DIR "/models/demo-q4_k_m.gguf", options,
                             Log(LogLevel::quiet), nullptr);
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  auto session = (*engine)->new_session();
  ASSERT_TRUE(session.ok());
  const std::vector<text::TokenId> prompt{100, 200, 300};
  ASSERT_TRUE((*session)->prefill(prompt).ok());
  ASSERT_TRUE((*session)->decode(400).ok());

  const MoeCounters before = (*engine)->counters();
  std::array<uint64_t, kThreadsMax> start{};
  std::ranges::copy(allocation_counts, start.begin());
  for (text::TokenId token = 500; token < 540; ++token) ASSERT_TRUE((*session)->decode(token).ok());
  // Beside the threads of the token path there is one that looks at the system's memory now and
  // then, which takes strings.
  EXPECT_EQ(allocation_counts[this_thread] - start[this_thread], 0u);
  size_t allocating = 0;
  for (size_t i = 0; i < kThreadsMax; ++i) allocating += allocation_counts[i] != start[i];
  EXPECT_LE(allocating, 1u);
  EXPECT_GT((*engine)->counters().since(before).misses, 0u) << "the drive took part";
}

TEST(Allocation, DecodingAllocatesNothing) {
  expect_no_allocation({});
}

TEST(Allocation, NorWithReadingThreads) {
  EngineOptions options;
  options.io = ReadBackend::threads;
  expect_no_allocation(options);
}

TEST(Allocation, NorWhileItLooksAsFarAheadAsItMay) {
  EngineOptions options;
  options.governor = Switch::off;
  options.lookahead_layers = 3;
  options.spec_count = 4;
  expect_no_allocation(options);
}

TEST(Allocation, NorByAnyOrderOfEviction) {
  for (const EvictionKind evict : {EvictionKind::lru, EvictionKind::decay, EvictionKind::contest})
    for (const PoolKind pool : {PoolKind::layer, PoolKind::ring}) {
      EngineOptions options;
      options.evict = evict;
      options.pool = pool;
      expect_no_allocation(options);
    }
}

}  // namespace
}  // namespace sluice
