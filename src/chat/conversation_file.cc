#include "chat/conversation_file.h"

#include <chrono>
#include <cstdio>

namespace sluice::chat {
namespace {

using jinja::Json;

Error wrong(std::string_view field, std::string_view wanted) {
  return make_error(ErrorKind::usage, "'{}' must be {}", field, wanted);
}

/// The whole is refused where one brace too many would cost a stack: a parser of JSON recurses.
bool nests_too_deep(std::string_view json) {
  constexpr size_t kDepthMax = 500;
  size_t depth = 0;
  bool in_text = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_text && c == '\\') ++i;
    if (c == '"') in_text = !in_text;
    if (in_text) continue;
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && depth > 0) --depth;
    if (depth > kDepthMax) return true;
  }
  return false;
}

Status read_name(const Json& file, const char* field, std::optional<std::string>& name) {
  if (!file.contains(field) || file[field].is_null()) return {};
  if (!file[field].is_string()) return wrong(field, "a text");
  name = file[field].get<std::string>();
  return {};
}

Status read_now(const Json& file, std::optional<std::tm>& now) {
  std::optional<std::string> text;
  if (Status read = read_name(file, "now", text); !read) return read;
  if (!text) return {};
  auto time = parse_time(*text);
  if (!time) return time.error();
  now = *time;
  return {};
}

}  // namespace

Result<std::tm> parse_time(const std::string& text) {
  const Error bad = wrong("now", "a time such as 2025-06-15T12:34:56");
  int year = 0, hour = 0, minute = 0, second = 0;
  unsigned month = 0, day = 0;
  if (std::sscanf(text.c_str(), "%4d-%2u-%2uT%2d:%2d:%2d", &year, &month, &day, &hour, &minute,
                  &second) != 6)
    return bad;
  using namespace std::chrono;
  const year_month_day date{std::chrono::year(year), std::chrono::month(month),
                            std::chrono::day(day)};
  if (!date.ok() || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60)
    return bad;
  const sys_days days = date;
  std::tm time{};
  time.tm_year = year - 1900;
  time.tm_mon = static_cast<int>(month) - 1;
  time.tm_mday = static_cast<int>(day);
  time.tm_hour = hour;
  time.tm_min = minute;
  time.tm_sec = second;
  time.tm_wday = static_cast<int>(weekday(days).c_encoding());
  const sys_days new_year = date.year() / January / 1;
  time.tm_yday = static_cast<int>((days - new_year).count());
  return time;
}

Result<ConversationFile> parse_conversation(std::string_view json) {
  if (nests_too_deep(json)) return make_error(ErrorKind::usage, "the JSON nests too deep");
  const Json file = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (file.is_discarded()) return make_error(ErrorKind::usage, "is not valid JSON");
  if (!file.is_object()) return make_error(ErrorKind::usage, "must be an object with 'messages'");
  ConversationFile parsed;
  if (!file.contains("messages") || !file["messages"].is_array())
    return wrong("messages", "a list of messages");
  parsed.conversation.messages = file["messages"];
  if (file.contains("tools")) parsed.conversation.tools = file["tools"];
  if (!parsed.conversation.tools.is_null() && !parsed.conversation.tools.is_array())
    return wrong("tools", "a list or null");
  if (file.contains("kwargs") && !file["kwargs"].is_null()) {
    if (!file["kwargs"].is_object()) return wrong("kwargs", "an object");
    parsed.conversation.arguments = file["kwargs"];
  }
  for (const Status& read :
       {read_name(file, "bos_token", parsed.bos_token),
        read_name(file, "eos_token", parsed.eos_token), read_now(file, parsed.now)})
    if (!read) return read.error();
  parsed.conversation.bos_token = parsed.bos_token.value_or("");
  parsed.conversation.eos_token = parsed.eos_token.value_or("");
  return parsed;
}

}  // namespace sluice::chat
