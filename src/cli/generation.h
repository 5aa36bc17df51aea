// The options of generating text and what both `run` and `demo` do with them.
#pragma once

#include "cli/command.h"
#include "engine/generate.h"

namespace sluice::cli {

struct GenerationOptions {
  GenerateRequest request;  ///< all but the prompt

  void add_to(CLI::App& command);
};

/// What is to be continued: made from the loaded vocabulary, and shown before what follows it.
struct Opening {
  std::function<Result<std::vector<text::TokenId>>(const text::Tokenizer&)> tokens;
  std::string shown;
};

/// Opens the engine, generates, prints text to stdout as it comes (or JSON at the end) and the
/// statistics to stderr.
int generate_and_report(const CommonOptions& common, GenerateRequest request,
                        const Opening& opening);

}  // namespace sluice::cli
