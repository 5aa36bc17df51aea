// Cuts the source of a template into tokens: the text between tags as it will be written, and what
// stands inside tags. White space is settled here as chat templates expect it (trim_blocks and
// lstrip_blocks on): the newline after a block or comment goes, and so does the indentation before
// one; - and + in a tag override that. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice::jinja {

enum class TokenKind : uint8_t {
  data,         ///< text outside tags
  print_begin,  ///< {{
  print_end,
  block_begin,  ///< {%
  block_end,
  name,
  text,  ///< a literal, its escapes resolved
  integer,
  real,
  sign,  ///< an operator, bracket or comma
  end,
};

struct Token {
  TokenKind kind;
  std::string text;
  size_t line;
};

/// The last token is of kind `end`.
Result<std::vector<Token>> cut_tokens(std::string_view source);

}  // namespace sluice::jinja
