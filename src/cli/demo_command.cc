// sluice demo: the small model of the repository, with a cache smaller than its experts.
#include <filesystem>

#include "cli/generation.h"

namespace sluice::cli {
namespace {

constexpr std::string_view kModelFile = "models/demo-q4_k_m.gguf";
constexpr std::string_view kPrompt = "Mr. Darcy looked at her";

struct DemoOptions {
  CommonOptions common;
  GenerationOptions generation;
  std::string prompt{kPrompt};
  bool licence = false;
};

/// In the working folder, or in the source tree that this program was built from.
std::string find_model() {
  std::error_code ignored;
  for (const std::filesystem::path root : {".", SLUICE_SOURCE_DIR})
    if (const auto path = root / kModelFile; std::filesystem::exists(path, ignored))
      return path.string();
  return std::string(kModelFile);
}

int demo(DemoOptions& options) {
  if (options.licence) {
    fmt::print("{}", demo_licence());
    return kExitDone;
  }
  if (options.common.model.empty()) options.common.model = find_model();
  const EngineOptions defaults;
  if (!options.common.engine.cache.bytes && !options.common.engine.cache.slots_per_layer)
    options.common.engine.cache.slots_per_layer = 10;  // of 32: smaller than the experts
  if (!options.common.json)
    fmt::print("{}", options.prompt), std::fflush(stdout);
  return generate_and_report(options.common, options.generation.request,
                             [&](const text::Tokenizer& tokenizer) {
                               return Result(tokenizer.tokenize(options.prompt, {}));
                             });
}

}  // namespace

void add_demo(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<DemoOptions>();
  CLI::App* command = app.add_subcommand("demo", "stream the small model of the repository");
  options->generation.request.sampling.temperature = 0.7f;
  options->common.seed = 4;
  command->add_option("-p,--prompt", options->prompt, "the opening")->capture_default_str();
  command->add_flag("--licence", options->licence, "print the licence note of the demo model");
  options->generation.add_to(*command);
  add_engine_options(*command, options->common);
  command->callback([options, &exit_code] { exit_code = demo(*options); });
}

}  // namespace sluice::cli
