// Options that hold a number: parsed whole, decimal only, and refused out of range with the range
// in the message. (CLI11's own numbers wrap negative values around and take "010" for eight.)
#pragma once

#include <CLI/CLI.hpp>

#include <charconv>
#include <string>

#include "base/result.h"

namespace sluice::cli {

template <typename Number>
struct Bounds {
  Number min;
  Number max;
};

template <typename Number>
Result<Number> parse_number(const std::string& text, Bounds<Number> bounds) {
  Number value{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool in_range = value >= bounds.min && value <= bounds.max;  // false for a NaN
  if (status == std::errc{} && end == text.data() + text.size() && in_range) return value;
  return make_error(ErrorKind::usage, "'{}' is not allowed; give a {} from {} to {}", text,
                    std::is_integral_v<Number> ? "whole number" : "number", bounds.min, bounds.max);
}

/// Declares an option for `target`, whose present value is the default.
template <typename Number>
CLI::Option* add_number(CLI::App& command, const std::string& names, Number& target,
                        Bounds<Number> bounds, const std::string& help) {
  const auto check = [bounds](const std::string& text) {
    const auto number = parse_number(text, bounds);
    return number.ok() ? std::string() : number.error().message;
  };
  const auto set = [&target, bounds](const std::string& text) {
    target = *parse_number(text, bounds);
  };
  return command.add_option_function<std::string>(names, set, help)
      ->check(check)
      ->type_name("N")
      ->default_str(fmt::format("{}", target));
}

}  // namespace sluice::cli
