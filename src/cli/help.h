// The help pages: 80 columns wide, options in groups, examples at the end. CLI11 knows the options;
// this lays them out. Single-threaded.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace sluice::cli {

struct HelpPage {
  std::string arguments;              ///< behind the command's name: "MODEL -p TEXT [options]"
  std::vector<std::string> notes;     ///< paragraphs below the options
  std::vector<std::string> examples;  ///< command lines
};

void set_help(CLI::App& command, HelpPage page);

/// What one types to reach a command: "sluice", "sluice run", "sluice trace info".
std::string command_path(const CLI::App& command);

/// Breaks text into lines of at most `width` characters, at spaces. A longer word stays whole.
std::vector<std::string> wrap_text(std::string_view text, size_t width);

}  // namespace sluice::cli
