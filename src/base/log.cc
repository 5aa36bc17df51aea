#include "base/log.h"

#include <cstdio>
#include <string>

namespace sluice {

void Log::write(std::string_view line) {
  const std::string text = fmt::format("{}\n", line);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace sluice
