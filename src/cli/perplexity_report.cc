#include "cli/perplexity_report.h"

#include "cli/report_text.h"

namespace sluice::cli {
namespace {

using nlohmann::ordered_json;

struct NamedQuantile {
  const char* name;  ///< in JSON
  const char* label;
  double fraction;
};
constexpr NamedQuantile kQuantiles[] = {
    {"median", "median", 0.5}, {"p90", "90 %", 0.9},       {"p95", "95 %", 0.95},
    {"p99", "99 %", 0.99},     {"p99_9", "99.9 %", 0.999}, {"max", "maximum", 1.0},
};

std::string with_error(const Estimate& estimate, int digits) {
  return fmt::format("{:.{}f} ± {:.{}f}", estimate.value, digits, estimate.error, digits);
}

std::string percent(const Estimate& share) {
  return with_error({100 * share.value, 100 * share.error}, 3) + " %";
}

std::string divergence_text(const DivergenceReport& report) {
  std::string spread;
  for (const NamedQuantile& row : kQuantiles)
    spread += fmt::format("{}{} {:.6f}", spread.empty() ? "" : ", ", row.label,
                          quantile(report.sorted, row.fraction));
  return line("of the base", with_error(report.base_perplexity, 6)) +
         line("ln of ratio",
              fmt::format("{}, correlation {:.2f} %", with_error(report.log_ratio, 6),
                          100 * report.correlation)) +
         line("KL divergence", with_error(report.kld, 6)) + line("", spread) +
         line("same top", percent(report.same_top)) +
         line("Δp",
              fmt::format("{}, RMS {}", percent(report.delta_p), percent(report.delta_p_rms)));
}

ordered_json estimate_json(const Estimate& estimate) {
  return {{"value", estimate.value}, {"error", estimate.error}};
}

ordered_json divergence_json(const DivergenceReport& report) {
  ordered_json kld{{"mean", report.kld.value}, {"error", report.kld.error}};
  for (const NamedQuantile& row : kQuantiles) kld[row.name] = quantile(report.sorted, row.fraction);
  return {{"perplexity", estimate_json(report.base_perplexity)},
          {"ln_ratio", estimate_json(report.log_ratio)},
          {"correlation", report.correlation},
          {"kld", kld},
          {"same_top", estimate_json(report.same_top)},
          {"delta_p", estimate_json(report.delta_p)},
          {"delta_p_rms", estimate_json(report.delta_p_rms)}};
}

}  // namespace

std::string progress_line(const PerplexityResult& result) {
  const uint32_t chunks_left = result.shape.chunk_count - result.chunks_done;
  const double left_s = result.seconds / result.chunks_done * chunks_left;
  const auto whole_s = static_cast<uint64_t>(left_s + 0.5);
  return fmt::format("chunk {} of {}: perplexity {:.4f} so far, {:.1f} tokens/s, {}:{:02} left",
                     result.chunks_done, result.shape.chunk_count, result.perplexity().value,
                     result.tokens_per_s(), whole_s / 60, whole_s % 60);
}

std::string perplexity_text(const PerplexityResult& result) {
  const std::string scope =
      fmt::format("{} chunks of {} tokens, {} of each scored", result.chunks_done,
                  result.shape.context_tokens, result.shape.scored_count());
  std::string text = line("perplexity", with_error(result.perplexity(), 6)) +
                     line("mean nll", with_error(result.nll.mean(), 6)) +
                     line("over", fmt::format("{}; {:.1f} tokens/s", scope, result.tokens_per_s()));
  if (result.divergence) text += divergence_text(*result.divergence);
  return text;
}

ordered_json perplexity_json(const PerplexityResult& result) {
  ordered_json json{{"perplexity", result.perplexity().value},
                    {"perplexity_error", result.perplexity().error},
                    {"nll", result.nll.mean().value},
                    {"nll_error", result.nll.mean().error},
                    {"context", result.shape.context_tokens},
                    {"chunks", result.chunks_done},
                    {"tokens", result.tokens_done()},
                    {"scored_tokens", result.nll.count()},
                    {"seconds", result.seconds},
                    {"tok_s", result.tokens_per_s()}};
  if (result.divergence) json["base"] = divergence_json(*result.divergence);
  return json;
}

}  // namespace sluice::cli
