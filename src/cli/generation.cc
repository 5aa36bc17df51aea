#include "cli/generation.h"

#include <cstdio>

#include "cli/run_report.h"

namespace sluice::cli {

void GenerationOptions::add_to(CLI::App& command) {
  SamplingOptions& sampling = request.sampling;
  const char* group = "Generation";
  command.add_option("-n,--tokens-max", request.token_max, "tokens to generate")
      ->capture_default_str()
      ->group(group);
  command.add_option("--temp", sampling.temperature, "temperature, 0 is greedy")
      ->capture_default_str()
      ->group(group);
  command.add_option("--top-k", sampling.top_k, "only the k likeliest tokens, 0 is all")
      ->capture_default_str()
      ->group(group);
  command.add_option("--top-p", sampling.top_p, "only the likeliest tokens of this total")
      ->capture_default_str()
      ->group(group);
  command.add_option("--min-p", sampling.min_p, "only tokens of this share of the likeliest")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--repeat-penalty", sampling.repeat_penalty, "above 1 avoids recent tokens")
      ->capture_default_str()
      ->group(group);
  command.add_option("--stop", request.stop, "end the text before this string; may be repeated")
      ->group(group);
  command.add_flag("--ignore-eos", request.ignore_eos, "go on after an end token")->group(group);
}

int generate_and_report(
    const CommonOptions& common, GenerateRequest request,
    const std::function<Result<std::vector<text::TokenId>>(const text::Tokenizer&)>& make_prompt) {
  request.sampling.seed = common.seed;
  if (Status valid = check_sampling_options(request.sampling); !valid) return report(valid.error());
  auto engine = open_engine(common);
  if (!engine) return report(engine.error());
  auto prompt = make_prompt((*engine)->tokenizer());
  if (!prompt) return report(prompt.error());
  request.prompt = std::move(*prompt);
  auto session = (*engine)->new_session();
  if (!session) return report(session.error());

  const auto show = [&](std::string_view text) {
    if (common.json) return;
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  };
  auto result = generate(**engine, **session, request, show);
  if (!common.json) show("\n");
  if (!result) return report(result.error());
  const RunReport run{.engine = **engine,
                      .prompt_tokens = request.prompt.size(),
                      .result = *result,
                      .ram_bytes_per_s = (*engine)->measure_ram_rate()};
  if (common.json)
    fmt::print("{}\n", run.json().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  if (!common.quiet) fmt::print(stderr, "{}", run.text());
  return kExitDone;
}

}  // namespace sluice::cli
