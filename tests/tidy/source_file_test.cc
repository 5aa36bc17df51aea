#include "tests/tidy/source_file.h"

#include <gtest/gtest.h>

namespace sluice::tidy {
namespace {

TEST(TidySource, BlanksCommentsAndLiterals) {
  const SourceFile file = parse_source("src/base/a.cc",
                                       "int a = 1'000;  // throw \"x\n"
                                       "/* throw\n"
                                       "   again */ char c = '\"'; f(\"th\\\"row\");\n"
                                       "auto r = R\"x(throw \" )\" )x\"; int b;\n");
  ASSERT_EQ(file.code.size(), 4u);
  EXPECT_EQ(file.code[0], "int a = 1'000;             ");
  EXPECT_EQ(trimmed(file.comments[0]), "throw \"x");
  EXPECT_EQ(trimmed(file.code[1]), "");
  EXPECT_EQ(trimmed(file.code[2]), "char c = ' '; f(\"       \");");
  EXPECT_EQ(trimmed(file.comments[2]), "again *");
  EXPECT_EQ(file.code[3].find("throw"), std::string::npos);
  EXPECT_TRUE(file.code[3].ends_with("int b;"));
}

TEST(TidySource, AnOpenQuoteEndsWithItsLine) {
  const SourceFile file = parse_source("src/base/a.cc", "char* a = \"open\nint b;\n");
  EXPECT_EQ(file.code[1], "int b;");
}

TEST(TidySource, FindsIncludesButNotInComments) {
  const SourceFile file = parse_source("src/base/a.cc",
                                       "#include \"base/a.h\"\n"
                                       "#include <vector>  // why\n"
                                       "// #include <regex>\n");
  EXPECT_EQ(include_of(file, 0).path, "base/a.h");
  EXPECT_TRUE(include_of(file, 0).quoted);
  EXPECT_EQ(include_of(file, 1).path, "vector");
  EXPECT_FALSE(include_of(file, 1).quoted);
  EXPECT_TRUE(include_of(file, 2).path.empty());
}

TEST(TidySource, WordsAndPaths) {
  const auto words = words_of("a->get_it(x2)");
  ASSERT_EQ(words.size(), 3u);
  EXPECT_EQ(words[1].text, "get_it");
  EXPECT_EQ(words[1].column, 3u);
  EXPECT_EQ(folder_of("src/os/file.cc"), "src/os");
  EXPECT_EQ(folder_of("README.md"), "");
  EXPECT_EQ(file_name_of("src/os/file.cc"), "file.cc");
}

TEST(TidySource, FindingsReadLikeCompilerMessages) {
  EXPECT_EQ((Finding{"src/a.cc", 7, "a tab; indent with spaces"}).text(),
            "src/a.cc:7: a tab; indent with spaces");
  EXPECT_EQ((Finding{"src/a.cc", 0, "too long"}).text(), "src/a.cc: too long");
}

}  // namespace
}  // namespace sluice::tidy
