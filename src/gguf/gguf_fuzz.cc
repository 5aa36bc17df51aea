// The libFuzzer target of the GGUF reader; docs/fuzzing.md tells how to run it.
#include <cstddef>
#include <cstdint>
#include <span>

#include "testing/gguf_exercise.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sluice::exercise_gguf(std::as_bytes(std::span(data, size)));
  return 0;
}
