// A text file of the repository as the tidy rules see it: its lines, and for C++ the same lines
// twice more, once with comments and literals blanked out and once with only the comments left.
// All views have the same shape, so a finding in one of them names a line of the file. Rules are
// plain functions from files to findings, tested on snippets. Tests only, one thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::tidy {

struct SourceFile {
  std::string path;                   ///< from the root of the repository, with '/'
  std::string text;                   ///< as it stands
  std::vector<std::string> lines;     ///< as they stand, without their newline
  std::vector<std::string> code;      ///< comments and what is inside quotes are spaces
  std::vector<std::string> comments;  ///< everything but the words of comments is spaces
};

/// What is wrong, where, and what to do about it.
struct Finding {
  std::string path;
  size_t line;  ///< from 1; 0: the file as a whole
  std::string message;
  std::string subject = {};  ///< for findings that an exception can cover: "file" or a function
  size_t measure = 0;        ///< and its size in lines

  /// "path:line: message", as compilers write it.
  std::string text() const;
};
using Findings = std::vector<Finding>;

/// A word of letters, digits and underscores, and where it stands in its line.
struct Word {
  std::string_view text;
  size_t column;
};

SourceFile parse_source(std::string path, std::string text);

/// Every text file below `root` that could be tracked: all but .git, caches and build folders.
/// Files with a zero byte or above 4 MiB are data and left out.
std::vector<SourceFile> read_tree(const std::string& root);

bool is_cpp(const SourceFile& file);     ///< .h, .cc
bool is_header(const SourceFile& file);  ///< .h
/// CMakeLists.txt and *.cmake
bool is_cmake(const SourceFile& file);
/// "src/os/file_test.cc" → "src/os"; "" for files at the root.
std::string_view folder_of(std::string_view path);
std::string_view file_name_of(std::string_view path);

std::vector<Word> words_of(std::string_view line);
std::string_view trimmed(std::string_view text);

/// For "#include <x>" and "#include "x"" the x and its opening mark; an empty path otherwise.
struct Include {
  std::string_view path;
  bool quoted = false;
};
Include include_of(const SourceFile& file, size_t line_index);

}  // namespace sluice::tidy
