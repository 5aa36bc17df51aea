// Pieces of the reports that people read. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace sluice::cli {

/// A text from a file, without what could steer a terminal.
std::string shown(std::string text);

/// "  label         text", one line of a report.
std::string line(std::string_view label, const std::string& text);

}  // namespace sluice::cli
