#include "jinja/lexer.h"

#include <algorithm>
#include <array>

#include "jinja/characters.h"
#include "jinja/literals.h"

namespace sluice::jinja {
namespace {

bool is_digit(char c) {
  return '0' <= c && c <= '9';
}

/// Letters beyond ASCII are taken on trust.
bool starts_name(char c) {
  return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}

/// One kind of newline, and none at the very end.
std::string normal_newlines(std::string_view source) {
  std::string normal;
  for (size_t i = 0; i < source.size(); ++i) {
    const bool pair = source[i] == '\r' && source.substr(i + 1).starts_with('\n');
    if (!pair) normal += source[i] == '\r' ? '\n' : source[i];
  }
  if (normal.ends_with('\n')) normal.pop_back();
  return normal;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  Result<std::vector<Token>> run() {
    while (at_ < source_.size() && !error_) cut_data();
    if (error_) return *error_;
    add(TokenKind::end, {});
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return source_.substr(at_); }

  void add(TokenKind kind, std::string_view text) {
    tokens_.push_back({kind, std::string(text), line_});
  }

  /// Moves on, counting lines.
  void advance(size_t count) {
    line_ += static_cast<size_t>(std::ranges::count(rest().substr(0, count), '\n'));
    if (count != 0) line_starts_ = source_[at_ + count - 1] == '\n';
    at_ += count;
  }

  void fail(std::string_view what) {
    if (!error_) error_ = make_error(ErrorKind::unsupported, "template, line {}: {}", line_, what);
  }

  /// Where the next {{, {% or {# starts; the end without one.
  size_t find_tag() const {
    for (size_t at = source_.find('{', at_); at < source_.size(); at = source_.find('{', at + 1)) {
      const char next = at + 1 < source_.size() ? source_[at + 1] : ' ';
      if (next == '{' || next == '%' || next == '#') return at;
    }
    return source_.size();
  }

  /// The text before a tag without what the tag takes away: all white space on its right after a
  /// minus, the indentation before a block or comment otherwise. `tag` starts with the tag.
  std::string_view stripped(std::string_view text, std::string_view tag) const {
    const char sign = tag.size() > 2 ? tag[2] : ' ';
    if (sign == '-') return text.substr(0, white_end_begin(text));
    if (sign == '+' || tag.starts_with("{{")) return text;
    const size_t newline = text.rfind('\n');
    if (newline == std::string_view::npos && !line_starts_) return text;
    const size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
    return white_begin_end(text.substr(begin)) == text.size() - begin ? text.substr(0, begin)
                                                                      : text;
  }

  void cut_data() {
    const size_t tag = find_tag();
    const std::string_view text = rest().substr(0, tag - at_);
    const std::string_view kept =
        tag == source_.size() ? text : stripped(text, source_.substr(tag));
    if (!kept.empty()) add(TokenKind::data, kept);
    advance(text.size());
    if (at_ == source_.size()) return;
    const char kind = source_[at_ + 1];
    if (kind == '#') return skip_comment();
    if (kind == '%' && cut_raw()) return;
    cut_tag(kind == '{');
  }

  /// What follows the end of a tag and goes with it: after a minus all white space, after a block
  /// or comment one newline, which a plus keeps. REQUIRES: the end of the tag is at at_ + before.
  void finish_tag(std::string_view end, bool trims_newline) {
    const char sign = rest()[0];
    advance(end.size() + (sign == '-' || sign == '+' ? 1 : 0));
    if (sign == '-')
      advance(white_begin_end(rest()));
    else if (sign != '+' && trims_newline && rest().starts_with('\n'))
      advance(1);
  }

  void skip_comment() {
    size_t end = source_.find("#}", at_ + 2);
    if (end == std::string_view::npos) {
      fail("a comment without #}");
      return;
    }
    if (end > at_ + 2 && (source_[end - 1] == '-' || source_[end - 1] == '+')) --end;
    advance(end - at_);
    finish_tag("#}", true);
  }

  /// The length of "{% word %}" at `at` up to its end, which is left for finish_tag; 0: none.
  size_t word_tag(size_t at, std::string_view word) const {
    std::string_view tag = source_.substr(at);
    if (!tag.starts_with("{%")) return 0;
    tag.remove_prefix(tag.size() > 2 && (tag[2] == '-' || tag[2] == '+') ? 3 : 2);
    tag.remove_prefix(white_begin_end(tag));
    if (!tag.starts_with(word)) return 0;
    tag.remove_prefix(word.size());
    tag.remove_prefix(white_begin_end(tag));
    const bool ends = tag.starts_with("%}") || tag.starts_with("-%}") || tag.starts_with("+%}");
    return ends ? source_.size() - at - tag.size() : 0;
  }

  /// {% raw %}: everything up to {% endraw %} is text.
  bool cut_raw() {
    const size_t head = word_tag(at_, "raw");
    if (head == 0) return false;
    advance(head);
    finish_tag("%}", false);
    for (size_t at = source_.find("{%", at_); at < source_.size();
         at = source_.find("{%", at + 2)) {
      const size_t tail = word_tag(at, "endraw");
      if (tail == 0) continue;
      const std::string_view text = rest().substr(0, at - at_);
      add(TokenKind::data, stripped(text, source_.substr(at)));
      advance(text.size() + tail);
      finish_tag("%}", true);
      return true;
    }
    fail("{% raw %} without {% endraw %}");
    return true;
  }

  void cut_tag(bool prints) {
    const std::string_view end = prints ? "}}" : "%}";
    add(prints ? TokenKind::print_begin : TokenKind::block_begin, {});
    const bool signed_tag = rest().size() > 2 && (rest()[2] == '-' || rest()[2] == '+');
    advance(signed_tag ? 3 : 2);
    int open_count = 0;  // brackets: inside of them }} is two brackets
    while (!error_) {
      advance(white_begin_end(rest()));
      if (rest().empty()) return fail("a tag without its end");
      const bool ends = rest().starts_with(end) ||
                        (rest()[0] == '-' && rest().substr(1).starts_with(end)) ||
                        (!prints && rest()[0] == '+' && rest().substr(1).starts_with(end));
      if (ends && open_count == 0) break;
      cut_token(open_count);
    }
    if (error_) return;
    add(prints ? TokenKind::print_end : TokenKind::block_end, {});
    finish_tag(end, !prints);
  }

  void cut_token(int& open_count) {
    const char c = rest()[0];
    if (starts_name(c))
      return cut_run(TokenKind::name, [](char n) { return starts_name(n) || is_digit(n); });
    if (is_digit(c)) return cut_number();
    if (c == '"' || c == '\'') return cut_text(c);
    constexpr std::array<std::string_view, 8> kPairs = {"==", "!=", ">=", "<=", "//", "**"};
    for (const std::string_view pair : kPairs)
      if (!pair.empty() && rest().starts_with(pair)) return cut_sign(2);
    constexpr std::string_view kSigns = "+-/*%~[](){}<>=.:|,";
    if (kSigns.find(c) == std::string_view::npos)
      return fail(fmt::format("'{}' is no part of an expression", c));
    open_count += c == '(' || c == '[' || c == '{' ? 1 : 0;
    if (c == ')' || c == ']' || c == '}') --open_count;
    if (open_count < 0) return fail(fmt::format("'{}' closes nothing", c));
    cut_sign(1);
  }

  template <typename Belongs>
  void cut_run(TokenKind kind, const Belongs& belongs) {
    const std::string_view run(rest().begin(), std::ranges::find_if_not(rest(), belongs));
    add(kind, run);
    advance(run.size());
  }

  void cut_sign(size_t size) {
    add(TokenKind::sign, rest().substr(0, size));
    advance(size);
  }

  void cut_number() {
    const NumberShape shape = number_shape(rest());
    std::string digits(rest().substr(0, shape.size));
    std::erase(digits, '_');
    add(shape.is_real ? TokenKind::real : TokenKind::integer, digits);
    advance(shape.size);
  }

  void cut_text(char quote) {
    size_t end = 1;
    while (end < rest().size() && rest()[end] != quote) end += rest()[end] == '\\' ? 2 : 1;
    if (end >= rest().size()) return fail("a text without its closing quote");
    add(TokenKind::text, unescape(rest().substr(1, end - 1)));
    advance(end + 1);
  }

  std::string_view source_;
  size_t at_ = 0;
  size_t line_ = 1;
  bool line_starts_ = true;  ///< what was cut last ended a line
  std::vector<Token> tokens_;
  std::optional<Error> error_;
};

}  // namespace

Result<std::vector<Token>> cut_tokens(std::string_view source) {
  const std::string normal = normal_newlines(source);
  return Lexer(normal).run();
}

}  // namespace sluice::jinja
