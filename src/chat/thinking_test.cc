#include "chat/thinking.h"

#include <gtest/gtest.h>

namespace sluice::chat {
namespace {

struct Told {
  std::string thinking;
  std::string answer;

  bool operator==(const Told&) const = default;
};

/// The text in pieces of every size: the same each time.
Told told(std::string_view text, std::string_view prompt_tail = "") {
  Told first;
  for (size_t size = 1; size <= text.size(); ++size) {
    ThinkingStream stream(prompt_tail);
    Told now;
    const auto add = [&](const std::vector<ThinkingStream::Piece>& pieces) {
      for (const auto& piece : pieces)
        (piece.is_thinking ? now.thinking : now.answer) += piece.text;
    };
    for (size_t at = 0; at < text.size(); at += size) add(stream.push(text.substr(at, size)));
    add(stream.flush());
    if (size == 1) first = now;
    EXPECT_EQ(now, first) << size;
  }
  return first;
}

TEST(ThinkingStream, TellsThinkingFromAnswer) {
  EXPECT_EQ(told("<think>\nhm</think>\n\nyes"), (Told{"\nhm", "yes"}));
  EXPECT_EQ(told("yes"), (Told{"", "yes"}));
  EXPECT_EQ(told(" yes <think> no"), (Told{"", " yes <think> no"})) << "only at the start";
  EXPECT_EQ(told("<think>a</thin b</think>c</think>"), (Told{"a</thin b", "c</think>"}));
}

TEST(ThinkingStream, StartsAsThePromptEnds) {
  EXPECT_EQ(told("hm</think>yes", "<|assistant|>\n<think>\n"), (Told{"hm", "yes"}));
  EXPECT_EQ(told("yes", "<think>\n\n</think>\n\n"), (Told{"", "yes"}));
}

TEST(ThinkingStream, KeepsWhatIsCutShort) {
  EXPECT_EQ(told("<think>hm</thi"), (Told{"hm</thi", ""}));
  EXPECT_EQ(told("<thi"), (Told{"", "<thi"}));
}

}  // namespace
}  // namespace sluice::chat
