#include "cli/output.h"

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace sluice::cli {

Status write_output(std::string_view bytes) {
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size();
  if (written && std::fflush(stdout) == 0) return {};
  return make_error(ErrorKind::io, "standard output: cannot write: {}",
                    std::generic_category().message(errno));
}

void write_note(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

Status print_json(const nlohmann::ordered_json& json) {
  constexpr int kOneLine = -1;
  return write_output(json.dump(kOneLine, ' ', false, nlohmann::json::error_handler_t::replace) +
                      "\n");
}

}  // namespace sluice::cli
