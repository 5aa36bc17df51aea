// Lines for the person at the terminal. There is no global logger: whoever may speak is handed a
// Log. Lines go to stderr, one write each, so that two threads' lines never mix; stdout belongs to
// results. Nothing logs on the token path.
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace sluice {

enum class LogLevel { quiet, normal, verbose };

class Log {
 public:
  explicit Log(LogLevel level = LogLevel::normal) : level_(level) {}

  LogLevel level() const { return level_; }

  /// What every user should know: modes chosen, fallbacks taken, why something is slow.
  template <typename... Args>
  void info(fmt::format_string<Args...> text, Args&&... args) const {
    if (level_ >= LogLevel::normal) write(fmt::format(text, std::forward<Args>(args)...));
  }

  /// Details for -v.
  template <typename... Args>
  void detail(fmt::format_string<Args...> text, Args&&... args) const {
    if (level_ >= LogLevel::verbose) write(fmt::format(text, std::forward<Args>(args)...));
  }

 private:
  static void write(std::string_view line);

  LogLevel level_;
};

}  // namespace sluice
