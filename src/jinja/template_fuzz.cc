// The libFuzzer target of the template interpreter; docs/fuzzing.md tells how to run it. The bytes
// are a template, rendered over a small conversation with tight limits: it must end in text within
// the limit or in an error that names a line, and what a message holds must never come out as the
// template's own.
#include "base/check.h"
#include "jinja/chat.h"

namespace {

using sluice::jinja::Conversation;
using sluice::jinja::Json;

sluice::jinja::Variables small_conversation() {
  const Conversation conversation{
      .messages = Json::parse(R"([{"role": "user", "content": "\u0001\u0001 \u0001"},
          {"role": "\u0001", "content": [{"type": "\u0001", "n": [1, 2.5, true, null]}]}])"),
      .tools = Json::parse(R"([{"\u0001": {"\u0001": "\u0001"}}])"),
      .arguments = Json::parse(R"({"add_generation_prompt": true})"),
      .bos_token = "<s>",
      .eos_token = "</s>"};
  return sluice::jinja::variables_of(conversation).value();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  static const auto variables = small_conversation();
  const std::string_view source(reinterpret_cast<const char*>(bytes), count);
  // The messages' mark must be theirs alone.
  if (source.find('\1') != std::string_view::npos || source.find('\\') != std::string_view::npos)
    return 0;
  const auto parsed = sluice::jinja::Template::parse(source);
  if (!parsed) {
    CHECK(parsed.error().message.starts_with("template, line "));
    return 0;
  }
  const sluice::jinja::Limits limits{.steps_max = 20'000, .output_bytes_max = 100'000};
  const auto rendered = parsed->render(variables, {.limits = limits});
  if (!rendered) return 0;
  CHECK(text_of(*rendered).size() <= limits.output_bytes_max);
  for (const auto& span : *rendered)
    CHECK(!span.is_template || span.text.find('\1') == std::string::npos);
  return 0;
}
