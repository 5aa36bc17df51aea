// Reading the configuration of sketched files, for tests of it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "model/config.h"
#include "testing/model_sketch.h"

namespace sluice {

inline Result<ModelConfig> read(const ModelSketch& sketch) {
  return read_config(sketch.open(), Log(LogLevel::quiet));
}

inline void expect_error(const ModelSketch& sketch, ErrorKind kind, const std::string& part) {
  const auto config = read(sketch);
  ASSERT_FALSE(config.ok()) << "expected: " << part;
  EXPECT_EQ(config.error().kind, kind) << config.error().message;
  EXPECT_THAT(config.error().message, ::testing::HasSubstr(part));
  EXPECT_EQ(config.error().message.find('\n'), std::string::npos);
}

inline std::string key(const std::string& name) {
  return "qwen3moe." + name;
}

/// The sketch, said to be of another family.
inline ModelSketch sketch_of(const std::string& architecture) {
  return ModelSketch().rename_architecture(architecture);
}

}  // namespace sluice
