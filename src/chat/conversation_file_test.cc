#include "chat/conversation_file.h"

#include <gtest/gtest.h>

namespace sluice::chat {
namespace {

std::string error_of(std::string_view json) {
  const auto parsed = parse_conversation(json);
  return parsed.ok() ? "" : parsed.error().message;
}

TEST(ConversationFile, TakesAllOfItsFields) {
  const auto parsed = parse_conversation(
      R"({"messages": [{"role": "user"}], "tools": [{}], "kwargs": {"a": 1}, "bos_token": "<s>",
          "eos_token": null, "now": "2024-03-01T01:02:03"})");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->conversation.messages.size(), 1u);
  EXPECT_EQ(parsed->conversation.tools.size(), 1u);
  EXPECT_EQ(parsed->conversation.arguments["a"], 1);
  EXPECT_EQ(parsed->bos_token, "<s>");
  EXPECT_EQ(parsed->eos_token, std::nullopt);
  EXPECT_EQ(parsed->now->tm_wday, 5);
  EXPECT_EQ(parsed->now->tm_yday, 60) << "a leap year";
  EXPECT_EQ(parsed->now->tm_hour, 1);
}

TEST(ConversationFile, MessagesAreEnough) {
  const auto parsed = parse_conversation(R"({"messages": []})");
  ASSERT_TRUE(parsed.ok());
  EXPECT_TRUE(parsed->conversation.tools.is_null());
  EXPECT_FALSE(parsed->now.has_value());
}

TEST(ConversationFile, ErrorsNameTheField) {
  EXPECT_EQ(error_of("{"), "is not valid JSON");
  EXPECT_EQ(error_of("[]"), "must be an object with 'messages'");
  EXPECT_EQ(error_of("{}"), "'messages' must be a list of messages");
  EXPECT_EQ(error_of(R"({"messages": [], "tools": 1})"), "'tools' must be a list or null");
  EXPECT_EQ(error_of(R"({"messages": [], "kwargs": []})"), "'kwargs' must be an object");
  EXPECT_EQ(error_of(R"({"messages": [], "bos_token": 1})"), "'bos_token' must be a text");
  EXPECT_EQ(error_of(R"({"messages": [], "now": "2025-02-29T00:00:00"})"),
            "'now' must be a time such as 2025-06-15T12:34:56");
  EXPECT_EQ(error_of(std::string(100'000, '[')), "the JSON nests too deep");
}

}  // namespace
}  // namespace sluice::chat
