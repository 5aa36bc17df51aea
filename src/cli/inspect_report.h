// The description of a model file, for people and for scripts (docs/cli.md lists the fields). Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/inspect.h"

namespace sluice::cli {

nlohmann::ordered_json inspect_json(const ModelReport& model);
std::string inspect_text(const ModelReport& model);
/// Every tensor, a line each.
std::string tensor_table(const ModelReport& model);

}  // namespace sluice::cli
