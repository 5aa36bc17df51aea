// What filters and methods of the same name share: cutting and joining texts as Python's str does.
// Origins go with the bytes. Pure functions but for the limits of the run; one thread per Run.
#pragma once

#include <optional>
#include <vector>

#include "jinja/run.h"

namespace sluice::jinja {

enum class Side : uint8_t { left, right, both };

/// Without the characters of `characters`, or white space, at the sides.
Text stripped(const Text& text, const std::optional<Text>& characters, Side side);

/// Cut at each `separator`, from the front, `count_max` times at most. REQUIRES: not empty
std::vector<Value> split_at(Run& run, const Text& text, const Text& separator, size_t count_max);
std::vector<Value> split_at_from_right(Run& run, const Text& text, const Text& separator,
                                       size_t count_max);
/// Cut at white space, none of which stays; after `count_max` cuts the rest is one piece.
std::vector<Value> split_at_white(Run& run, const Text& text, size_t count_max);
std::vector<Value> split_at_white_from_right(Run& run, const Text& text, size_t count_max);
/// str.splitlines()
std::vector<Text> split_lines(const Text& text, bool keeps_ends);

Value replaced(Run& run, const Text& text, const Text& old, const Text& with, size_t count_max);
/// All items as text with `separator` in between.
Value joined(Run& run, const std::vector<Value>& items, const Text& separator);

inline constexpr size_t kNoMaximum = SIZE_MAX;
/// A count that Python takes: a negative one means no maximum.
inline size_t maximum_of(int64_t count) {
  return count < 0 ? kNoMaximum : static_cast<size_t>(count);
}

}  // namespace sluice::jinja
