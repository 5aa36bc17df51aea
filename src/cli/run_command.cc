// sluice run MODEL (-p TEXT | -f FILE | --tokens LIST): prefill, then decode.
#include "cli/generation.h"

namespace sluice::cli {
namespace {

struct RunOptions {
  CommonOptions common;
  GenerationOptions generation;
  TextSource source;
  std::string tokens;
};

Result<std::vector<text::TokenId>> tokenize_prompt(const std::string& text,
                                                   const text::Tokenizer& tokenizer) {
  auto tokens = tokenizer.tokenize(text, {.add_special = true, .parse_special = true});
  if (tokens.empty())
    return make_error(ErrorKind::usage, "the prompt is empty; give text with -p or -f");
  return tokens;
}

int run(const RunOptions& options) {
  if (options.source.given() == !options.tokens.empty())
    return report(
        make_error(ErrorKind::usage, "give one prompt: -p TEXT, -f FILE or --tokens LIST"));
  Opening opening;
  if (options.source.given()) {
    // Read before the model is loaded: a file that is not there should not cost that time.
    auto text = options.source.read();
    if (!text) return report(text.error());
    opening.tokens = [text = *text](const text::Tokenizer& tokenizer) {
      return tokenize_prompt(text, tokenizer);
    };
  } else {
    opening.tokens = [&](const text::Tokenizer& tokenizer) {
      return parse_tokens(options.tokens, tokenizer.token_count());
    };
  }
  return generate_and_report(options.common, options.generation.request, opening);
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "continue a text");
  add_model_argument(*command, options->common.model,
                     "a GGUF file, any shard of a set, or the folder of one");
  options->source.add_to(*command, "Prompt (one of)");
  command->add_option("--tokens", options->tokens, "the prompt as token ids: 1,2,3")
      ->type_name("LIST")
      ->group("Prompt (one of)");
  options->generation.add_to(*command);
  add_common_options(*command, options->common);
  set_help(
      *command,
      {.arguments = "MODEL (-p TEXT | -f FILE | --tokens LIST) [options]",
       .notes = {"Text goes to standard output as it comes; progress, statistics and errors go "
                 "to standard error. Ctrl-C ends the run, twice ends it at once."},
       .examples = {"sluice run models/demo-q4_k_m.gguf -p \"Call me\" -n 40",
                    "sluice run MODEL.gguf -f prompt.txt --temp 0 --json",
                    "sluice run MODEL.gguf -p \"Dear\" --moe-stream-cache 8G --ctx 4096"}});
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace sluice::cli
