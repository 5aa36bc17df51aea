// The help pages: complete, true to docs/cli.md, and fit for 80 columns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iomanip>
#include <set>
#include <sstream>

#include "engine/engine.h"
#include "tests/cli/program.h"

namespace sluice::cli_test {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

const std::vector<std::string> kCommands{"demo",     "run",       "inspect",    "bench",
                                         "eval",     "tokenize",  "detokenize", "chat",
                                         "template", "perplexity"};

std::string help_of(const std::vector<std::string>& words) {
  const Outcome outcome = run(words);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  return outcome.out;
}

/// Every "--name" in the text.
std::set<std::string> options_in(std::string_view text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz-";
  std::set<std::string> options;
  for (size_t at = text.find("--"); at != std::string_view::npos; at = text.find("--", at)) {
    const size_t end = std::min(text.find_first_not_of(kLetters, at), text.size());
    if (text.substr(at).find_first_not_of('-') == 2) options.emplace(text.substr(at, end - at));
    at = end;
  }
  return options;
}

TEST(Help, NamesEveryCommand) {
  const std::string help = help_of({"--help"});
  for (const std::string& command : kCommands) EXPECT_THAT(help, HasSubstr("\n  " + command + " "));
  EXPECT_EQ(help, help_of({"-h"}));
}

TEST(Help, FitsEightyColumns) {
  std::vector<std::vector<std::string>> pages{{"--help"}};
  for (const std::string& command : kCommands) pages.push_back({command, "--help"});
  for (const auto& words : pages) {
    std::istringstream page(help_of(words));
    for (std::string line; std::getline(page, line);) {
      EXPECT_LE(line.size(), 80u) << line;
      EXPECT_FALSE(line.ends_with(' ')) << line;
    }
  }
}

TEST(Help, NamesEveryOptionOfTheEngineWithItsDefault) {
  for (const std::string command : {"demo", "run", "chat", "bench", "eval", "perplexity"}) {
    const std::string help = help_of({command, "--help"});
    for (const OptionSpec& spec : option_table()) {
      EXPECT_THAT(help, HasSubstr(fmt::format("  {} {}", spec.name, spec.values)));
      EXPECT_TRUE(options_in(help).contains(std::string(spec.name)));
    }
    EXPECT_THAT(help, HasSubstr("(default: 512M)"));
  }
}

/// A command's section of docs/cli.md.
std::string section_of(const std::string& document, const std::string& heading) {
  const size_t begin = document.find("\n### " + heading + "\n");
  EXPECT_NE(begin, std::string::npos) << heading;
  return document.substr(begin, document.find("\n##", begin + 1) - begin);
}

TEST(Help, KnowsEveryOptionThatTheDocumentGivesACommand) {
  const std::string document = file_bytes(SLUICE_SOURCE_DIR "/docs/cli.md");
  for (const std::string heading : {"demo", "run", "chat", "template", "eval",
                                    "tokenize, detokenize", "perplexity", "inspect", "bench"}) {
    std::string help;
    for (const std::string& command : kCommands)
      if (heading.find(command) != std::string::npos) help += help_of({command, "--help"});
    for (const std::string& option : options_in(section_of(document, heading)))
      EXPECT_TRUE(options_in(help).contains(option)) << heading << " " << option;
  }
}

TEST(Help, TheDocumentKnowsEveryOptionOfEveryCommand) {
  const std::set<std::string> documented = options_in(file_bytes(SLUICE_SOURCE_DIR "/docs/cli.md"));
  for (const std::string& command : kCommands)
    for (const std::string& option : options_in(help_of({command, "--help"})))
      EXPECT_TRUE(documented.contains(option)) << command << " " << option;
}

TEST(Help, ExamplesOfTheDocumentPrintWhatItSays) {
  constexpr std::string_view kPrompt = "    $ sluice ";
  std::istringstream document(file_bytes(SLUICE_SOURCE_DIR "/docs/cli.md"));
  size_t count = 0;
  for (std::string line; std::getline(document, line);) {
    if (!line.starts_with(kPrompt)) continue;
    std::vector<std::string> words;
    std::istringstream command(line.substr(kPrompt.size()));
    for (std::string word; command >> std::quoted(word);) words.push_back(word);
    std::ranges::replace(words, std::string("logits.f32"), std::string("/dev/null"));
    std::string printed;
    std::getline(document, printed);
    EXPECT_EQ("    " + run(words, {.folder = SLUICE_SOURCE_DIR}).out, printed + "\n") << line;
    ++count;
  }
  EXPECT_EQ(count, 3u);
}

TEST(Version, IsOneLine) {
  EXPECT_THAT(help_of({"--version"}), MatchesRegex("sluice [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(IsaList, IsTheSameEverywhereAndBeginsWithTheReference) {
  const std::string list = help_of({"--isa", "list"});
  EXPECT_EQ(list, usable_isa_names() + "\n");
  EXPECT_TRUE(list.starts_with("ref"));
  EXPECT_EQ(list, help_of({"run", "--isa", "list"}));
  EXPECT_EQ(list, help_of({"run", "--isa=list"}));
  EXPECT_EQ(list, help_of({"demo", "--quiet", "--isa", "list"}));
}

}  // namespace
}  // namespace sluice::cli_test
