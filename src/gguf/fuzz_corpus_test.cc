// Replays what the fuzzer has kept: every input that once reached something new.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "testing/gguf_exercise.h"

namespace sluice::gguf {
namespace {

TEST(FuzzCorpus, EveryInputKeepsThePromises) {
  const auto folder = std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/fuzz_corpus/gguf";
  size_t input_count = 0;
  size_t valid_count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    SCOPED_TRACE(entry.path().string());
    valid_count += exercise_gguf(std::as_bytes(std::span(bytes)));
    ++input_count;
  }
  EXPECT_GE(input_count, 20u);
  EXPECT_GE(valid_count, 5u);
}

}  // namespace
}  // namespace sluice::gguf
