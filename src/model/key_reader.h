// Reading one family's hyper-parameters from a file's keys. One thread.
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/gguf_file.h"

namespace sluice {

/// No model has, or will have, a size above this; a file that says so is broken, and the products
/// of these stay far below 2^64.
inline constexpr uint64_t kSizeMax = uint64_t{1} << 24;

/// Reads the keys of one architecture, remembering the first failure so that the code below can
/// read one key after the other and ask once.
class KeyReader {
 public:
  KeyReader(const gguf::GgufFile& file, std::string_view prefix)
      : file_(file), prefix_(fmt::format("{}.", prefix)) {}

  std::string full(std::string_view key) const { return prefix_ + std::string(key); }

  uint64_t required(std::string_view key, uint64_t max) {
    const auto value = find(key, 1, max);
    if (!value) fail(make_error(ErrorKind::corrupt, "key '{}' is missing", full(key)));
    return value.value_or(1);
  }

  uint64_t optional(std::string_view key, uint64_t fallback, uint64_t min, uint64_t max) {
    return find(key, min, max).value_or(fallback);
  }

  double optional_float(std::string_view key, double fallback) {
    auto value = file_.find_float(full(key));
    if (!value) fail(value.error());
    const double number = value.ok() ? value->value_or(fallback) : fallback;
    if (!std::isfinite(number) || std::abs(number) > std::numeric_limits<float>::max())
      fail(make_error(ErrorKind::corrupt, "key '{}' is not a usable number", full(key)));
    return number;
  }

  /// Empty where the key is missing.
  std::string text(std::string_view key) {
    auto value = file_.find_text(full(key));
    if (!value) fail(value.error());
    return value.ok() ? std::string(value->value_or("")) : std::string();
  }

  std::optional<bool> find_bool(std::string_view key) {
    auto value = file_.find_bool(full(key));
    if (!value) fail(value.error());
    return value.ok() ? *value : std::nullopt;
  }

  /// A number or an array of them, flags too; empty where the key is missing.
  std::vector<uint64_t> numbers(std::string_view key) {
    auto values = file_.find_uints(full(key));
    if (!values) fail(values.error());
    return values.ok() ? *values : std::vector<uint64_t>();
  }

  /// One value per layer from a scalar or an array; surplus entries (next-token layers) are left.
  std::vector<uint32_t> per_layer(std::string_view key, size_t layer_count) {
    const std::vector<uint64_t> values = numbers(key);
    std::vector<uint32_t> result(layer_count, 1);
    if (values.empty())
      fail(make_error(ErrorKind::corrupt, "key '{}' is missing or empty", full(key)));
    else if (values.size() != 1 && values.size() < layer_count)
      fail(make_error(ErrorKind::corrupt, "key '{}' has {} entries for {} layers", full(key),
                      values.size(), layer_count));
    if (error_) return result;
    for (size_t i = 0; i < layer_count; ++i) {
      const uint64_t value = values.size() == 1 ? values.front() : values[i];
      if (value == 0 || value > kSizeMax)
        fail(make_error(ErrorKind::corrupt, "key '{}' is {} for layer {}", full(key), value, i));
      else
        result[i] = static_cast<uint32_t>(value);
    }
    return result;
  }

  void fail(Error error) {
    if (!error_) error_ = std::move(error);
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  std::optional<uint64_t> find(std::string_view key, uint64_t min, uint64_t max) {
    auto value = file_.find_uint(full(key));
    if (!value) {
      fail(value.error());
      return std::nullopt;
    }
    if (value->has_value() && (**value < min || **value > max)) {
      fail(make_error(ErrorKind::corrupt, "key '{}' is {}, expected {} to {}", full(key), **value,
                      min, max));
      return std::nullopt;  // nobody may compute with it
    }
    return *value;
  }

  const gguf::GgufFile& file_;
  const std::string prefix_;
  std::optional<Error> error_;
};

}  // namespace sluice
