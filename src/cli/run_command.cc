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

Result<std::vector<text::TokenId>> read_prompt(const RunOptions& options,
                                               const text::Tokenizer& tokenizer) {
  if (!options.tokens.empty()) return parse_tokens(options.tokens, tokenizer.token_count());
  auto text = options.source.read();
  if (!text) return text.error();
  auto tokens = tokenizer.tokenize(*text, {.add_special = true, .parse_special = true});
  if (tokens.empty())
    return make_error(ErrorKind::usage, "the prompt is empty; give text with -p or -f");
  return tokens;
}

int run(const RunOptions& options) {
  if (options.source.given() == !options.tokens.empty())
    return report(make_error(ErrorKind::usage,
                             "give one prompt: -p TEXT, -f FILE or --tokens LIST"));
  return generate_and_report(options.common, options.generation.request,
                             [&](const text::Tokenizer& tokenizer) {
                               return read_prompt(options, tokenizer);
                             });
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "continue a text");
  add_common_options(*command, options->common);
  options->source.add_to(*command);
  command->add_option("--tokens", options->tokens, "the prompt as token ids: 1,2,3");
  options->generation.add_to(*command);
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace sluice::cli
