#include "tests/tidy/size_rules.h"

#include <gtest/gtest.h>

namespace sluice::tidy {
namespace {

std::vector<Function> functions_in(const std::string& text) {
  return find_functions(parse_source("src/base/a.cc", text));
}

/// "name line length" of each function, for one-line comparisons.
std::vector<std::string> summary(const std::string& text) {
  std::vector<std::string> lines;
  for (const Function& function : functions_in(text))
    lines.push_back(function.name + " " + std::to_string(function.line) + " " +
                    std::to_string(function.length));
  return lines;
}

using Lines = std::vector<std::string>;

TEST(TidyFunctions, PlainAndNested) {
  EXPECT_EQ(summary("#include <x>\n\nint f(int a) {\n  if (a) {\n    g();\n  }\n  return 1;\n}\n"
                    "// int not_me() {\nvoid g() {}\n"),
            (Lines{"f 3 6", "g 10 1"}));
  EXPECT_EQ(
      summary("namespace a::b {\nnamespace {\nstatic const char* f(\n    int a) {\n}\n}\n}\n"),
      (Lines{"f 3 3"}));
}

TEST(TidyFunctions, Members) {
  EXPECT_EQ(summary("class A final : public B<int> {\n public:\n  A() : a_{1}, b_(2) {\n  }\n"
                    "  ~A() {}\n  int at(int i) const noexcept { return i; }\n  int a_ = 0;\n};\n"
                    "struct alignas(64) C {\n  bool operator()(int a) const {\n  }\n};\n"
                    "A& A::operator=(const A& other) {\n  return *this;\n}\n"),
            (Lines{"A 3 2", "~A 5 1", "at 6 1", "bool operator() 10 2", "A& A::operator= 13 3"}));
}

TEST(TidyFunctions, TemplatesAttributesAndTests) {
  EXPECT_EQ(summary("template <class T, typename U = X<int>>\n[[nodiscard]] T f(T a) {\n}\n"
                    "TEST(Cache, Evicts) {\n}\nextern \"C\" {\nint g(int) { return 1; }\n}\n"
                    "auto h(int a) -> std::vector<int> {\n  return {};\n}\n"),
            (Lines{"f 1 3", "TEST(Cache, Evicts) 4 2", "g 7 1", "h 9 3"}));
}

TEST(TidyFunctions, DataIsNotAFunction) {
  EXPECT_EQ(summary("const int k[] = {\n  1,\n};\nenum class E : int { a, b };\nA a{f(1), 2};\n"
                    "auto t = std::to_array<Row>({{1}, {2}});\nvoid f(Options o = {}) {\n}\n"),
            (Lines{"f 7 2"}));
}

TEST(TidyFunctions, MacrosAndBracesInTextDoNotConfuse) {
  EXPECT_EQ(summary("#define M(x) \\\n  do { \\\n    if (x) {\nvoid f() {\n  g(\"{{{\", '{');\n  "
                    "// }\n}\nvoid h() {}\n"),
            (Lines{"f 4 4", "h 8 1"}));
}

std::string function_of_lines(size_t lines) {
  std::string text = "void f() {\n";
  for (size_t i = 2; i < lines; ++i) text += "  g();\n";
  return text + "}\n";
}

Findings lengths_of(const std::string& path, const std::string& text) {
  Findings findings;
  check_lengths(parse_source(path, text), findings);
  return findings;
}

TEST(TidySizes, FunctionsUpTo70Lines) {
  EXPECT_TRUE(lengths_of("src/base/a.cc", function_of_lines(70)).empty());
  std::string text = "\n";
  text += function_of_lines(71);
  const Findings findings = lengths_of("src/base/a.cc", text);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].text(),
            "src/base/a.cc:2: f has 71 lines, more than 70; give its steps names of their own");
}

TEST(TidySizes, FilesUpTo500Lines) {
  const std::string text(500, '\n');
  EXPECT_TRUE(lengths_of("src/base/a.cc", text).empty());
  EXPECT_EQ(lengths_of("src/base/a.cc", text + "\n").size(), 1u);
  EXPECT_TRUE(lengths_of("src/text/unicode_tables.cc", text + "\n").empty());
}

TEST(TidySizes, ExceptionsMayOnlyShrink) {
  const Findings findings = {{"a.cc", 3, "f has 80 lines", "f", 80}};
  const auto left = [&](std::vector<LengthException> exceptions) {
    return apply_exceptions(findings, exceptions);
  };
  EXPECT_TRUE(left({{"a.cc", "f", 80}}).empty());
  EXPECT_EQ(left({}).size(), 1u);
  EXPECT_EQ(left({{"a.cc", "g", 80}}).size(), 2u) << "another function: unused, and f uncovered";
  EXPECT_EQ(left({{"a.cc", "f", 79}}).size(), 1u) << "it grew";
  ASSERT_EQ(left({{"a.cc", "f", 90}}).size(), 1u) << "it shrank";
  EXPECT_EQ(left({{"a.cc", "f", 90}})[0].text(),
            "a.cc: f is down to 80 lines; lower its exception from 90");
}

size_t line_count(const std::string& path, const std::string& text) {
  Findings findings;
  check_lines(parse_source(path, text), findings);
  return findings.size();
}

TEST(TidySizes, LinesUpTo100Columns) {
  const std::string full(100, 'x');
  EXPECT_EQ(line_count("src/base/a.cc", full + "\n"), 0u);
  EXPECT_EQ(line_count("src/base/a.cc", full + "x\n"), 1u);
  EXPECT_EQ(line_count("src/base/a.cc", full.substr(1) + "→\n"), 0u) << "code points, not bytes";
  EXPECT_EQ(line_count("docs/a.md", full + "x\n"), 0u);
}

TEST(TidySizes, NoTabsNoTrailingSpaceOneNewline) {
  EXPECT_EQ(line_count("src/base/a.cc", "int a;\n"), 0u);
  EXPECT_EQ(line_count("src/base/a.cc", "\tint a;\n"), 1u);
  EXPECT_EQ(line_count("Makefile", "a:\n\tb\n"), 0u);
  EXPECT_EQ(line_count("docs/a.md", "a \n"), 1u);
  EXPECT_EQ(line_count("src/base/a.cc", "int a;\r\n"), 1u);
  EXPECT_EQ(line_count("src/base/a.cc", "int a;"), 1u);
  EXPECT_EQ(line_count("src/base/a.cc", "int a;\n\n"), 1u);
  EXPECT_EQ(line_count("models/prompt.txt", "data \t"), 0u);
}

TEST(TidySizes, HeadersOpenWithAParagraph) {
  const auto count = [](const std::string& path, const std::string& text) {
    Findings findings;
    check_header(parse_source(path, text), findings);
    return findings.size();
  };
  EXPECT_EQ(count("src/base/a.h", "// What it is for.\n// Any thread.\n#pragma once\n"), 0u);
  EXPECT_EQ(count("src/base/a.h", "#pragma once\n"), 1u);
  EXPECT_EQ(count("src/base/a.h", "// What it is for.\n\n#include <x>\n"), 1u);
  EXPECT_EQ(count("src/base/a.h", "#ifndef A_H\n"), 2u);
  EXPECT_EQ(count("src/base/a.cc", "int a;\n"), 0u);
}

}  // namespace
}  // namespace sluice::tidy
