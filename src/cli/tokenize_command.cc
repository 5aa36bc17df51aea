// sluice tokenize and detokenize: text to token ids and back.
#include <cstdio>

#include "cli/command.h"

namespace sluice::cli {
namespace {

struct TokenizeCommand {
  std::string model;
  TextSource source;
  std::string dash;  ///< "-" as a positional argument: standard input
  std::string tokens;
  bool no_special = false;
  bool add_special = false;
  bool json = false;
};

Result<std::string> input_of(const TokenizeCommand& options) {
  if (options.dash.empty()) return options.source.read();
  if (options.dash == "-") return read_input("-");
  return make_error(ErrorKind::usage, "'{}' is one argument too many; give text with -p or -f, or - "
                                      "for standard input", options.dash);
}

int tokenize(const TokenizeCommand& options) {
  if (options.source.given() == !options.dash.empty())
    return report(make_error(ErrorKind::usage, "give one text: -p TEXT, -f FILE or -"));
  auto text = input_of(options);
  if (!text) return report(text.error());
  auto tokenizer = open_tokenizer(options.model);
  if (!tokenizer) return report(tokenizer.error());
  const auto tokens = (*tokenizer)->tokenize(
      *text, {.add_special = options.add_special, .parse_special = !options.no_special});
  if (options.json)
    fmt::print("{{\"tokens\": [{}]}}\n", fmt::join(tokens, ", "));
  else
    fmt::print("{}\n", fmt::join(tokens, ","));
  return kExitDone;
}

int detokenize(const TokenizeCommand& options) {
  auto tokenizer = open_tokenizer(options.model);
  if (!tokenizer) return report(tokenizer.error());
  auto tokens = parse_tokens(options.tokens, (*tokenizer)->token_count());
  if (!tokens) return report(tokens.error());
  const std::string text = (*tokenizer)->detokenize(*tokens);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return kExitDone;
}

}  // namespace

void add_tokenize(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TokenizeCommand>();
  CLI::App* command = app.add_subcommand("tokenize", "print the token ids of a text");
  command->add_option("MODEL", options->model, "a GGUF file; a vocabulary is enough")->required();
  options->source.add_to(*command);
  command->add_option("TEXT", options->dash, "- reads standard input")->type_name("-");
  command->add_flag("--no-special", options->no_special, "text of control tokens stays text");
  command->add_flag("--add-special", options->add_special, "add BOS and EOS as the model wants");
  command->add_flag("--json", options->json, "machine-readable result on stdout");
  command->callback([options, &exit_code] { exit_code = tokenize(*options); });
}

void add_detokenize(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TokenizeCommand>();
  CLI::App* command = app.add_subcommand("detokenize", "print the bytes of token ids");
  command->add_option("MODEL", options->model, "a GGUF file; a vocabulary is enough")->required();
  command->add_option("--tokens", options->tokens, "token ids: 1,2,3")->required();
  command->callback([options, &exit_code] { exit_code = detokenize(*options); });
}

}  // namespace sluice::cli
