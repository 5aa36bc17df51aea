// The report of a generation: a JSON object for scripts (docs/cli.md lists its fields) and a few
// lines for people.
#pragma once

#include <nlohmann/json.hpp>

#include "engine/generate.h"
#include "engine/roofline.h"

namespace sluice::cli {

struct RunReport {
  const Engine& engine;
  size_t prompt_tokens;
  const GenerateResult& result;
  double ram_bytes_per_s;

  Roofline decode_roofline() const;
  nlohmann::ordered_json json() const;
  /// Three lines: speed, experts, roofline.
  std::string text() const;
};

}  // namespace sluice::cli
