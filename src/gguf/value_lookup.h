// Typed access to key/values: what was stored is never read as something else, but numbers convert
// where nothing is lost. A missing key is no error; a key of another type is, and the message names
// the key, the type found and the type wanted. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/gguf_file.h"

namespace sluice::gguf {

using ValueMap = std::map<std::string, Value, std::less<>>;

/// "an array of texts", "a boolean": for messages.
std::string_view type_text(const Value& value);

Result<std::optional<uint64_t>> find_uint(const ValueMap& values, std::string_view key);
Result<std::optional<double>> find_float(const ValueMap& values, std::string_view key);
Result<std::optional<bool>> find_bool(const ValueMap& values, std::string_view key);
Result<std::optional<std::string>> find_text(const ValueMap& values, std::string_view key);
/// Scalars count as arrays of one, booleans as 0 and 1; empty when the key is missing.
Result<std::vector<uint64_t>> find_uints(const ValueMap& values, std::string_view key);
Result<std::vector<double>> find_floats(const ValueMap& values, std::string_view key);
/// Null when missing; owned by the map.
Result<const std::vector<std::string>*> find_texts(const ValueMap& values, std::string_view key);

}  // namespace sluice::gguf
