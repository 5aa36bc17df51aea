// Prints the tables of docs/eviction.md: misses of each policy beside LRU's and Belady's, over made
// routing and, when its path is given, the demo model's recorded one (bare ids, 8 layers, 4 of 32).
//
//   eviction_table [routing.u8]
#include <fmt/format.h>

#include <cstdio>

#include "engine/trace_replay.h"
#include "testing/made_routing.h"
#include "testing/temp_folder.h"

namespace {

using namespace sluice;

constexpr uint32_t kTokens = 4000;
constexpr uint32_t kLayers = 4;

void print_rows(std::string_view name, const std::string& path, const RawTraceLayout& layout,
                PoolKind pool, const std::vector<uint32_t>& slots) {
  const auto report = replay_trace(
      {.path = path, .raw = layout, .pool = pool, .slot_counts = slots, .policies = {}});
  if (!report) {
    std::fputs((report.error().message + "\n").c_str(), stderr);
    return;
  }
  for (const uint32_t slot_count : slots) {
    const auto share = [&](std::string_view policy) {
      return static_cast<double>(report->find(policy, slot_count)->misses) /
             static_cast<double>(report->find("lru", slot_count)->misses);
    };
    fmt::print("| {} | {} of {} | {:.1f} % | {:.3f} | {:.3f} | {:.3f} |\n", name, slot_count,
               layout.expert_count, 100 * (1 - report->find("lru", slot_count)->hit_rate()),
               share("decay"), share("contest"), share("belady"));
  }
}

void print_table(PoolKind pool, const char* recorded) {
  fmt::print("\n{} pool\n\n", pool == PoolKind::ring ? "ring" : "layer");
  fmt::print("| routing | slots | LRU misses | decay | contest | Belady |\n");
  fmt::print("|---|---:|---:|---:|---:|---:|\n");
  if (recorded != nullptr)
    print_rows("demo", recorded, {8, 32, 4}, pool, {5, 6, 7, 8, 9, 12, 16, 24, 30});
  const TempFolder folder;
  for (const MadeRouting& made : made_routings()) {
    const auto ids = made.make(kTokens, kLayers, 1);
    const std::string path = folder.write("ids.u8", std::as_bytes(std::span(ids)));
    print_rows(made.name, path, {kLayers, MadeRouting::kExpertCount, MadeRouting::kUsedCount}, pool,
               {10, 16, 26, 38, 64, 96});
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (const PoolKind pool : {PoolKind::layer, PoolKind::ring})
    print_table(pool, argc > 1 ? argv[1] : nullptr);
  return 0;
}
