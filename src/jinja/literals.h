// How literals are written: numbers as Python writes them, texts with Python's escapes. Pure
// functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "jinja/value.h"

namespace sluice::jinja {

struct NumberShape {
  size_t size;
  bool is_real;
};

/// The number that the text starts with. REQUIRES: it starts with a digit
NumberShape number_shape(std::string_view text);

/// Digits of the base, with 0x, 0o or 0b in front where base is 16, 8 or 2; none when they are not
/// digits or too many for 64 bits.
std::optional<int64_t> parse_integer(std::string_view digits, int base);
/// None unless the whole text is a number.
std::optional<double> parse_real(std::string_view digits);

/// The escapes of a text literal resolved; one that is not known stays as it is.
std::string unescape(std::string_view literal);

}  // namespace sluice::jinja
