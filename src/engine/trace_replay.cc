#include "engine/trace_replay.h"

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>
#include <system_error>

#include "os/clock.h"

namespace sluice {
namespace {

TraceFacts facts_of(const std::string& path, const RoutingHistory& history) {
  std::error_code ignored;  // it has just been read
  TraceFacts facts = {.file = path,
                      .file_bytes = std::filesystem::file_size(path, ignored),
                      .header = history.header(),
                      .cut_short = history.is_cut_short(),
                      .decode_tokens = history.decode_token_count(),
                      .prompt_tokens = history.prompt_token_count(),
                      .prompt_batches = history.prompt_batch_count(),
                      .lookups = history.lookup_count(),
                      .score_records = history.score_record_count(),
                      .recalls = {}};
  for (uint32_t distance = 1; distance <= history.header().distance_max; ++distance) {
    const auto recall = history.recall(distance);
    if (recall.lookups == 0) continue;
    facts.recalls.push_back({distance, recall.lookups, recall.foreseen});
  }
  return facts;
}

/// An eighth, a fifth … of the largest layer's experts, where that is enough for a token.
std::vector<uint32_t> usual_slot_counts(const TraceHeader& header) {
  constexpr std::array<uint32_t, 7> kPercents = {12, 20, 30, 40, 50, 75, 90};
  std::vector<uint32_t> counts;
  for (const uint32_t percent : kPercents)
    counts.push_back(std::max(header.used_count, header.expert_count_max() * percent / 100));
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

Status check_slot_counts(const std::vector<uint32_t>& counts, const TraceHeader& header) {
  for (const uint32_t count : counts)
    if (count < header.used_count)
      return make_error(ErrorKind::usage,
                        "--slots {}: a token of this trace uses {} experts in a layer; give at "
                        "least as many slots",
                        count, header.used_count);
  return {};
}

ReplayRow replay(std::string_view policy, const ReplayPool& pool, const RoutingHistory& history,
                 const TraceFacts& facts) {
  ReplayRow row = {.policy = std::string(policy),
                   .slots_per_layer = pool.slots_per_layer,
                   .foreseen_misses = std::vector<uint64_t>(facts.recalls.size(), 0)};
  const auto cache = make_replay_cache(policy, pool, history);
  std::vector<uint8_t> hits(history.header().expert_count_max());
  for (size_t i = 0; i < history.turn_count(); ++i) {
    const RoutingTurn turn = history.turn(i);
    const std::span<uint8_t> turn_hits = std::span(hits).first(turn.experts.size());
    cache->play(turn, turn_hits);
    const auto misses = static_cast<uint64_t>(std::ranges::count(turn_hits, 0));
    row.lookups += turn.experts.size();
    row.misses += misses;
    if (turn.kind == StepKind::decode) {
      row.decode_lookups += turn.experts.size();
      row.decode_misses += misses;
    }
    if (misses == 0) continue;
    for (size_t j = 0; j < facts.recalls.size(); ++j)
      for (size_t k = 0; k < turn_hits.size(); ++k)
        row.foreseen_misses[j] +=
            turn_hits[k] == 0 && (turn.foreseen[k] >> (facts.recalls[j].distance - 1) & 1) != 0;
  }
  return row;
}

bool is_wanted(const ReplayRequest& request, std::string_view policy) {
  return request.policies.empty() ||
         std::ranges::find(request.policies, policy) != request.policies.end();
}

}  // namespace

const ReplayRow* ReplayReport::find(std::string_view policy, uint32_t slots) const {
  const auto row = std::ranges::find_if(rows, [&](const ReplayRow& candidate) {
    return candidate.policy == policy && candidate.slots_per_layer == slots;
  });
  return row == rows.end() ? nullptr : &*row;
}

Result<TraceFacts> describe_trace(const std::string& path,
                                  const std::optional<RawTraceLayout>& raw) {
  const auto history = RoutingHistory::read(path, raw);
  if (!history) return history.error();
  return facts_of(path, *history);
}

Result<ReplayReport> replay_trace(const ReplayRequest& request) {
  const auto history = RoutingHistory::read(request.path, request.raw);
  if (!history) return history.error();
  const TraceHeader& header = history->header();
  if (Status fine = check_slot_counts(request.slot_counts, header); !fine) return fine.error();
  ReplayReport report = {.trace = facts_of(request.path, *history),
                         .pool = request.pool,
                         .half_life_tokens = request.half_life_tokens,
                         .rows = {},
                         .seconds = 0};
  const uint64_t start_ns = os::now_ns();
  for (const uint32_t slots :
       request.slot_counts.empty() ? usual_slot_counts(header) : request.slot_counts) {
    const ReplayPool pool = {.kind = request.pool,
                             .slots_per_layer = slots,
                             .expert_counts = header.expert_counts,
                             .used_count = header.used_count,
                             .half_life_tokens = request.half_life_tokens};
    for (const std::string_view policy : replay_policy_names())
      if (is_wanted(request, policy))
        report.rows.push_back(replay(policy, pool, *history, report.trace));
  }
  report.seconds = static_cast<double>(os::now_ns() - start_ns) * 1e-9;
  return report;
}

}  // namespace sluice
