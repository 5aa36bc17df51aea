// Characters as Python sees them: strings are indexed and measured in code points, and white space,
// printability and case are Unicode's. Bytes that are not UTF-8 count as one character each. Pure
// functions; any thread.
#pragma once

#include <string>
#include <string_view>

#include "jinja/text.h"

namespace sluice::jinja {

size_t count_characters(std::string_view text);
/// Where the characters begin, and the end of the text as last entry.
std::vector<size_t> character_offsets(std::string_view text);

/// str.isspace()
bool is_white(char32_t code);
/// What repr() shows as it is.
bool is_printable(char32_t code);
bool is_upper(char32_t code);
bool is_lower(char32_t code);
char32_t to_upper(char32_t code);
char32_t to_lower(char32_t code);

/// Where the text without the white space on its left begins, and on its right ends.
size_t white_begin_end(std::string_view text);
size_t white_end_begin(std::string_view text);

/// Each byte's origin goes to what it becomes.
Text upper(const Text& text);
Text lower(const Text& text);
/// The first letter upper, all others lower case.
Text capitalize(const Text& text);
/// str.title(): letters after what is no letter are upper case.
Text title(const Text& text);

}  // namespace sluice::jinja
