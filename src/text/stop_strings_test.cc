#include "text/stop_strings.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace sluice::text {
namespace {

TEST(StopStrings, HoldsBackWhatMayBecomeOne) {
  StopStrings stop({"END"});
  EXPECT_EQ(stop.push("the E"), "the ");
  EXPECT_EQ(stop.push("N"), "");
  EXPECT_EQ(stop.push("T"), "ENT") << "refuted: released";
  EXPECT_EQ(stop.push("xEN"), "x");
  EXPECT_EQ(stop.push("D more"), "");
  EXPECT_TRUE(stop.stopped());
  EXPECT_EQ(stop.push("anything"), "");
}

TEST(StopStrings, FlushGivesTheRest) {
  StopStrings stop({"\n\n", ""});
  EXPECT_EQ(stop.push("a\n"), "a");
  EXPECT_EQ(stop.flush(), "\n");
  EXPECT_FALSE(stop.stopped());
}

TEST(StopStrings, TheEarliestWins) {
  StopStrings stop({"bc", "abcd"});
  EXPECT_EQ(stop.push("xabcd"), "x") << "abcd begins earlier";
}

TEST(StopStrings, HowTheTextIsCutNeverShows) {
  Random random(7);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (int i = 0; i < 40; ++i) text += static_cast<char>('a' + random.below(3));
    const std::vector<std::string> strings{"abca", "cc", "bab"};
    StopStrings whole(strings);
    std::string expected = whole.push(text);
    expected += whole.flush();
    StopStrings pieces(strings);
    std::string got;
    for (size_t at = 0; at < text.size() && !pieces.stopped();) {
      const size_t count = 1 + random.below(5);
      got += pieces.push(std::string_view(text).substr(at, count));
      at += count;
    }
    got += pieces.flush();
    EXPECT_EQ(got, expected) << text;
  }
}

}  // namespace
}  // namespace sluice::text
