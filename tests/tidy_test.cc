// The house rules, checked over the whole tree. A finding reads "file:line: what is wrong, what to
// do". That each rule can fail is shown in tests/tidy/*_test.cc.
#include <gtest/gtest.h>

#include <set>
#include <span>

#include "tests/tidy/layer_rules.h"
#include "tests/tidy/size_rules.h"
#include "tests/tidy/source_file.h"
#include "tests/tidy/word_rules.h"

namespace sluice::tidy {
namespace {

/// Lengths over the limit that we know of: {path, "file" or function, lines}. This list may only
/// shrink; an entry that is too generous or no longer needed fails the test.
constexpr std::span<const LengthException> kLengthExceptions = {};

const std::vector<SourceFile>& tree() {
  static const std::vector<SourceFile> files = read_tree(SLUICE_SOURCE_DIR);
  return files;
}

template <typename Rule>
Findings check_tree(const Rule& rule) {
  Findings findings;
  for (const SourceFile& file : tree()) rule(file, findings);
  return findings;
}

void expect_none(const Findings& findings) {
  for (const Finding& finding : findings) ADD_FAILURE() << finding.text();
}

TEST(Tidy, TheTreeWasRead) {
  std::set<std::string> paths;
  for (const SourceFile& file : tree()) paths.insert(file.path);
  EXPECT_TRUE(paths.contains("tests/tidy_test.cc"));
  EXPECT_TRUE(paths.contains("src/base/result.h"));
  EXPECT_TRUE(paths.contains("CMakeLists.txt"));
}

TEST(Tidy, IncludesPointDown) {
  std::set<std::string> paths;
  for (const SourceFile& file : tree()) paths.insert(file.path);
  const auto has_file = [&](const std::string& path) { return paths.contains(path); };
  expect_none(check_tree([&](const SourceFile& file, Findings& findings) {
    if (is_cpp(file)) check_includes(file, has_file, findings);
  }));
}

TEST(Tidy, FilesLieInTheFoldersOfTheTable) {
  expect_none(check_tree(
      [](const SourceFile& file, Findings& findings) { check_folder(file.path, findings); }));
}

TEST(Tidy, TheSystemIsMetInOsOnly) {
  expect_none(check_tree([](const SourceFile& file, Findings& findings) {
    if (is_cpp(file)) check_platform(file, findings);
  }));
}

TEST(Tidy, IsaFoldersUsePlainPointers) {
  expect_none(check_tree(check_isa_folder));
}

TEST(Tidy, FunctionsAndFilesAreShort) {
  expect_none(apply_exceptions(check_tree(check_lengths), kLengthExceptions));
}

TEST(Tidy, LinesAreClean) {
  expect_none(check_tree(check_lines));
}

TEST(Tidy, HeadersOpenWithAParagraph) {
  expect_none(check_tree(check_header));
}

TEST(Tidy, NamesFollowTheGlossary) {
  expect_none(check_tree(check_names));
}

TEST(Tidy, TheLanguageIsTheAgreedOne) {
  expect_none(check_tree(check_language));
}

TEST(Tidy, BuildFlagsKeepFloatsExact) {
  expect_none(check_tree(check_build_flags));
}

TEST(Tidy, NoPlacesOutsideTheRepository) {
  expect_none(check_tree(check_places));
}

}  // namespace
}  // namespace sluice::tidy
