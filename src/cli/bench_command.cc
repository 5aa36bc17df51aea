// sluice bench MODEL: prefill and decode rates, the median of several runs.
#include <algorithm>

#include "base/random.h"
#include "cli/command.h"
#include "cli/run_report.h"

namespace sluice::cli {
namespace {

struct BenchOptions {
  CommonOptions common;
  size_t prompt = 512;
  size_t gen = 64;
  size_t reps = 3;
  bool warm = false;
};

/// Ordinary tokens at random, the same for the same seed.
std::vector<text::TokenId> random_prompt(const text::Tokenizer& tokenizer, size_t count,
                                         uint64_t seed) {
  Random random(seed);
  std::vector<text::TokenId> tokens;
  while (tokens.size() < count) {
    const auto token = static_cast<text::TokenId>(random.below(tokenizer.token_count()));
    if (!tokenizer.is_control(token)) tokens.push_back(token);
  }
  return tokens;
}

double prefill_rate(const RunReport& run) {
  return static_cast<double>(run.prompt_tokens) / run.result.prefill_s;
}

double decode_rate(const RunReport& run) {
  return run.result.decode_steps == 0
             ? 0.0
             : static_cast<double>(run.result.decode_steps) / run.result.decode_s;
}

template <typename Rate>
double median_of(const std::vector<RunReport>& runs, const Rate& rate) {
  std::vector<double> rates;
  for (const RunReport& run : runs) rates.push_back(rate(run));
  std::ranges::sort(rates);
  return rates[rates.size() / 2];
}

/// The run whose decode rate is the median stands for all, with the median prefill rate.
Status print_report(const BenchOptions& options, const std::vector<RunReport>& runs) {
  const double prefill = median_of(runs, prefill_rate);
  const double decode = median_of(runs, decode_rate);
  const auto median_run =
      std::ranges::find_if(runs, [&](const RunReport& run) { return decode_rate(run) == decode; });
  if (options.common.json) {
    auto json = median_run->json();
    json["prefill_tok_s"] = prefill;
    json["reps"] = nlohmann::ordered_json::array();
    for (const RunReport& run : runs)
      json["reps"].push_back(
          {{"prefill_tok_s", prefill_rate(run)}, {"decode_tok_s", decode_rate(run)}});
    json.erase("text");
    json.erase("tokens");
    return print_json(json);
  }
  std::string text;
  for (const RunReport& run : runs)
    text += fmt::format("prefill {:8.1f} tokens/s   decode {:7.2f} tokens/s\n", prefill_rate(run),
                        decode_rate(run));
  return print_output(
      "{}median: prefill of {} tokens {:.1f} tokens/s, decode of {} tokens {:.2f} tokens/s\n{}",
      text, options.prompt, prefill, options.gen, decode, median_run->text());
}

/// A repetition that filled its context would end early and count decode steps it did not do. So a
/// session is as long as one repetition unless --ctx says otherwise.
Status fit_context(BenchOptions& options) {
  uint32_t& context = options.common.engine.context_tokens;
  const size_t wanted = options.prompt + options.gen;
  if (context == 0) context = static_cast<uint32_t>(wanted);
  if (wanted <= context) return {};
  return make_error(ErrorKind::usage,
                    "a prompt of {} tokens and {} decode steps do not fit the context of {}; "
                    "raise --ctx or lower --prompt or --gen",
                    options.prompt, options.gen, context);
}

int bench(BenchOptions& options) {
  if (const Status fits = fit_context(options); !fits) return report(fits);
  auto engine = open_engine(options.common);
  if (!engine) return report(engine.error());
  auto session = (*engine)->new_session();
  if (!session) return report(session.error());
  // Greedy, and never ended by a token: every repetition does the same work.
  const GenerateRequest request{
      .prompt = random_prompt((*engine)->tokenizer(), options.prompt, options.common.seed),
      .token_max = options.gen + (options.gen > 0 ? 1 : 0),  // the first comes with the prompt
      .sampling = {.temperature = 0.0f},
      .stop = {},
      .ignore_eos = true};
  std::vector<GenerateResult> results;
  for (size_t rep = 0; rep < options.reps + (options.warm ? 1 : 0); ++rep) {
    (*session)->reset();
    if (!options.warm) (*engine)->forget_experts();
    auto result = generate(**engine, **session, request, nullptr);
    if (!result) return report(result.error());
    if (rep > 0 || !options.warm) results.push_back(std::move(*result));
  }
  const double ram_rate = (*engine)->measure_ram_rate();
  std::vector<RunReport> runs;
  for (const GenerateResult& result : results)
    runs.push_back({**engine, options.prompt, result, ram_rate});
  return report(print_report(options, runs));
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "measure prefill and decode rates");
  add_model_argument(*command, options->common.model,
                     "a GGUF file, any shard of a set, or the folder of one");
  constexpr size_t kTokensMax = size_t{1} << 24;
  const char* group = "Measurement";
  add_number(*command, "--prompt", options->prompt, {1, kTokensMax}, "tokens of the prompt")
      ->group(group);
  add_number(*command, "--gen", options->gen, {0, kTokensMax}, "decode steps")->group(group);
  add_number(*command, "--reps", options->reps, {1, 1000}, "repetitions; the median counts")
      ->group(group);
  command
      ->add_flag("--warm", options->warm,
                 "keep the expert cache between repetitions, and run once untimed first")
      ->group(group);
  add_common_options(*command, options->common);
  set_help(*command, {.arguments = "MODEL [options]",
                      .notes = {},
                      .examples = {"sluice bench models/demo-q4_k_m.gguf --prompt 256 --gen 128"}});
  command->callback([options, &exit_code] { exit_code = bench(*options); });
}

}  // namespace sluice::cli
