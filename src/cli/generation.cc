#include "cli/generation.h"

#include <limits>

#include "cli/run_report.h"

namespace sluice::cli {

void GenerationOptions::add_to(CLI::App& command) {
  constexpr float kHighest = 1e6f;
  SamplingOptions& sampling = request.sampling;
  const char* group = "Generation";
  add_number(command, "-n,--tokens-max", request.token_max, {0, size_t{1} << 24},
             "new tokens to generate at most")
      ->group(group);
  add_number(command, "--temp", sampling.temperature, {0.0f, kHighest},
             "temperature: higher is more surprising, 0 always takes the likeliest token")
      ->type_name("T")
      ->group(group);
  add_number(command, "--top-k", sampling.top_k, {0, std::numeric_limits<int32_t>::max()},
             "choose among the K likeliest tokens; 0 is all of them")
      ->type_name("K")
      ->group(group);
  add_number(command, "--top-p", sampling.top_p, {0.0f, 1.0f},
             "choose among the likeliest tokens that together have this probability; 1 is all")
      ->type_name("P")
      ->group(group);
  add_number(command, "--min-p", sampling.min_p, {0.0f, 1.0f},
             "leave out tokens below this share of the likeliest one's probability; 0 is none")
      ->type_name("P")
      ->group(group);
  add_number(command, "--repeat-penalty", sampling.repeat_penalty, {0.01f, kHighest},
             "above 1 makes the last 64 tokens less likely; 1 is off")
      ->type_name("R")
      ->group(group);
  command.add_option("--stop", request.stop, "end before this text; may be given several times")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false)
      ->type_name("TEXT")
      ->group(group);
  command.add_flag("--ignore-eos", request.ignore_eos, "go on after an end-of-generation token")
      ->group(group);
}

namespace {

/// A text that ends because there is no room for more looks like one that ends by itself.
void say_where_it_was_cut(const Engine& engine, const GenerateRequest& request,
                          const GenerateResult& result) {
  if (result.finish != FinishReason::context_full) return;
  write_note(fmt::format(
      "the context of {} positions is full after {} of {} tokens; a larger --ctx holds more\n",
      engine.mode().context_tokens, result.tokens.size(), request.token_max));
}

}  // namespace

int generate_and_report(const CommonOptions& common, GenerateRequest request,
                        const Opening& opening) {
  request.sampling.seed = common.seed;
  auto engine = open_engine(common);
  if (!engine) return report(engine.error());
  auto prompt = opening.tokens((*engine)->tokenizer());
  if (!prompt) return report(prompt.error());
  request.prompt = std::move(*prompt);
  auto session = (*engine)->new_session();
  if (!session) return report(session.error());

  bool in_line = false;
  const auto show = [&](std::string_view text) -> Status {
    if (common.json || text.empty()) return {};
    in_line = true;
    return write_output(text);
  };
  if (Status shown = show(opening.shown); !shown) return report(shown);
  auto result = generate(**engine, **session, request, show);
  const Status ended = in_line ? write_output("\n") : Status();
  if (!result) return report(result.error());
  if (!ended) return report(ended);

  const RunReport run{.engine = **engine,
                      .prompt_tokens = request.prompt.size(),
                      .result = *result,
                      .ram_bytes_per_s = (*engine)->measure_ram_rate()};
  if (common.json)
    if (Status printed = print_json(run.json()); !printed) return report(printed);
  if (common.quiet) return kExitDone;
  say_where_it_was_cut(**engine, request, *result);
  write_note(run.text());
  return kExitDone;
}

}  // namespace sluice::cli
