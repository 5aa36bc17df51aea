#include "gguf/value_lookup.h"

#include <array>
#include <concepts>
#include <type_traits>
#include <utility>

#include "gguf/quoted.h"

namespace sluice::gguf {
namespace {

const Value* find_value(const ValueMap& values, std::string_view key) {
  const auto found = values.find(key);
  return found == values.end() ? nullptr : &found->second;
}

Error wrong_type(std::string_view key, const Value& found, std::string_view wanted) {
  return make_error(ErrorKind::corrupt, "key {} is {}, but should be {}", quoted(key),
                    type_text(found), wanted);
}

/// Which stored numbers may become a T. Floats never become integers.
template <typename Stored, typename T>
inline constexpr bool kConverts = std::same_as<Stored, uint64_t> || std::same_as<Stored, int64_t> ||
                                  std::same_as<Stored, T> ||
                                  (std::same_as<Stored, bool> && std::same_as<T, uint64_t>);

/// Whether a T holds the number exactly.
template <typename T, typename Number>
bool fits(Number number) {
  constexpr int64_t kExactMax = int64_t{1} << 53;  // doubles hold every integer up to here
  if constexpr (std::same_as<Number, bool> || std::same_as<Number, T>)
    return true;
  else if constexpr (std::same_as<T, double>)
    return std::cmp_less_equal(number, kExactMax) && std::cmp_greater_equal(number, -kExactMax);
  else
    return std::in_range<T>(number);
}

template <typename T, typename List>
Result<std::vector<T>> convert_all(std::string_view key, const List& stored) {
  std::vector<T> converted;
  converted.reserve(stored.size());
  for (const auto number : stored) {
    if (!fits<T>(number))
      return make_error(ErrorKind::corrupt, "key {}: {} is out of range", quoted(key), number);
    converted.push_back(static_cast<T>(number));
  }
  return converted;
}

template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};

/// A scalar or an array of numbers as a vector of T; `wanted` is for the message.
template <typename T>
Result<std::vector<T>> convert(std::string_view key, const Value& value, std::string_view wanted) {
  return std::visit(
      [&](const auto& stored) -> Result<std::vector<T>> {
        using Stored = std::decay_t<decltype(stored)>;
        if constexpr (IsVector<Stored>::value) {
          if constexpr (kConverts<typename Stored::value_type, T>)
            return convert_all<T>(key, stored);
        } else if constexpr (kConverts<Stored, T>) {
          return convert_all<T>(key, std::array<Stored, 1>{stored});
        }
        return wrong_type(key, value, wanted);
      },
      value);
}

template <typename T>
Result<std::optional<T>> find_scalar(const ValueMap& values, std::string_view key,
                                     std::string_view wanted) {
  const Value* value = find_value(values, key);
  if (value == nullptr) return std::optional<T>{};
  if (const T* exact = std::get_if<T>(value)) return std::optional<T>(*exact);
  return wrong_type(key, *value, wanted);
}

/// As find_scalar, but other numbers that fit are taken too.
template <typename T>
Result<std::optional<T>> find_number(const ValueMap& values, std::string_view key,
                                     std::string_view wanted) {
  const Value* value = find_value(values, key);
  if (value == nullptr ||
      !(std::holds_alternative<uint64_t>(*value) || std::holds_alternative<int64_t>(*value)))
    return find_scalar<T>(values, key, wanted);
  const auto converted = convert<T>(key, *value, wanted);
  if (!converted.ok()) return converted.error();
  return std::optional<T>(converted->front());
}

template <typename T>
Result<std::vector<T>> find_numbers(const ValueMap& values, std::string_view key,
                                    std::string_view wanted) {
  const Value* value = find_value(values, key);
  return value == nullptr ? std::vector<T>{} : convert<T>(key, *value, wanted);
}

}  // namespace

std::string_view type_text(const Value& value) {
  constexpr std::array<std::string_view, std::variant_size_v<Value>> kTexts = {
      "an unsigned integer",
      "a signed integer",
      "a floating-point number",
      "a boolean",
      "a text",
      "an array of unsigned integers",
      "an array of signed integers",
      "an array of floating-point numbers",
      "an array of booleans",
      "an array of texts",
      "an array of arrays",
  };
  return kTexts[value.index()];
}

Result<std::optional<uint64_t>> find_uint(const ValueMap& values, std::string_view key) {
  return find_number<uint64_t>(values, key, "an unsigned integer");
}

Result<std::optional<double>> find_float(const ValueMap& values, std::string_view key) {
  return find_number<double>(values, key, "a number");
}

Result<std::optional<bool>> find_bool(const ValueMap& values, std::string_view key) {
  return find_scalar<bool>(values, key, "a boolean");
}

Result<std::optional<std::string>> find_text(const ValueMap& values, std::string_view key) {
  return find_scalar<std::string>(values, key, "a text");
}

Result<std::vector<uint64_t>> find_uints(const ValueMap& values, std::string_view key) {
  return find_numbers<uint64_t>(values, key, "one or more unsigned integers");
}

Result<std::vector<double>> find_floats(const ValueMap& values, std::string_view key) {
  return find_numbers<double>(values, key, "one or more numbers");
}

Result<const std::vector<std::string>*> find_texts(const ValueMap& values, std::string_view key) {
  const Value* value = find_value(values, key);
  if (value == nullptr) return nullptr;
  const auto* texts = std::get_if<std::vector<std::string>>(value);
  if (texts == nullptr) return wrong_type(key, *value, "an array of texts");
  return texts;
}

}  // namespace sluice::gguf
