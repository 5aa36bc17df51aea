// Filters that turn one value into another: numbers, JSON, defaults.
#include <algorithm>
#include <cmath>

#include "jinja/characters.h"
#include "jinja/filters.h"
#include "jinja/literals.h"
#include "jinja/operations.h"
#include "jinja/python_text.h"

namespace sluice::jinja {
namespace {

constexpr int64_t kIndentMax = 64;

Value to_string_filter(Call& call) {
  return call.run.text(to_text(call.run, call.subject));
}

Value same(Call& call) {
  return call.subject;
}

Value default_value(Call& call) {
  Value fallback = call.take("default_value", Text());
  const bool also_false = call.take_bool("boolean", false);
  const bool missing = call.subject.is_undefined() || (also_false && !call.subject.truthy());
  return missing ? fallback : call.subject;
}

/// Spaces for a number, the text itself for a text.
std::optional<std::string> indent_of(Call& call, const Value& indent) {
  if (indent.is_none()) return {};
  if (indent.text() != nullptr) return indent.text()->bytes();
  if (indent.is_whole() && indent.integer() <= kIndentMax)
    return std::string(static_cast<size_t>(std::max<int64_t>(indent.integer(), 0)), ' ');
  call.run.fail("tojson: an indent is a text or a number up to {}", kIndentMax);
  return {};
}

Value tojson(Call& call) {
  JsonStyle style;
  style.ascii_only = call.take_bool("ensure_ascii", false);
  style.indent = indent_of(call, call.take("indent", None{}));
  const Value separators = call.take("separators", None{});
  style.sorts_keys = call.take_bool("sort_keys", false);
  if (style.indent) style.item_separator.pop_back();  // no space at the end of a line
  if (!separators.is_none()) {
    const std::vector<Value> pair = iterate(call.run, separators);
    if (pair.size() != 2 || pair[0].text() == nullptr || pair[1].text() == nullptr)
      return call.run.fail("tojson: separators are two texts");
    style.item_separator = pair[0].text()->bytes();
    style.key_separator = pair[1].text()->bytes();
  }
  if (call.run.failed()) return {};
  return call.run.text(to_json(call.run, call.subject, style));
}

Value to_integer(Call& call) {
  Value fallback = call.take("default", int64_t{0});
  const int64_t base = call.take_integer("base", 10);
  const Value& value = call.subject;
  if (value.is_whole()) return value.integer();
  const bool fits = value.is_real() && std::abs(value.real()) < 9e18;
  if (fits) return static_cast<int64_t>(value.real());
  if (value.text() == nullptr || base < 2 || base > 36) return fallback;
  std::string_view digits = value.text()->bytes();
  digits = digits.substr(0, white_end_begin(digits));
  digits.remove_prefix(std::min(white_begin_end(digits), digits.size()));
  if (const auto number = parse_integer(digits, static_cast<int>(base))) return *number;
  const auto real = parse_real(digits);
  return real && std::abs(*real) < 9e18 ? Value(static_cast<int64_t>(*real)) : fallback;
}

Value to_real(Call& call) {
  Value fallback = call.take("default", 0.0);
  if (call.subject.is_number()) return call.subject.real();
  if (call.subject.text() == nullptr) return fallback;
  std::string_view digits = call.subject.text()->bytes();
  digits = digits.substr(0, white_end_begin(digits));
  digits.remove_prefix(std::min(white_begin_end(digits), digits.size()));
  const auto number = parse_real(digits);
  return number ? Value(*number) : fallback;
}

Value absolute(Call& call) {
  if (!call.subject.is_number()) return call.run.fail("abs needs a number");
  if (call.subject.real() >= 0 && !call.subject.is_bool()) return call.subject;
  return call.subject.is_bool() ? Value(call.subject.integer()) : negated(call.run, call.subject);
}

/// Halves go to the even neighbour, as Python rounds; whole numbers stay whole.
Value rounded_whole(Run& run, int64_t number, int64_t precision) {
  if (precision >= 0) return number;
  if (precision < -18) return int64_t{0};
  int64_t unit = 1;
  for (int64_t i = precision; i < 0; ++i) unit *= 10;
  const int64_t rest = number % unit;
  int64_t result = number - rest;
  const int64_t from_half = std::abs(rest) - unit / 2;
  const bool is_odd = result / unit % 2 != 0;
  if ((from_half > 0 || (from_half == 0 && is_odd)) &&
      __builtin_add_overflow(result, rest < 0 ? -unit : unit, &result))
    return run.fail("round: the result does not fit in 64 bits");
  return result;
}

Value rounded(Call& call) {
  const int64_t precision = std::clamp<int64_t>(call.take_integer("precision", 0), -300, 300);
  const Text method = call.take_text("method", "common");
  if (!call.subject.is_number()) return call.run.fail("round needs a number");
  const double number = call.subject.real();
  if (method.bytes() == "common" && call.subject.is_whole())
    return rounded_whole(call.run, call.subject.integer(), precision);
  if (method.bytes() == "common") {
    // What is printed with so many digits is the nearest number that has so few.
    if (precision < 0) {
      const double unit = std::pow(10.0, static_cast<double>(-precision));
      return std::nearbyint(number / unit) * unit;
    }
    return parse_real(fmt::format("{:.{}f}", number, precision)).value_or(number);
  }
  const double unit = std::pow(10.0, static_cast<double>(precision));
  if (method.bytes() == "ceil") return std::ceil(number * unit) / unit;
  if (method.bytes() == "floor") return std::floor(number * unit) / unit;
  return call.run.fail("round: the method is common, ceil or floor");
}

Value attribute_of(Call& call) {
  const Text name = call.take_text("name", "");
  return attribute(call.run, call.subject, name.bytes());
}

constexpr Builtin kFilters[] = {
    {"abs", absolute},          {"attr", attribute_of}, {"d", default_value},
    {"default", default_value}, {"float", to_real},     {"int", to_integer},
    {"round", rounded},         {"safe", same},         {"string", to_string_filter},
    {"tojson", tojson},
};

}  // namespace

std::span<const Builtin> value_filters() {
  return kFilters;
}

Apply find_filter(std::string_view name) {
  for (const auto table : {text_filters(), sequence_filters(), choice_filters(), value_filters()})
    for (const Builtin& row : table)
      if (row.name == name) return row.apply;
  return nullptr;
}

}  // namespace sluice::jinja
