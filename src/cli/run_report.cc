#include "cli/run_report.h"

#include <algorithm>

#include "base/units.h"

namespace sluice::cli {
namespace {

using nlohmann::ordered_json;

double ratio(double a, double b) {
  return b > 0 ? a / b : 0.0;
}

ordered_json counters_json(const MoeCounters& moe) {
  return {{"lookups", moe.lookups},
          {"hits", moe.hits},
          {"joins", moe.joins},
          {"misses", moe.misses},
          {"hit_rate", ratio(double(moe.hits), double(moe.lookups))},
          {"demand_reads", moe.demand_reads},
          {"demand_bytes", moe.demand_bytes},
          {"stall_s", moe.stall_s}};
}

ordered_json lookahead_json(const MoeCounters& moe) {
  ordered_json rows = ordered_json::array();
  for (size_t distance = 1; distance < moe.lookahead.size(); ++distance) {
    const LookaheadCounters& row = moe.lookahead[distance];
    if (row.picks == 0) continue;
    rows.push_back({{"distance", distance},
                    {"recall", ratio(double(row.foreseen), double(row.picks))},
                    {"miss_coverage", ratio(double(row.misses_foreseen), double(row.misses))},
                    {"started", row.started},
                    {"useful", row.useful},
                    {"wasted", row.wasted + row.cancelled}});
  }
  return rows;
}

ordered_json moe_json(const Engine& engine, const GenerateResult& result) {
  const RunMode& mode = engine.mode();
  const MoeCounters& decode = result.decode_moe;
  const auto steps = static_cast<double>(result.decode_steps);
  ordered_json json{{"mode", mode.mode},
                    {"pool", mode.pool},
                    {"evict", mode.evict},
                    {"slots_per_layer", std::ranges::min(mode.slots_per_layer)},
                    {"cache_bytes", mode.cache_bytes},
                    {"expert_bytes", engine.facts().expert_bytes}};
  json.update(counters_json(decode));
  const LookaheadCounters guesses = decode.all_guesses();
  json.update(
      ordered_json{{"prefetch_reads", decode.prefetch_reads},
                   {"prefetch_bytes", decode.prefetch_bytes},
                   {"prefetch_useful", guesses.useful},
                   {"prefetch_wasted", guesses.wasted},
                   {"cancelled", guesses.cancelled},
                   {"promoted", decode.promoted},
                   {"stall_s_per_token", ratio(decode.stall_s, steps)},
                   {"bytes_per_token", ratio(double(decode.read_bytes()), steps)},
                   {"reads_per_distinct_expert",
                    ratio(double(result.prefill_moe.reads), double(result.prefill_moe.distinct))},
                   {"lookahead", lookahead_json(decode)},
                   {"prefill", counters_json(result.prefill_moe)}});
  return json;
}

ordered_json memory_json(const Engine& engine) {
  ordered_json ledger;
  for (size_t use = 0; use < kMemoryUseCount; ++use)
    ledger[std::string(memory_use_name(MemoryUse(use)))] = engine.ledger().bytes(MemoryUse(use));
  return {{"rss_peak", process_peak_bytes()},
          {"ledger", ledger},
          {"budget", engine.mode().budget_bytes}};
}

}  // namespace

Roofline RunReport::decode_roofline() const {
  return roofline_of({.measured_s = result.decode_s,
                      .stall_s = result.decode_moe.stall_s,
                      .drive_bytes = result.decode_moe.useful_bytes(),
                      .drive_bytes_per_s = engine.mode().drive_bytes_per_s,
                      .ram_bytes = engine.facts().active_bytes_per_token * result.decode_steps,
                      .ram_bytes_per_s = ram_bytes_per_s});
}

ordered_json RunReport::json() const {
  const RunMode& mode = engine.mode();
  const Roofline roof = decode_roofline();
  return {{"model", engine.facts().file_name},
          {"architecture", engine.facts().architecture},
          {"prompt_tokens", prompt_tokens},
          {"generated_tokens", result.tokens.size()},
          {"prefill_s", result.prefill_s},
          {"prefill_tok_s", ratio(double(prompt_tokens), result.prefill_s)},
          {"decode_s", result.decode_s},
          {"decode_tok_s", ratio(double(result.decode_steps), result.decode_s)},
          {"ttft_s", result.ttft_s},
          {"load_s", mode.load_s},
          {"text", result.text},
          {"tokens", result.tokens},
          {"logits_hash", result.logits_hash},
          {"moe", moe_json(engine, result)},
          {"drive",
           {{"direct", mode.direct},
            {"io", mode.io},
            {"rate", mode.drive_bytes_per_s},
            {"latency_us", mode.drive_latency_us}}},
          {"roofline",
           {{"drive_s", roof.drive_s},
            {"ram_s", roof.ram_s},
            {"compute_s", roof.compute_s},
            {"floor_s", roof.floor_s},
            {"reached", roof.reached}}},
          {"memory", memory_json(engine)}};
}

std::string RunReport::text() const {
  const RunMode& mode = engine.mode();
  const MoeCounters& moe = result.decode_moe;
  const Roofline roof = decode_roofline();
  const auto steps = static_cast<double>(std::max<size_t>(1, result.decode_steps));
  const auto ms = [&](double seconds) { return seconds / steps * 1e3; };
  std::string text = fmt::format(
      "{}: prompt {} tokens in {:.2f} s ({:.1f} tokens/s), then {} steps in {:.2f} s ({:.1f} "
      "tokens/s)\n",
      mode.mode, prompt_tokens, result.prefill_s, ratio(double(prompt_tokens), result.prefill_s),
      result.decode_steps, result.decode_s, ratio(double(result.decode_steps), result.decode_s));
  if (result.decode_steps == 0) return text;
  if (engine.facts().expert_count > 0)
    text += fmt::format(
        "experts: hit rate {:.1f} %, {} read per token; per token {:.2f} ms stall, {:.2f} ms "
        "compute\n",
        100 * ratio(double(moe.hits), double(moe.lookups)),
        format_bytes(static_cast<uint64_t>(double(moe.read_bytes()) / steps)), ms(moe.stall_s),
        ms(roof.compute_s));
  text += fmt::format(
      "roofline per token: drive {:.2f} ms, memory {:.2f} ms, compute {:.2f} ms; floor {:.2f} ms "
      "({}), {:.0f} % reached\n",
      ms(roof.drive_s), ms(roof.ram_s), ms(roof.compute_s), ms(roof.floor_s), roof.limit,
      100 * roof.reached);
  return text;
}

}  // namespace sluice::cli
