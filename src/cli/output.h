// Standard output, where results go and nothing else. A write that fails (the reader of a pipe has
// gone, the disk is full) is an error like any other, so that no command claims to have printed
// what it has not. Beside it standard error, whose failures end nothing: fmt::print() would throw.
// One thread at a time.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/result.h"

namespace sluice::cli {

/// Writes and flushes.
Status write_output(std::string_view bytes);

template <typename... Args>
Status print_output(fmt::format_string<Args...> text, Args&&... args) {
  return write_output(fmt::format(text, std::forward<Args>(args)...));
}

/// To standard error, for people. What cannot be written there is lost, and nothing else is.
void write_note(std::string_view text);

/// One line. Bytes in texts that are not UTF-8 become U+FFFD.
Status print_json(const nlohmann::ordered_json& json);

}  // namespace sluice::cli
