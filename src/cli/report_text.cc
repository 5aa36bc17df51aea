#include "cli/report_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::cli {

std::string shown(std::string text) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  std::ranges::replace_if(text, is_control, '?');
  return text;
}

std::string line(std::string_view label, const std::string& text) {
  return fmt::format("  {:<14}{}\n", label, text);
}

}  // namespace sluice::cli
