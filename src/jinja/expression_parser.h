// Tokens to expressions, one function for each level of precedence as Jinja orders them: condition,
// or, and, not, comparison, sum, ~, product, power, sign, and what follows a value (attributes,
// calls, filters, tests). The parser of statements builds on it. One thread, used once.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "jinja/lexer.h"
#include "jinja/syntax.h"

namespace sluice::jinja {

class ExpressionParser {
 public:
  /// `tokens` end with one of kind `end`, and outlive this object, as `syntax` does.
  ExpressionParser(std::span<const Token> tokens, Syntax& syntax)
      : tokens_(tokens), syntax_(syntax) {}

  enum class Condition : uint8_t { allowed, left_over };  ///< left over: `if` belongs to a loop

  /// Always gives a node; after an error it means nothing.
  const Expression* parse_expression(Condition condition = Condition::allowed);
  /// An expression, or several with commas: a tuple.
  const Expression* parse_tuple(Condition condition = Condition::allowed);
  /// Filters that follow, over `subject`; null where a block's text is the subject.
  const Expression* parse_filters(const Expression* subject, bool bar_is_first);

  const Token& current() const { return error_ ? tokens_.back() : tokens_[at_]; }
  const Token& ahead() const;
  const Token& next();
  bool at_sign(std::string_view sign) const;
  bool at_name(std::string_view name) const;
  bool skip_sign(std::string_view sign);
  bool skip_name(std::string_view name);
  void expect_sign(std::string_view sign);
  std::string expect_name();
  void expect(TokenKind kind, std::string_view what);

  void fail(std::string_view what);
  const std::optional<Error>& error() const { return error_; }

  /// Held by every function that may call itself.
  class Depth {
   public:
    explicit Depth(ExpressionParser& parser);
    ~Depth() { --parser_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    ExpressionParser& parser_;
  };

 private:
  const Expression* add(Expression expression);
  const Expression* add(ExpressionKind kind, std::vector<const Expression*> parts);
  const Expression* arithmetic(Operator op, const Expression* left, const Expression* right);
  const Expression* literal(Value value);

  using Level = const Expression* (ExpressionParser::*)();
  struct Sign {
    std::string_view sign;
    Operator op;
  };
  const Expression* parse_left(Level level, std::initializer_list<Sign> signs);
  const Expression* parse_or();
  const Expression* parse_and();
  const Expression* parse_not();
  const Expression* parse_comparison();
  std::optional<Operator> next_comparison();
  const Expression* parse_sum();
  const Expression* parse_join();
  const Expression* parse_product();
  const Expression* parse_power();
  const Expression* parse_signed() { return parse_signed(true); }
  const Expression* parse_signed(bool with_filters);

  const Expression* parse_primary();
  const Expression* parse_name();
  const Expression* parse_number();
  const Expression* parse_list();
  const Expression* parse_dict();
  const Expression* parse_parentheses();
  const Expression* parse_postfix(const Expression* subject);
  const Expression* parse_attribute(const Expression* subject);
  const Expression* parse_subscript(const Expression* subject);
  const Expression* parse_filtered(const Expression* subject);
  const Expression* parse_filter(const Expression* subject);
  const Expression* parse_test(const Expression* subject);
  const Expression* parse_call(const Expression* subject);
  std::string parse_dotted_name();
  std::vector<Argument> parse_arguments();
  bool starts_test_argument() const;

  std::span<const Token> tokens_;
  Syntax& syntax_;
  size_t at_ = 0;
  uint32_t depth_ = 0;
  std::optional<Error> error_;
};

}  // namespace sluice::jinja
