// From a conversation to the tokens of a prompt. A template writes the text, in spans that tell its
// own words from those of the messages; the spans are then tokenized as one text, so that words
// and merges run across their borders as if nobody had told them apart, with one difference:
// control tokens are seen in the template's words only. Whoever types <|im_end|> has typed letters
// and signs.
//
// A ChatTemplate is immutable; any thread may use it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jinja/chat.h"
#include "text/tokenizer.h"

namespace sluice::chat {

/// The template of models that have none, but know its markers.
extern const std::string_view kChatMl;

/// One text's tokens. Where the model wants a BOS and the spans do not begin with one it is added;
/// nothing is added behind them.
std::vector<text::TokenId> tokens_of(const std::vector<jinja::Span>& spans,
                                     const text::Tokenizer& tokenizer);

class ChatTemplate {
 public:
  static Result<ChatTemplate> parse(std::string source);

  Result<std::vector<jinja::Span>> render(const jinja::Conversation& conversation,
                                          const jinja::RenderOptions& options) const;

  /// Whether its source names a variable: enable_thinking, reasoning_content.
  bool mentions(std::string_view name) const { return source_.find(name) != source_.npos; }

 private:
  ChatTemplate(std::string source, jinja::Template parsed)
      : source_(std::move(source)), template_(std::move(parsed)) {}

  std::string source_;
  jinja::Template template_;
};

}  // namespace sluice::chat
