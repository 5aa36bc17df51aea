// The options of generating text and what both `run` and `demo` do with them.
#pragma once

#include "cli/command.h"
#include "engine/generate.h"

namespace sluice::cli {

struct GenerationOptions {
  GenerateRequest request;

  void add_to(CLI::App& command);
};

/// Opens the engine, generates, prints text to stdout as it comes (or JSON at the end) and the
/// statistics to stderr. `make_prompt` turns the loaded vocabulary into the prompt.
int generate_and_report(
    const CommonOptions& common, GenerateRequest request,
    const std::function<Result<std::vector<text::TokenId>>(const text::Tokenizer&)>& make_prompt);

}  // namespace sluice::cli
