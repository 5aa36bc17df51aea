#include "jinja/expression_parser.h"

#include <algorithm>

#include "jinja/literals.h"
#include "jinja/run.h"

namespace sluice::jinja {
namespace {

using Kind = ExpressionKind;

std::string shown(const Token& token) {
  switch (token.kind) {
    case TokenKind::end:
      return "the end of the template";
    case TokenKind::print_end:
      return "}}";
    case TokenKind::block_end:
      return "%}";
    default:
      return fmt::format("'{}'", token.text);
  }
}

}  // namespace

ExpressionParser::Depth::Depth(ExpressionParser& parser) : parser_(parser) {
  if (++parser.depth_ > kSyntaxDepthMax)
    parser.fail(fmt::format("nested more than {} levels deep", kSyntaxDepthMax));
}

const Token& ExpressionParser::ahead() const {
  return error_ || at_ + 1 >= tokens_.size() ? tokens_.back() : tokens_[at_ + 1];
}

const Token& ExpressionParser::next() {
  const Token& token = current();
  if (token.kind != TokenKind::end) ++at_;
  return token;
}

bool ExpressionParser::at_sign(std::string_view sign) const {
  return current().kind == TokenKind::sign && current().text == sign;
}

bool ExpressionParser::at_name(std::string_view name) const {
  return current().kind == TokenKind::name && current().text == name;
}

bool ExpressionParser::skip_sign(std::string_view sign) {
  if (!at_sign(sign)) return false;
  next();
  return true;
}

bool ExpressionParser::skip_name(std::string_view name) {
  if (!at_name(name)) return false;
  next();
  return true;
}

void ExpressionParser::expect_sign(std::string_view sign) {
  if (!skip_sign(sign)) fail(fmt::format("'{}' expected, not {}", sign, shown(current())));
}

std::string ExpressionParser::expect_name() {
  if (current().kind == TokenKind::name) return next().text;
  fail(fmt::format("a name expected, not {}", shown(current())));
  return {};
}

void ExpressionParser::expect(TokenKind kind, std::string_view what) {
  if (current().kind == kind)
    next();
  else
    fail(fmt::format("{} expected, not {}", what, shown(current())));
}

void ExpressionParser::fail(std::string_view what) {
  if (!error_)
    error_ = make_error(ErrorKind::unsupported, "template, line {}: {}", current().line, what);
}

const Expression* ExpressionParser::add(Expression expression) {
  // The line where it begins: that of its first part, or of the token that it was made from.
  const Expression* first = expression.parts.empty() ? nullptr : expression.parts[0];
  expression.line = first != nullptr ? first->line : tokens_[at_ == 0 ? 0 : at_ - 1].line;
  const auto deepen = [&](const Expression* part) {
    if (part != nullptr) expression.depth = std::max(expression.depth, part->depth + 1);
  };
  for (const Expression* part : expression.parts) deepen(part);
  for (const Argument& argument : expression.arguments) deepen(argument.value);
  if (expression.depth > kSyntaxDepthMax)
    fail(fmt::format("an expression nested more than {} levels deep", kSyntaxDepthMax));
  return &syntax_.expressions.emplace_back(std::move(expression));
}

const Expression* ExpressionParser::add(Kind kind, std::vector<const Expression*> parts) {
  return add(Expression{.kind = kind, .parts = std::move(parts)});
}

const Expression* ExpressionParser::arithmetic(Operator op, const Expression* left,
                                               const Expression* right) {
  return add(Expression{.kind = Kind::arithmetic, .parts = {left, right}, .operators = {op}});
}

const Expression* ExpressionParser::literal(Value value) {
  return add(Expression{.kind = Kind::literal, .literal = std::move(value)});
}

const Expression* ExpressionParser::parse_expression(Condition condition) {
  const Depth depth(*this);
  const Expression* left = parse_or();
  while (condition == Condition::allowed && skip_name("if")) {
    const Expression* test = parse_or();
    const Expression* otherwise = skip_name("else") ? parse_expression() : nullptr;
    left = add(Kind::condition, {left, test, otherwise});
  }
  return left;
}

const Expression* ExpressionParser::parse_tuple(Condition condition) {
  const Expression* first = parse_expression(condition);
  if (!at_sign(",")) return first;
  std::vector<const Expression*> parts = {first};
  while (skip_sign(",")) {
    const TokenKind kind = current().kind;
    if (kind == TokenKind::print_end || kind == TokenKind::block_end || at_sign(")")) break;
    parts.push_back(parse_expression(condition));
  }
  return add(Kind::tuple, std::move(parts));
}

const Expression* ExpressionParser::parse_left(Level level, std::initializer_list<Sign> signs) {
  const Expression* left = (this->*level)();
  while (true) {
    const auto* found =
        std::ranges::find_if(signs, [&](const Sign& sign) { return at_sign(sign.sign); });
    if (found == signs.end()) return left;
    next();
    left = arithmetic(found->op, left, (this->*level)());
  }
}

const Expression* ExpressionParser::parse_or() {
  const Expression* left = parse_and();
  while (skip_name("or")) left = add(Kind::logical_or, {left, parse_and()});
  return left;
}

const Expression* ExpressionParser::parse_and() {
  const Expression* left = parse_not();
  while (skip_name("and")) left = add(Kind::logical_and, {left, parse_not()});
  return left;
}

const Expression* ExpressionParser::parse_not() {
  const Depth depth(*this);
  if (skip_name("not")) return add(Kind::logical_not, {parse_not()});
  return parse_comparison();
}

std::optional<Operator> ExpressionParser::next_comparison() {
  static constexpr Sign kSigns[] = {{"==", Operator::equal},  {"!=", Operator::unequal},
                                    {"<", Operator::less},    {"<=", Operator::less_equal},
                                    {">", Operator::greater}, {">=", Operator::greater_equal}};
  for (const Sign& sign : kSigns)
    if (skip_sign(sign.sign)) return sign.op;
  if (skip_name("in")) return Operator::in;
  if (!at_name("not") || ahead().kind != TokenKind::name || ahead().text != "in") return {};
  next();
  next();
  return Operator::not_in;
}

const Expression* ExpressionParser::parse_comparison() {
  Expression chain{.kind = Kind::comparison};
  chain.parts.push_back(parse_sum());
  while (const auto op = next_comparison()) {
    chain.operators.push_back(*op);
    chain.parts.push_back(parse_sum());
  }
  return chain.operators.empty() ? chain.parts[0] : add(std::move(chain));
}

const Expression* ExpressionParser::parse_sum() {
  return parse_left(&ExpressionParser::parse_join,
                    {{"+", Operator::add}, {"-", Operator::subtract}});
}

const Expression* ExpressionParser::parse_join() {
  std::vector<const Expression*> parts = {parse_product()};
  while (skip_sign("~")) parts.push_back(parse_product());
  return parts.size() == 1 ? parts[0] : add(Kind::join, std::move(parts));
}

const Expression* ExpressionParser::parse_product() {
  return parse_left(&ExpressionParser::parse_power, {{"*", Operator::multiply},
                                                     {"/", Operator::divide},
                                                     {"//", Operator::floor_divide},
                                                     {"%", Operator::modulo}});
}

const Expression* ExpressionParser::parse_power() {
  return parse_left(&ExpressionParser::parse_signed, {{"**", Operator::power}});
}

const Expression* ExpressionParser::parse_signed(bool with_filters) {
  const Depth depth(*this);
  const Expression* node = nullptr;
  if (skip_sign("-"))
    node = add(Kind::negate, {parse_signed(false)});
  else if (skip_sign("+"))
    node = add(Kind::identity, {parse_signed(false)});
  else
    node = parse_primary();
  node = parse_postfix(node);
  return with_filters ? parse_filtered(node) : node;
}

const Expression* ExpressionParser::parse_primary() {
  switch (current().kind) {
    case TokenKind::name:
      return parse_name();
    case TokenKind::integer:
    case TokenKind::real:
      return parse_number();
    case TokenKind::text: {
      std::string text;
      while (current().kind == TokenKind::text) text += next().text;
      return literal(Text(text, Origin::written));
    }
    default:
      break;
  }
  if (skip_sign("(")) return parse_parentheses();
  if (skip_sign("[")) return parse_list();
  if (skip_sign("{")) return parse_dict();
  fail(fmt::format("a value expected, not {}", shown(current())));
  return literal({});
}

const Expression* ExpressionParser::parse_name() {
  const std::string name = next().text;
  if (name == "true" || name == "True") return literal(true);
  if (name == "false" || name == "False") return literal(false);
  if (name == "none" || name == "None") return literal(None{});
  return add(Expression{.kind = Kind::name, .text = name});
}

const Expression* ExpressionParser::parse_number() {
  const Token& token = next();
  if (token.kind == TokenKind::real) {
    if (const auto number = parse_real(token.text)) return literal(*number);
  } else {
    const char letter = token.text.size() > 1 ? token.text[1] : ' ';
    const int base = letter == 'x' || letter == 'X'   ? 16
                     : letter == 'o' || letter == 'O' ? 8
                     : letter == 'b' || letter == 'B' ? 2
                                                      : 10;
    if (const auto number = parse_integer(token.text, base)) return literal(*number);
  }
  fail(fmt::format("{} is too large a number", token.text));
  return literal({});
}

const Expression* ExpressionParser::parse_list() {
  std::vector<const Expression*> parts;
  while (!error_ && !at_sign("]")) {
    parts.push_back(parse_expression());
    if (!skip_sign(",")) break;
  }
  expect_sign("]");
  return add(Kind::list, std::move(parts));
}

const Expression* ExpressionParser::parse_dict() {
  std::vector<const Expression*> parts;
  while (!error_ && !at_sign("}")) {
    parts.push_back(parse_expression());
    expect_sign(":");
    parts.push_back(parse_expression());
    if (!skip_sign(",")) break;
  }
  expect_sign("}");
  return add(Kind::dict, std::move(parts));
}

const Expression* ExpressionParser::parse_parentheses() {
  if (skip_sign(")")) return add(Kind::tuple, {});
  const Expression* inside = parse_tuple();
  expect_sign(")");
  return inside;
}

}  // namespace sluice::jinja
