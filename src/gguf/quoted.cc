#include "gguf/quoted.h"

#include <fmt/format.h>

namespace sluice::gguf {

std::string quoted(std::string_view name) {
  constexpr size_t kShownMax = 100;
  std::string text = "'";
  for (const char c : name.substr(0, kShownMax)) {
    if (c >= 0x20 && c < 0x7f)
      text += c;
    else
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return text + (name.size() > kShownMax ? "…'" : "'");
}

}  // namespace sluice::gguf
