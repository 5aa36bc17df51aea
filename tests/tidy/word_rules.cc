#include "tests/tidy/word_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace sluice::tidy {
namespace {

constexpr std::string_view kAtomicOperations[] = {"fetch_add", "fetch_sub", "fetch_or", "fetch_and",
                                                  "fetch_xor"};

struct BannedWord {
  std::string_view word;
  std::string_view advice;
};
constexpr BannedWord kBannedParts[] = {
    {"manager", "say what it does"}, {"helper", "say what it does"},
    {"helpers", "say what they do"}, {"util", "say what it holds"},
    {"utils", "say what it holds"},
};
constexpr BannedWord kBannedKeywords[] = {
    {"throw", "return a Result"},
    {"dynamic_cast", "the project is built without RTTI; use a virtual function"},
    {"typeid", "the project is built without RTTI; use a virtual function"},
    {"regex", "std::regex recurses and is slow; write the few lines of scanning"},
    {"random_device", "results must be reproducible; seed a base/random"},
};
constexpr std::string_view kBannedFlags[] = {
    "-ffast-math",
    "-Ofast",
    "-funsafe-math-optimizations",
    "-fassociative-math",
    "-freciprocal-math",
    "-ffp-contract=fast",
    "-ffp-contract=on",
    "-ffinite-math-only",
};

/// Folders and hosts, each in two pieces so that this file does not contain what it forbids.
constexpr std::string_view kBannedPlaces[] = {
    "/wo"
    "rk/",
    "/tm"
    "p/",
    "/ro"
    "ot/",
    "/ho"
    "me/",
    "/fa"
    "rm/",
    ".lib"
    "rary",
    "deb.deb"
    "ian.org",
    "snapshot.deb"
    "ian.org",
    "archive.ubun"
    "tu.com",
    "pypi"
    ".org",
    "python"
    "hosted.org",
    "proxy.gol"
    "ang.org",
    "crates"
    ".io/api",
    "registry.npm"
    "js.org",
    "conda.ana"
    "conda.org",
};

template <typename List>
bool contains(const List& list, std::string_view what) {
  return std::find(std::begin(list), std::end(list), what) != std::end(list);
}

/// Lower-case parts of a name: "SlotIndex_count" → slot, index, count.
std::vector<std::string> parts_of(std::string_view name) {
  std::vector<std::string> parts(1);
  bool was_lower = false;
  for (const char c : name) {
    const bool is_upper = std::isupper(static_cast<unsigned char>(c)) != 0;
    if (c == '_' || (is_upper && was_lower)) parts.emplace_back();
    if (c != '_') parts.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    was_lower = !is_upper;
  }
  return parts;
}

/// A name behind ".", "->" or "::" may belong to a library; ours is seen where it is declared.
bool is_qualified(std::string_view line, const Word& word) {
  if (word.column == 0) return false;
  const char before = line[word.column - 1];
  return before == '.' || before == '>' || before == ':';
}

void check_name(const SourceFile& file, size_t line_index, const Word& word, Findings& findings) {
  const auto report = [&](std::string_view what, std::string_view advice) {
    findings.push_back({file.path, line_index + 1,
                        fmt::format("{}: no {} in names; {}", word.text, what, advice)});
  };
  if (word.text.starts_with("get_") && !is_qualified(file.code[line_index], word))
    report("get_", "name what it returns (find_… where it may be missing)");
  for (const std::string& part : parts_of(word.text)) {
    if (part.starts_with("fetch") && !contains(kAtomicOperations, word.text))
      report("fetch", "a demand read, a prefetch or a load read (see STYLE.md)");
    for (const BannedWord& banned : kBannedParts)
      if (part == banned.word) report(banned.word, banned.advice);
  }
}

}  // namespace

void check_names(const SourceFile& file, Findings& findings) {
  if (!is_cpp(file)) return;
  for (size_t i = 0; i < file.lines.size(); ++i) {
    if (include_of(file, i).path.empty())
      for (const Word& word : words_of(file.code[i])) check_name(file, i, word, findings);
    for (const Word& word : words_of(file.comments[i]))
      for (const BannedWord& banned : kBannedParts)
        if (parts_of(word.text)[0] == banned.word)
          findings.push_back(
              {file.path, i + 1, fmt::format("\"{}\" says nothing; {}", word.text, banned.advice)});
  }
}

void check_language(const SourceFile& file, Findings& findings) {
  if (!is_cpp(file)) return;
  for (size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& code = file.code[i];
    const bool directive = trimmed(code).starts_with("#");
    const std::string_view included = include_of(file, i).path;
    if (included == "regex")
      findings.push_back({file.path, i + 1, "no std::regex; write the few lines of scanning"});
    for (const Word& word : words_of(code)) {
      for (const BannedWord& banned : kBannedKeywords)
        if (word.text == banned.word && included.empty())
          findings.push_back(
              {file.path, i + 1, fmt::format("no {}; {}", word.text, banned.advice)});
      const bool called = code.substr(word.column + word.text.size()).starts_with("(");
      if (called && (word.text == "rand" || word.text == "srand"))
        findings.push_back({file.path, i + 1, "no rand(); use base/random with a seed"});
      if (directive && (word.text.starts_with("__AVX") || word.text.starts_with("__SSE")))
        findings.push_back({file.path, i + 1,
                            fmt::format("no #if on {}; an ISA is a folder of kernels/ chosen when "
                                        "the program runs",
                                        word.text)});
    }
  }
}

void check_build_flags(const SourceFile& file, Findings& findings) {
  if (!is_cmake(file) && !file.path.ends_with("Makefile") && !file.path.ends_with("Presets.json"))
    return;
  for (size_t i = 0; i < file.lines.size(); ++i)
    for (const std::string_view flag : kBannedFlags)
      if (file.lines[i].find(flag) != std::string::npos)
        findings.push_back({file.path, i + 1,
                            fmt::format("no {}; results are defined to the last bit "
                                        "(docs/numerics.md)",
                                        flag)});
}

void check_places(const SourceFile& file, Findings& findings) {
  for (size_t i = 0; i < file.lines.size(); ++i)
    for (const std::string_view place : kBannedPlaces)
      if (file.lines[i].find(place) != std::string::npos)
        findings.push_back({file.path, i + 1,
                            fmt::format("names {}, which is not part of the repository; say it "
                                        "without the place (tests: testing::TempDir())",
                                        place)});
}

}  // namespace sluice::tidy
