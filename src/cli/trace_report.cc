#include "cli/trace_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "cli/report_text.h"

namespace sluice::cli {
namespace {

using nlohmann::ordered_json;

std::string_view pool_name(PoolKind pool) {
  return pool == PoolKind::ring ? "ring" : "layer";
}

double ratio(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

uint32_t streamed_layers(const TraceHeader& header) {
  return static_cast<uint32_t>(
      std::ranges::count_if(header.expert_counts, [](uint32_t count) { return count > 0; }));
}

/// Misses beside those of another policy with as many slots; 0 where that was not replayed.
double misses_of(const ReplayReport& report, const ReplayRow& row, std::string_view policy) {
  const ReplayRow* other = report.find(policy, row.slots_per_layer);
  return other == nullptr ? 0 : ratio(row.misses, other->misses);
}

ordered_json recall_json(const TraceFacts& trace) {
  ordered_json list = ordered_json::array();
  for (const auto& recall : trace.recalls)
    list.push_back({{"distance", recall.distance},
                    {"lookups", recall.lookups},
                    {"foreseen", recall.foreseen},
                    {"recall", recall.share()}});
  return list;
}

ordered_json row_json(const ReplayReport& report, const ReplayRow& row) {
  ordered_json coverage = ordered_json::array();
  for (size_t i = 0; i < row.foreseen_misses.size(); ++i)
    coverage.push_back({{"distance", report.trace.recalls[i].distance},
                        {"foreseen_misses", row.foreseen_misses[i]},
                        {"miss_coverage", ratio(row.foreseen_misses[i], row.misses)}});
  return {{"slots_per_layer", row.slots_per_layer},
          {"policy", row.policy},
          {"lookups", row.lookups},
          {"misses", row.misses},
          {"hit_rate", row.hit_rate()},
          {"decode_lookups", row.decode_lookups},
          {"decode_misses", row.decode_misses},
          {"of_lru", misses_of(report, row, "lru")},
          {"of_belady", misses_of(report, row, "belady")},
          {"lookahead", coverage}};
}

std::string cell(double factor) {
  return factor == 0 ? "-" : fmt::format("{:.3f}", factor);
}

}  // namespace

ordered_json trace_info_json(const TraceFacts& trace) {
  return {{"file", trace.file},
          {"bytes", trace.file_bytes},
          {"model", trace.header.name},
          {"model_hash", fmt::format("{:016x}", trace.header.model_hash)},
          {"layers", trace.header.layer_count()},
          {"moe_layers", streamed_layers(trace.header)},
          {"experts", trace.header.expert_count_max()},
          {"experts_used", trace.header.used_count},
          {"cut_short", trace.cut_short},
          {"prompt_tokens", trace.prompt_tokens},
          {"prompt_batches", trace.prompt_batches},
          {"decode_tokens", trace.decode_tokens},
          {"lookups", trace.lookups},
          {"score_records", trace.score_records},
          {"lookahead", recall_json(trace)}};
}

std::string trace_info_text(const TraceFacts& trace) {
  const TraceHeader& header = trace.header;
  std::string text = fmt::format("{}\n", shown(trace.file));
  if (!header.name.empty()) text += line("model", shown(header.name));
  text += line("layers",
               fmt::format("{}, {} of them with up to {} experts, {} used", header.layer_count(),
                           streamed_layers(header), header.expert_count_max(), header.used_count));
  text += line("file", fmt::format("{}{}", format_bytes(trace.file_bytes),
                                   trace.cut_short ? ", ends within a step" : ""));
  text += line("prompts",
               fmt::format("{} tokens in {} batches", trace.prompt_tokens, trace.prompt_batches));
  text += line("decode", fmt::format("{} tokens", trace.decode_tokens));
  text += line("lookups", fmt::format("{}", trace.lookups));
  if (header.has_scores) text += line("scores", fmt::format("{} records", trace.score_records));
  for (const auto& recall : trace.recalls)
    text += line(
        fmt::format("distance {}", recall.distance),
        fmt::format("{:.1f} % of {} lookups were foreseen", 100 * recall.share(), recall.lookups));
  return text;
}

ordered_json replay_json(const ReplayReport& report) {
  ordered_json rows = ordered_json::array();
  for (const ReplayRow& row : report.rows) rows.push_back(row_json(report, row));
  return {{"trace", trace_info_json(report.trace)},
          {"pool", pool_name(report.pool)},
          {"half_life_tokens", report.half_life_tokens},
          {"rows", rows},
          {"replay_s", report.seconds}};
}

std::string replay_text(const ReplayReport& report) {
  std::string text = trace_info_text(report.trace);
  text +=
      fmt::format("\n{} pool\n  {:>5}{:>9}  {:<9}{:>12}{:>10}{:>9}{:>11}", pool_name(report.pool),
                  "slots", "experts", "policy", "misses", "hit rate", "of LRU", "of Belady");
  for (const auto& recall : report.trace.recalls)
    text += fmt::format("{:>13}", fmt::format("foreseen {}", recall.distance));
  text += '\n';
  const double experts = report.trace.header.expert_count_max();
  uint32_t slots = 0;
  for (const ReplayRow& row : report.rows) {
    const bool first = std::exchange(slots, row.slots_per_layer) != row.slots_per_layer;
    text += first ? fmt::format("  {:>5}{:>7.1f} %", slots, 100 * slots / experts)
                  : fmt::format("  {:>14}", "");
    text += fmt::format("  {:<9}{:>12}{:>8.1f} %{:>9}{:>11}", row.policy, row.misses,
                        100 * row.hit_rate(), cell(misses_of(report, row, "lru")),
                        cell(misses_of(report, row, "belady")));
    for (const uint64_t foreseen : row.foreseen_misses)
      text += fmt::format("{:>11.1f} %", 100 * ratio(foreseen, row.misses));
    text += '\n';
  }
  return text;
}

}  // namespace sluice::cli
