// What the default order of eviction promises, over all kinds of routing: never more than one
// percent worse than LRU, and five percent better where there is something to know and the cache
// holds up to 30 % of the experts. docs/eviction.md has the numbers and the exceptions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "engine/trace_replay.h"
#include "testing/made_routing.h"
#include "testing/temp_folder.h"

namespace sluice {
namespace {

constexpr uint32_t kTokens = 2000;
constexpr uint32_t kLayers = 2;

ReplayReport replay_raw(const std::string& path, const RawTraceLayout& layout, PoolKind pool,
                        const std::vector<uint32_t>& slots) {
  auto report = replay_trace({.path = path,
                              .raw = layout,
                              .pool = pool,
                              .slot_counts = slots,
                              .policies = {"lru", "contest"}});
  CHECK(report.ok());
  return std::move(*report);
}

ReplayReport replay_made(const MadeRouting& made, PoolKind pool,
                         const std::vector<uint32_t>& slots) {
  const TempFolder folder;
  const auto ids = made.make(kTokens, kLayers, 1);
  const std::string path = folder.write("ids.u8", std::as_bytes(std::span(ids)));
  return replay_raw(path, {kLayers, MadeRouting::kExpertCount, MadeRouting::kUsedCount}, pool,
                    slots);
}

/// Where LRU itself misses a few hundred times, 1 % of that is less than one change of the lead may
/// cost; so many misses more are allowed for.
constexpr uint64_t kHandful = 8;

void expect_never_worse(const ReplayReport& report, const std::vector<uint32_t>& slots,
                        std::string_view name) {
  for (const uint32_t slot_count : slots) {
    const uint64_t lru = report.find("lru", slot_count)->misses;
    const uint64_t contest = report.find("contest", slot_count)->misses;
    EXPECT_LE(contest, lru + lru / 100 + kHandful) << name << ", " << slot_count << " slots";
  }
}

TEST(EvictionPromise, NeverMuchWorseThanLru) {
  const std::vector<uint32_t> slots = {10, 26, 64, 80, 96, 122};
  for (const MadeRouting& made : made_routings())
    for (const PoolKind pool : {PoolKind::layer, PoolKind::ring})
      expect_never_worse(replay_made(made, pool, slots), slots, made.name);
}

TEST(EvictionPromise, BetterByFivePercentWhereThereIsSomethingToKnow) {
  const std::set<std::string_view> kNothingToKnow = {"uniform",  "drift 10", "recency",
                                                     "stack 24", "stack 64", "embedding 0.95"};
  for (const MadeRouting& made : made_routings()) {
    if (kNothingToKnow.contains(made.name)) continue;
    for (const PoolKind pool : {PoolKind::layer, PoolKind::ring}) {
      const ReplayReport report = replay_made(made, pool, {26});
      EXPECT_LT(static_cast<double>(report.find("contest", 26)->misses),
                0.95 * static_cast<double>(report.find("lru", 26)->misses))
          << made.name;
    }
  }
}

TEST(EvictionPromise, HoldsOnRecordedRouting) {
  const char* folder = std::getenv("SLUICE_CASES");
  if (folder == nullptr) GTEST_SKIP() << "SLUICE_CASES names no folder with demo/routing.u8";
  const std::string path = std::string(folder) + "/demo/routing.u8";
  const std::vector<uint32_t> slots = {4, 5, 6, 7, 8, 9, 12, 16, 20, 24, 28, 31};
  for (const PoolKind pool : {PoolKind::layer, PoolKind::ring}) {
    const ReplayReport report = replay_raw(path, {8, 32, 4}, pool, slots);
    expect_never_worse(report, slots, "recorded");
    for (const uint32_t slot_count : {6u, 7u, 8u, 9u})
      EXPECT_LT(static_cast<double>(report.find("contest", slot_count)->misses),
                0.95 * static_cast<double>(report.find("lru", slot_count)->misses))
          << slot_count << " slots";
  }
}

}  // namespace
}  // namespace sluice
