// Feeds arbitrary bytes to the GGUF reader as if they were a file, and checks what must hold for
// any bytes at all. The fuzz target and the replay of its corpus both call it. Any thread.
#pragma once

#include <cstddef>
#include <span>

namespace sluice {

/// Parses the bytes, whole and in part, and calls every accessor on what comes out. A broken
/// promise stops the process. Returns whether the bytes were a valid file.
bool exercise_gguf(std::span<const std::byte> bytes);

}  // namespace sluice
