#include "tests/tidy/word_rules.h"

#include <gtest/gtest.h>

namespace sluice::tidy {
namespace {

using Rule = void (*)(const SourceFile&, Findings&);

size_t count(Rule rule, const std::string& text, const std::string& path = "src/base/a.cc") {
  Findings findings;
  rule(parse_source(path, text), findings);
  return findings.size();
}

TEST(TidyWords, Names) {
  EXPECT_EQ(count(check_names, "int get_size() const;\n"), 1u);
  EXPECT_EQ(count(check_names, "auto* x = std::get_if<int>(&v); option->get_name();\n"), 0u);
  EXPECT_EQ(count(check_names, "void fetch_expert();\n"), 1u);
  EXPECT_EQ(count(check_names, "class ExpertFetcher;\n"), 1u);
  EXPECT_EQ(count(check_names, "n.fetch_add(1); n.fetch_or(2); prefetch_count; _mm_prefetch(p);\n"),
            0u);
  EXPECT_EQ(count(check_names, "class CacheManager;\n"), 1u);
  EXPECT_EQ(count(check_names, "int parse_helper();\n"), 1u);
  EXPECT_EQ(count(check_names, "namespace string_util {}\n"), 1u);
  EXPECT_EQ(count(check_names, "double utilisation; f(\"helper\");\n"), 0u);
}

TEST(TidyWords, Comments) {
  EXPECT_EQ(count(check_names, "// A helper for parsing.\n"), 1u);
  EXPECT_EQ(count(check_names, "/// The cache manager\n"), 1u);
  EXPECT_EQ(count(check_names, "// Helps to parse; manages utilisation.\n"), 0u);
}

TEST(TidyWords, Language) {
  EXPECT_EQ(count(check_language, "void f() { throw 1; }\n"), 1u);
  EXPECT_EQ(count(check_language, "auto* d = dynamic_cast<D*>(b);\n"), 1u);
  EXPECT_EQ(count(check_language, "#include <regex>\nstd::regex r;\n"), 2u);
  EXPECT_EQ(count(check_language, "int a = rand();\n"), 1u);
  EXPECT_EQ(count(check_language, "#ifdef __AVX2__\n"), 1u);
  EXPECT_EQ(count(check_language, "// must not throw\nf(\"throw\"); int rand;\n"), 0u);
}

TEST(TidyWords, BuildFlags) {
  EXPECT_EQ(count(check_build_flags, "add_compile_options(-ffast-math)\n", "CMakeLists.txt"), 1u);
  EXPECT_EQ(count(check_build_flags, "set(x -Ofast)\n", "src/kernels/CMakeLists.txt"), 1u);
  EXPECT_EQ(count(check_build_flags, "add_compile_options(-ffp-contract=off)\n", "CMakeLists.txt"),
            0u);
  EXPECT_EQ(count(check_build_flags, "never -ffast-math\n", "docs/numerics.md"), 0u);
}

TEST(TidyWords, Places) {
  EXPECT_EQ(count(check_places,
                  "open(\"/tm"
                  "p/x\");\n"),
            1u);
  EXPECT_EQ(count(check_places,
                  "see /wo"
                  "rk/models\n",
                  "docs/a.md"),
            1u);
  EXPECT_EQ(count(check_places,
                  "http://deb.deb"
                  "ian.org/x\n",
                  "scripts/a.sh"),
            1u);
  EXPECT_EQ(count(check_places, "a workflow/template, tmp/x and a homepage\n", "docs/a.md"), 0u);
}

}  // namespace
}  // namespace sluice::tidy
