#include "chat/prompt.h"

namespace sluice::chat {

const std::string_view kChatMl =
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + "
    "'<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

std::vector<text::TokenId> tokens_of(const std::vector<jinja::Span>& spans,
                                     const text::Tokenizer& tokenizer) {
  std::string text;
  std::vector<text::ByteRange> foreign;
  for (const jinja::Span& span : spans) {
    if (!span.is_template) foreign.push_back({text.size(), text.size() + span.text.size()});
    text += span.text;
  }
  return tokenizer.tokenize(text, {.add_special = true, .goes_on = true, .foreign = foreign});
}

Result<ChatTemplate> ChatTemplate::parse(std::string source) {
  auto parsed = jinja::Template::parse(source);
  if (!parsed) return parsed.error();
  return ChatTemplate(std::move(source), *std::move(parsed));
}

Result<std::vector<jinja::Span>> ChatTemplate::render(const jinja::Conversation& conversation,
                                                      const jinja::RenderOptions& options) const {
  const auto variables = jinja::variables_of(conversation);
  if (!variables) return variables.error();
  return template_.render(*variables, options);
}

}  // namespace sluice::chat
