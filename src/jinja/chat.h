// A conversation as a template sees it: the variables that Hugging Face transformers passes, made
// from JSON. Messages, tools and arguments are message text; the names of the model's own BOS and
// EOS tokens are the template's. Pure functions; any thread.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

#include "jinja/template.h"

namespace sluice::jinja {

using Json = nlohmann::ordered_json;

/// The tree as a value, its texts of origin message. Fails where it nests too deep.
Result<Value> value_of(const Json& json);

struct Conversation {
  Json messages = Json::array();
  Json tools = nullptr;             ///< a list, or null: defined, but none
  Json arguments = Json::object();  ///< add_generation_prompt, enable_thinking and the like
  std::string bos_token;
  std::string eos_token;
};

Result<Variables> variables_of(const Conversation& conversation);

}  // namespace sluice::jinja
