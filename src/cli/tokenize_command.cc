// sluice tokenize and detokenize: text to token ids and back.
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
  if (options.dash == "-") return read_text("-");
  return make_error(ErrorKind::usage,
                    "'{}' is one argument too many; give text with -p or -f, or - "
                    "for standard input",
                    options.dash);
}

int tokenize(const TokenizeCommand& options) {
  if (options.source.given() == !options.dash.empty())
    return report(make_error(ErrorKind::usage, "give one text: -p TEXT, -f FILE or -"));
  auto text = input_of(options);
  if (!text) return report(text.error());
  auto tokenizer = open_tokenizer(options.model);
  if (!tokenizer) return report(tokenizer.error());
  const auto tokens = (*tokenizer)
                          ->tokenize(*text, {.add_special = options.add_special,
                                             .never_doubled = false,
                                             .parse_special = !options.no_special});
  if (options.json) return report(print_json({{"tokens", tokens}}));
  return report(print_output("{}\n", fmt::join(tokens, ",")));
}

int detokenize(const TokenizeCommand& options) {
  auto tokenizer = open_tokenizer(options.model);
  if (!tokenizer) return report(tokenizer.error());
  auto tokens = parse_tokens(options.tokens, (*tokenizer)->token_count());
  if (!tokens) return report(tokens.error());
  return report(write_output((*tokenizer)->detokenize(*tokens)));
}

}  // namespace

void add_tokenize(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TokenizeCommand>();
  CLI::App* command = app.add_subcommand("tokenize", "print the token ids of a text");
  add_model_argument(*command, options->model, "a GGUF file; one with a vocabulary only will do");
  command->add_option("DASH", options->dash, "the text is standard input, any bytes")
      ->type_name("-")
      ->group("Text (one of)");
  options->source.add_to(*command, "Text (one of)");
  const char* group = "Options";
  command->add_flag("--no-special", options->no_special, "names of control tokens are plain text")
      ->group(group);
  command->add_flag("--add-special", options->add_special, "add BOS and EOS as the model wants")
      ->group(group);
  command->add_flag("--json", options->json, "print {\"tokens\": [...]}")->group(group);
  set_help(*command, {.arguments = "MODEL (-p TEXT | -f FILE | -) [options]",
                      .notes = {},
                      .examples = {"sluice tokenize models/demo-q4_k_m.gguf -p \"Call me\"",
                                   "sluice tokenize MODEL.gguf --json - < book.txt"}});
  command->callback([options, &exit_code] { exit_code = tokenize(*options); });
}

void add_detokenize(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TokenizeCommand>();
  CLI::App* command = app.add_subcommand("detokenize", "print the bytes of token ids");
  add_model_argument(*command, options->model, "a GGUF file; one with a vocabulary only will do");
  command->add_option("--tokens", options->tokens, "token ids: 1,2,3")
      ->required()
      ->type_name("LIST")
      ->group("Options");
  set_help(*command,
           {.arguments = "MODEL --tokens LIST",
            .notes = {},
            .examples = {"sluice detokenize models/demo-q4_k_m.gguf --tokens 34,409,336"}});
  command->callback([options, &exit_code] { exit_code = detokenize(*options); });
}

}  // namespace sluice::cli
