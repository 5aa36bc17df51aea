// Tokens to a syntax tree: the statements. Expressions are in expression_parser.h. Both stop at the
// first error and then see only the end of the tokens, so no loop needs to ask. A parser belongs to
// one thread and is used once.
#pragma once

#include <string_view>

#include "base/result.h"
#include "jinja/syntax.h"

namespace sluice::jinja {

Result<Syntax> parse(std::string_view source);

}  // namespace sluice::jinja
