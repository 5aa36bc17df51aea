// What the commands share: the options that every model-loading command takes, how errors become a
// line and an exit code, and the list of commands. Each command is one file that declares its
// options and gives a function to run. Single-threaded.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "cli/help.h"
#include "cli/output.h"
#include "cli/values.h"
#include "engine/engine.h"

namespace sluice::cli {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;

/// Prints "sluice: message" to stderr, one line, and gives the exit code of its kind.
int report(const Error& error);
/// The same where there may be no error: then kExitDone.
int report(const Status& status);

/// The options common to the commands that load a model.
struct CommonOptions {
  std::string model;
  EngineOptions engine;
  std::vector<std::string_view> expert_options;  ///< given, and of effect on experts only
  uint64_t seed = 0;
  bool json = false;
  bool quiet = false;
  bool verbose = false;

  Log log() const {
    return Log(quiet ? LogLevel::quiet : verbose ? LogLevel::verbose : LogLevel::normal);
  }
};

void add_model_argument(CLI::App& command, std::string& model, const std::string& help);
/// Declares the common options but MODEL, the engine's from its own table. Called last, so that
/// they stand below the command's own in --help.
void add_common_options(CLI::App& command, CommonOptions& options);

/// Opens the engine as the options say, stoppable by Ctrl-C.
Result<std::unique_ptr<Engine>> open_engine(const CommonOptions& options);

/// Token ids separated by commas or white space. Errors name the first that is not an id below
/// `token_count`.
Result<std::vector<text::TokenId>> parse_tokens(std::string_view list, size_t token_count);

/// Where a command's input text comes from: -p TEXT, -f FILE ("-" is standard input).
struct TextSource {
  std::string text;
  std::string file;
  CLI::Option* text_option = nullptr;
  CLI::Option* file_option = nullptr;

  void add_to(CLI::App& command, const std::string& group);
  bool given() const { return text_option->count() > 0 || file_option->count() > 0; }
  Result<std::string> read() const;
};

/// The licence note that goes with the demo model's weights, from models/ at build time.
std::string_view demo_licence();

/// Each declares a command; its callback leaves the exit code in `exit_code`.
void add_demo(CLI::App& app, int& exit_code);
void add_run(CLI::App& app, int& exit_code);
void add_chat(CLI::App& app, int& exit_code);
void add_template(CLI::App& app, int& exit_code);
void add_eval(CLI::App& app, int& exit_code);
void add_perplexity(CLI::App& app, int& exit_code);
void add_tokenize(CLI::App& app, int& exit_code);
void add_detokenize(CLI::App& app, int& exit_code);
void add_inspect(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_trace(CLI::App& app, int& exit_code);

/// The whole program: parses, runs, returns the exit code.
int run_program(int argc, const char* const* argv);

}  // namespace sluice::cli
