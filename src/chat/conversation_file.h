// A conversation as a JSON file holds it: {messages, tools, kwargs, bos_token, eos_token, now}, all
// but messages optional. Pure; any thread.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <string_view>

#include "jinja/chat.h"

namespace sluice::chat {

struct ConversationFile {
  jinja::Conversation conversation;      ///< its token names are those of the file, or empty
  std::optional<std::string> bos_token;  ///< what the file says of them
  std::optional<std::string> eos_token;
  std::optional<std::tm> now;
};

/// Errors name the field and what it must be.
Result<ConversationFile> parse_conversation(std::string_view json);

/// "2025-06-15T12:34:56", with the day of the week and of the year that follow from it.
Result<std::tm> parse_time(const std::string& text);

}  // namespace sluice::chat
