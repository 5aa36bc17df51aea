#include "cli/command.h"

#include <charconv>
#include <fstream>
#include <iostream>
#include <iterator>

namespace sluice::cli {

int report(const Error& error) {
  fmt::print(stderr, "sluice: {}\n", error.message);
  switch (error.kind) {
    case ErrorKind::usage: return kExitUsage;
    case ErrorKind::interrupted: return kExitInterrupted;
    default: return kExitFailure;
  }
}

void add_engine_options(CLI::App& command, CommonOptions& options) {
  for (const OptionSpec& spec : option_table()) {
    const std::string name(spec.name);
    const auto set = [&options, name](const std::string& text) {
      if (name == "--isa" && text == "list") {
        fmt::print("{}\n", usable_isa_names());
        throw CLI::Success();  // CLI11's own way to end parsing; caught in run_program
      }
      const Status done = set_option(options.engine, name, text);
      if (!done) throw CLI::ValidationError(done.error().message);
    };
    command
        .add_option_function<std::string>(name, set, fmt::format("{} ({})", spec.help, spec.reason))
        ->type_name(std::string(spec.values))
        ->default_str(std::string(spec.fallback))
        ->group("Engine");
  }
  command.add_option("--seed", options.seed, "seed of sampling")->group("Engine");
  command.add_flag("--json", options.json, "machine-readable result on stdout");
  command.add_flag("-v,--verbose", options.verbose, "more about what is done");
  command.add_flag("--quiet", options.quiet, "only results and errors");
}

void add_common_options(CLI::App& command, CommonOptions& options) {
  command.add_option("MODEL", options.model, "a GGUF file, any shard of a set, or its folder")
      ->required();
  add_engine_options(command, options);
}

Result<std::unique_ptr<Engine>> open_engine(const CommonOptions& options) {
  return Engine::open(options.model, options.engine, options.log(), &stop_on_interrupt());
}

Result<std::vector<text::TokenId>> parse_tokens(std::string_view list, size_t token_count) {
  constexpr std::string_view kSeparators = ", \t\r\n";
  std::vector<text::TokenId> tokens;
  size_t at = list.find_first_not_of(kSeparators);
  while (at < list.size()) {
    const size_t end = std::min(list.find_first_of(kSeparators, at), list.size());
    const std::string_view word = list.substr(at, end - at);
    text::TokenId token = -1;
    const auto [stop, status] = std::from_chars(word.data(), word.data() + word.size(), token);
    if (status != std::errc{} || stop != word.data() + word.size() || token < 0 ||
        static_cast<size_t>(token) >= token_count)
      return make_error(ErrorKind::usage, "'{}' is not a token id; the vocabulary has 0 to {}",
                        word, token_count - 1);
    tokens.push_back(token);
    at = list.find_first_not_of(kSeparators, end);
  }
  return tokens;
}

void TextSource::add_to(CLI::App& command) {
  text_option = command.add_option("-p,--prompt", text, "raw text; no template is applied");
  file_option = command.add_option("-f,--file", file, "text from a file, - for standard input");
  text_option->excludes(file_option);
}

Result<std::string> TextSource::read() const {
  if (text_option->count() > 0) return text;
  return read_input(file);
}

Result<std::string> read_input(const std::string& path) {
  if (path != "-") return read_text(path);
  return std::string(std::istreambuf_iterator<char>(std::cin), {});
}

int run_program(int argc, const char* const* argv) {
  CLI::App app("sluice runs Mixture-of-Experts language models that are larger than memory");
  app.name("sluice");
  app.set_version_flag("--version", "sluice " SLUICE_VERSION);
  app.require_subcommand(1);
  int exit_code = kExitDone;
  add_demo(app, exit_code);
  add_run(app, exit_code);
  add_eval(app, exit_code);
  add_tokenize(app, exit_code);
  add_detokenize(app, exit_code);
  add_inspect(app, exit_code);
  add_bench(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return report(make_error(ErrorKind::usage, "{} (see sluice --help)", error.what()));
  }
  return exit_code;
}

}  // namespace sluice::cli
