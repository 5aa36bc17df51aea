// sluice demo: the small model of the repository, with a cache smaller than its experts.
#include <filesystem>

#include "cli/generation.h"

namespace sluice::cli {
namespace {

constexpr std::string_view kModelFile = "models/demo-q4_k_m.gguf";
constexpr std::string_view kCorrectionFile = "models/demo-q4_k_m.correction";
constexpr uint32_t kSlotsPerLayer = 10;  // of 32 experts: smaller than the model, as in real life

struct DemoOptions {
  CommonOptions common;
  GenerationOptions generation;
  std::string prompt = "Mr. Darcy looked at her";
  bool licence = false;
};

/// In the working folder, or in the source tree that this program was built from.
Result<std::string> find_file(std::string_view name) {
  std::error_code ignored;
  for (const std::filesystem::path root : {".", SLUICE_SOURCE_DIR})
    if (const auto path = root / name; std::filesystem::exists(path, ignored))
      return path.lexically_normal().string();
  return make_error(ErrorKind::io, "{}: not found; run the demo in a checkout of the repository",
                    name);
}

int demo(DemoOptions& options) {
  if (options.licence) return report(write_output(demo_licence()));
  auto model = find_file(kModelFile);
  if (!model) return report(model.error());
  options.common.model = *model;
  std::string& correction = options.common.engine.correction_path;
  if (const auto found = find_file(kCorrectionFile); found.ok() && correction.empty())
    correction = *found;
  CacheSize& cache = options.common.engine.cache;
  if (!cache.bytes && !cache.slots_per_layer) cache.slots_per_layer = kSlotsPerLayer;
  const Opening opening{.tokens =
                            [&](const text::Tokenizer& tokenizer) {
                              return Result(tokenizer.tokenize(options.prompt, {}));
                            },
                        .shown = options.prompt};
  return generate_and_report(options.common, options.generation.request, opening);
}

}  // namespace

void add_demo(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<DemoOptions>();
  CLI::App* command = app.add_subcommand("demo", "stream the small model of the repository");
  options->generation.request.sampling.temperature = 0.7f;
  options->common.seed = 1;  // a passage of 127 tokens that ends where a sentence does
  command->add_option("-p,--prompt", options->prompt, "the opening")
      ->capture_default_str()
      ->group("Prompt");
  options->generation.add_to(*command);
  add_common_options(*command, options->common);
  command->add_flag("--licence", options->licence, "print the licence note of the model and end")
      ->group("Output");
  set_help(*command,
           {.arguments = "[options]",
            .notes = {"The expert cache has room for 10 of each layer's 32 experts unless "
                      "--moe-stream-cache says otherwise; the others are read from the "
                      "drive, early where they can be guessed. The text is the same at any size."},
            .examples = {"sluice demo", "sluice demo -p \"Call me\" --seed 3",
                         "sluice demo --moe-stream-cache 4s"}});
  command->callback([options, &exit_code] { exit_code = demo(*options); });
}

}  // namespace sluice::cli
