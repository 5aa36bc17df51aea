// Rules about shape: how long a function, a file and a line may be, what a line and a header look
// like. An exception to the two lengths is data, and may only shrink. Tests only, one thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/tidy/source_file.h"

namespace sluice::tidy {

inline constexpr size_t kFunctionLinesMax = 70;
inline constexpr size_t kFileLinesMax = 500;
inline constexpr size_t kColumnsMax = 100;

struct Function {
  std::string name;  ///< as written, "Cache::evict" or "TEST(Cache, Evicts)"
  size_t line;       ///< where it starts, from 1
  size_t length;     ///< lines from there to its closing brace
};

/// The functions defined at namespace or class scope. Matches braces; relies on the project's
/// formatting in one thing: a body's brace follows a space, an initialiser's follows its name.
std::vector<Function> find_functions(const SourceFile& file);

/// Functions and files; files called *_tables.cc are data and may be long.
void check_lengths(const SourceFile& file, Findings& findings);
/// Columns (code points), tabs, trailing space, the last newline.
void check_lines(const SourceFile& file, Findings& findings);
/// A paragraph that says what the header is for, then #pragma once.
void check_header(const SourceFile& file, Findings& findings);

/// A length that is known to be over the limit.
struct LengthException {
  std::string_view path;
  std::string_view subject;  ///< "file" or the function's name
  size_t measure;            ///< its lines today
};

/// Takes out the findings that an exception covers, and adds one for each exception that covers
/// nothing any more or allows more than is needed.
Findings apply_exceptions(const Findings& findings, std::span<const LengthException> exceptions);

}  // namespace sluice::tidy
