// Names from files, made fit for an error message: nothing in a file is trusted, not even to be
// text. Any thread.
#pragma once

#include <string>
#include <string_view>

namespace sluice::gguf {

/// The name in single quotes; bytes other than printable ASCII as \xNN, cut after 100 bytes.
std::string quoted(std::string_view name);

}  // namespace sluice::gguf
