// sluice inspect FILE: what a model file holds and what running it would take.
#include "cli/command.h"
#include "cli/inspect_report.h"

namespace sluice::cli {
namespace {

struct InspectOptions {
  std::string model;
  bool json = false;
  bool verbose = false;
};

int inspect(const InspectOptions& options) {
  const auto model = inspect_model(options.model);
  if (!model) return report(model.error());
  if (options.json) return report(print_json(inspect_json(*model)));
  std::string text = inspect_text(*model);
  if (options.verbose) text += tensor_table(*model);
  return report(write_output(text));
}

}  // namespace

void add_inspect(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command = app.add_subcommand("inspect", "describe a model file without loading it");
  command->add_option("FILE", options->model, "a GGUF file, any shard of a set, or its folder")
      ->required()
      ->group("Arguments");
  command->add_flag("--json", options->json, "print one JSON object, with every tensor")
      ->group("Options");
  command->add_flag("-v,--verbose", options->verbose, "list every tensor")->group("Options");
  set_help(*command, {.arguments = "FILE [options]",
                      .notes = {},
                      .examples = {"sluice inspect models/demo-q4_k_m.gguf"}});
  command->callback([options, &exit_code] { exit_code = inspect(*options); });
}

}  // namespace sluice::cli
