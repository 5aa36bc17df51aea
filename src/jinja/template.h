// Chat templates: a Jinja interpreter for what real templates use, as Hugging Face transformers
// sets Jinja up (trim_blocks, lstrip_blocks, loop controls, the immutable sandbox, no HTML
// escapes), with Python's spelling of values. A template comes from a model file, its variables
// from a client: neither is trusted. Whatever they hold, parsing and rendering end, within stated
// limits, in text or in one line that says what is wrong in which line of the template.
//
// The result is a list of spans that tell the template's own words from those of the messages, so
// that control tokens are looked for in the former only: a user who types <|im_end|> has typed nine
// letters and some signs. A parsed template is immutable; any thread may render it at any time.
#pragma once

#include <ctime>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "jinja/run.h"
#include "jinja/syntax.h"

namespace sluice::jinja {

using Variables = std::map<std::string, Value, std::less<>>;

struct RenderOptions {
  std::tm now = {};  ///< what strftime_now shows
  Limits limits = {};
};

class Template {
 public:
  static Result<Template> parse(std::string_view source);

  /// Neighbours differ in origin; none is empty. The words of raise_exception are in the message,
  /// behind "template, line N: ".
  Result<std::vector<Span>> render(const Variables& variables, const RenderOptions& options) const;

 private:
  explicit Template(Syntax syntax) : syntax_(std::move(syntax)) {}
  Syntax syntax_;
};

/// All spans in one text.
std::string text_of(const std::vector<Span>& spans);

}  // namespace sluice::jinja
