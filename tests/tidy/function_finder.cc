#include <algorithm>
#include <cctype>

#include "tests/tidy/size_rules.h"

namespace sluice::tidy {
namespace {

/// What an opening brace at namespace or class scope begins.
enum class Opens { scope, function, initialiser };

bool starts_with_word(std::string_view text, std::string_view word) {
  const auto words = words_of(text.substr(0, word.size() + 1));
  return !words.empty() && words[0].column == 0 && words[0].text == word;
}

/// The index behind the bracket that closes the one at `open`.
size_t behind_closing(std::string_view text, size_t open, char opening, char closing) {
  size_t depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (text[i] == opening) ++depth;
    if (text[i] == closing && --depth == 0) return i + 1;
  }
  return text.size();
}

/// Takes "template <…>", "[[…]]" and "alignas(…)" out: their brackets are not a function's.
std::string without_decoration(std::string_view head) {
  std::string plain;
  for (size_t i = 0; i < head.size();) {
    const std::string_view rest = head.substr(i);
    if (starts_with_word(rest, "template") && rest.find('<') != std::string_view::npos) {
      i = behind_closing(head, head.find('<', i), '<', '>');
    } else if (rest.starts_with("[[")) {
      i = behind_closing(head, i, '[', ']');
    } else if (rest.starts_with("alignas(")) {
      i = behind_closing(head, head.find('(', i), '(', ')');
    } else {
      plain += head[i++];
    }
  }
  return std::string(trimmed(plain));
}

Opens classify(std::string_view raw_head) {
  const std::string head = without_decoration(raw_head);
  const auto starts = [&](std::string_view word) { return starts_with_word(head, word); };
  if (starts("namespace") || head.starts_with("inline namespace") || head == "extern \" \"")
    return Opens::scope;
  if (starts("class") || starts("struct") || starts("union")) return Opens::scope;
  if (head.find(')') == std::string::npos || head.back() == '=') return Opens::initialiser;
  const char before = raw_head.back();
  const bool touches_name = std::isalnum(static_cast<unsigned char>(before)) != 0 ||
                            before == '_' || before == '>' || before == ']';
  return touches_name ? Opens::initialiser : Opens::function;
}

std::string name_of(std::string_view raw_head) {
  const std::string head = without_decoration(raw_head);
  size_t open = head.find('(');
  if (head.find("operator()") != std::string::npos) open = head.find('(', open + 1);
  std::string_view name = trimmed(std::string_view(head).substr(0, open));
  if (name.find("operator") == std::string_view::npos)
    name = name.substr(name.find_last_of(" *&\n") + 1);
  const bool is_macro =
      name.size() > 1 && std::none_of(name.begin(), name.end(), [](char c) { return c >= 'a'; });
  if (!is_macro || open == std::string::npos) return std::string(name);
  return head.substr(0, behind_closing(head, open, '(', ')'));
}

/// One pass over the code of a file, preprocessor lines left out. `head_` gathers what stands
/// before an opening brace.
class Finder {
 public:
  explicit Finder(std::string text) : text_(std::move(text)) {
    while (at_ < text_.size()) step();
  }

  std::vector<Function> take() { return std::move(functions_); }

 private:
  void step() {
    const char c = text_[at_];
    if (c == '(') ++parens_;
    if (c == ')' && parens_ > 0) --parens_;
    if (c == '{') return open_brace();
    if (c == '}' || (c == ';' && parens_ == 0)) return clear_head();
    const std::string_view so_far = trimmed(head_);
    if (c == ':' && (so_far == "public" || so_far == "private" || so_far == "protected"))
      return clear_head();
    append(c);
  }

  void append(char c) {
    if (head_.empty() && std::isspace(static_cast<unsigned char>(c)) == 0) head_line_ = line_;
    if (!head_.empty() || std::isspace(static_cast<unsigned char>(c)) == 0) head_ += c;
    advance(at_ + 1);
  }

  void clear_head() {
    head_.clear();
    parens_ = 0;
    advance(at_ + 1);
  }

  void open_brace() {
    const Opens opens = parens_ > 0 || head_.empty() ? Opens::initialiser : classify(head_);
    if (opens == Opens::scope) return clear_head();
    const size_t end = behind_closing(text_, at_, '{', '}');
    advance(end);
    if (opens == Opens::function) {
      functions_.push_back({name_of(head_), head_line_, line_ - head_line_ + 1});
      head_.clear();
    } else {
      head_ += "{}";
    }
  }

  void advance(size_t to) {
    line_ += static_cast<size_t>(std::count(text_.begin() + static_cast<ptrdiff_t>(at_),
                                            text_.begin() + static_cast<ptrdiff_t>(to), '\n'));
    at_ = to;
  }

  std::string text_;
  size_t at_ = 0;
  size_t line_ = 1;
  size_t parens_ = 0;
  std::string head_;
  size_t head_line_ = 1;
  std::vector<Function> functions_;
};

}  // namespace

std::vector<Function> find_functions(const SourceFile& file) {
  std::string text;
  bool in_directive = false;
  for (const std::string& line : file.code) {
    in_directive = in_directive || trimmed(line).starts_with("#");
    if (!in_directive) text += line;
    in_directive = in_directive && line.ends_with('\\');
    text += '\n';
  }
  return Finder(std::move(text)).take();
}

}  // namespace sluice::tidy
