#include "cli/command.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace sluice::cli {

int report(const Error& error) {
  std::string line = error.message;
  std::ranges::replace(line, '\n', ' ');  // a file's name may hold one
  write_note(fmt::format("sluice: {}\n", line));
  switch (error.kind) {
    case ErrorKind::usage:
      return kExitUsage;
    case ErrorKind::interrupted:
      return kExitInterrupted;
    default:
      return kExitFailure;
  }
}

int report(const Status& status) {
  return status.ok() ? kExitDone : report(status.error());
}

void add_model_argument(CLI::App& command, std::string& model, const std::string& help) {
  command.add_option("MODEL", model, help)->required()->group("Arguments");
}

namespace {

/// What is wrong with a value is found by a check, whose message CLI11 puts behind the name.
void add_engine_option(CLI::App& command, const OptionSpec& spec, CommonOptions& options) {
  const auto set = [&options, &spec](const std::string& text) {
    CHECK(spec.set(options.engine, text).ok());
    if (rules_experts_only(spec)) options.expert_options.push_back(spec.name);
  };
  const auto check = [&spec](const std::string& text) {
    EngineOptions scratch;
    const Status done = spec.set(scratch, text);
    return done.ok() ? std::string() : done.error().message;
  };
  command
      .add_option_function<std::string>(std::string(spec.name), set,
                                        fmt::format("{}; {}", spec.help, spec.reason))
      ->check(check)
      ->type_name(std::string(spec.values))
      ->default_str(std::string(spec.fallback))
      ->group(spec.name.starts_with("--moe-stream") ? "Streaming" : "Engine");
}

}  // namespace

void add_common_options(CLI::App& command, CommonOptions& options) {
  const char* group = "Output";
  command.add_flag("--json", options.json, "print the result as one JSON object")->group(group);
  command.add_flag("-v,--verbose", options.verbose, "say more about what is done")->group(group);
  command.add_flag("--quiet", options.quiet, "print results and errors only")->group(group);
  add_number(command, "--seed", options.seed, {0, std::numeric_limits<uint64_t>::max()},
             "of everything random: another seed, another text")
      ->group("Engine");
  for (const OptionSpec& spec : option_table()) add_engine_option(command, spec, options);
}

Result<std::unique_ptr<Engine>> open_engine(const CommonOptions& options) {
  auto engine = Engine::open(options.model, options.engine, options.log(), &stop_on_interrupt());
  if (engine.ok() && (*engine)->facts().expert_count == 0 && !options.expert_options.empty())
    options.log().info("the model has no experts: {} {} no effect",
                       fmt::join(options.expert_options, ", "),
                       options.expert_options.size() == 1 ? "has" : "have");
  return engine;
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
      return make_error(ErrorKind::usage,
                        "'{}' is not a token id of this model; give numbers from 0 to {}", word,
                        token_count - 1);
    tokens.push_back(token);
    at = list.find_first_not_of(kSeparators, end);
  }
  return tokens;
}

void TextSource::add_to(CLI::App& command, const std::string& group) {
  text_option = command.add_option("-p,--prompt", text, "raw text; no chat template is applied");
  file_option = command.add_option("-f,--file", file, "the text of a file; - is standard input");
  text_option->group(group);
  file_option->type_name("FILE")->excludes(text_option)->group(group);
}

Result<std::string> TextSource::read() const {
  if (text_option->count() > 0) return text;
  return read_text(file);
}

namespace {

constexpr std::string_view kSeeHelp = "sluice --help lists the commands";

/// "--isa list", anywhere, asks for the list and for nothing else.
bool asks_for_isas(std::span<const char* const> words) {
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--isa=list") return true;
    if (word == "--isa" && i + 1 < words.size() && words[i + 1] == std::string_view("list"))
      return true;
  }
  return false;
}

/// The first word must be a command or an option of the program itself.
Status check_command(const CLI::App& app, int argc, const char* const* argv) {
  if (argc < 2)
    return make_error(ErrorKind::usage, "no command is given; try 'sluice demo'; {}", kSeeHelp);
  const std::string word = argv[1];
  const auto is_it = [&](const CLI::App* command) { return command->check_name(word); };
  if (!app.get_subcommands(is_it).empty()) return {};
  if (word.starts_with('-')) {
    if (app.get_option_no_throw(word.substr(0, word.find('='))) != nullptr) return {};
    return make_error(ErrorKind::usage, "there is no option '{}'; {}", word, kSeeHelp);
  }
  return make_error(ErrorKind::usage, "there is no command '{}'; {}", word, kSeeHelp);
}

void declare_program(CLI::App& app, int& exit_code) {
  app.name("sluice");
  app.require_subcommand(1);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_demo(app, exit_code);
  add_run(app, exit_code);
  add_chat(app, exit_code);
  add_inspect(app, exit_code);
  add_bench(app, exit_code);
  add_eval(app, exit_code);
  add_perplexity(app, exit_code);
  add_tokenize(app, exit_code);
  add_detokenize(app, exit_code);
  add_template(app, exit_code);
  add_trace(app, exit_code);
  const auto refuse = [](const std::string&) -> std::string {
    return "before a command only 'list' is possible; give a name behind the command";
  };
  const auto nothing = [](const std::string&) {};  // asks_for_isas() has seen it
  app.add_option_function<std::string>("--isa", nothing,
                                       "print the instruction sets that this machine can use")
      ->check(refuse)
      ->type_name("list");
  app.set_version_flag("--version", "sluice " SLUICE_VERSION, "print the version");
  set_help(app,
           {.arguments = "COMMAND [MODEL] [options]",
            .notes = {"'sluice COMMAND --help' explains a command and its options. MODEL is a "
                      "GGUF file, any shard of a split set, or a folder that holds one model."},
            .examples = {"sluice demo", "sluice run MODEL.gguf -p \"Once upon a time\"",
                         "sluice inspect MODEL.gguf"}});
}

/// The command that the words have led to, and its own commands.
const CLI::App& parsed_command(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : parsed_command(*parsed.front());
}

/// "--kv: 1 required f16|f32|q8_0 missing" is how CLI11 says that a value is missing.
std::string problem_of(const CLI::ParseError& error) {
  constexpr std::string_view kBefore = ": 1 required ", kBehind = " missing";
  const std::string_view problem = error.what();
  const size_t at = problem.find(kBefore);
  if (at == problem.npos || !problem.ends_with(kBehind)) return std::string(problem);
  std::string_view values = problem.substr(at + kBefore.size());
  values.remove_suffix(kBehind.size());
  return fmt::format("{}: its value is missing; give {}", problem.substr(0, at), values);
}

/// What is wrong with the options, in one line.
int report_parse_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = parsed_command(app);
  const bool has_commands = !command.get_subcommands([](const CLI::App*) { return true; }).empty();
  std::string problem = problem_of(error);
  const std::vector<std::string> extras = app.remaining(true);
  const auto is_option = [](const std::string& word) { return word.starts_with('-'); };
  if (const auto option = std::ranges::find_if(extras, is_option); option != extras.end())
    problem = fmt::format("there is no option '{}'", *option);
  else if (!extras.empty() && has_commands)
    problem = fmt::format("there is no command '{}'", extras.front());
  else if (!extras.empty())
    problem = fmt::format("'{}' is one argument too many", extras.front());
  return report(
      make_error(ErrorKind::usage, "{}; see '{} --help'", problem, command_path(command)));
}

}  // namespace

int run_program(int argc, const char* const* argv) {
  guard_standard_streams();
  if (asks_for_isas({argv, static_cast<size_t>(argc)}))
    return report(print_output("{}\n", usable_isa_names()));
  CLI::App app("runs Mixture-of-Experts language models that are larger than memory");
  int exit_code = kExitDone;
  declare_program(app, exit_code);
  if (const Status command = check_command(app, argc, argv); !command) return report(command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return report(write_output(parsed_command(app).help()));
  } catch (const CLI::CallForVersion& version) {
    return report(print_output("{}\n", version.what()));
  } catch (const CLI::ParseError& error) {
    return report_parse_error(app, error);
  }
  return exit_code;
}

}  // namespace sluice::cli
