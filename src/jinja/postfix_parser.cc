// What follows a value in an expression: attributes, subscripts, calls, filters and tests.
#include "jinja/expression_parser.h"
#include "jinja/literals.h"

namespace sluice::jinja {

using Kind = ExpressionKind;

const Expression* ExpressionParser::parse_postfix(const Expression* subject) {
  while (!error_) {
    if (skip_sign("."))
      subject = parse_attribute(subject);
    else if (skip_sign("["))
      subject = parse_subscript(subject);
    else if (at_sign("("))
      subject = parse_call(subject);
    else
      break;
  }
  return subject;
}

const Expression* ExpressionParser::parse_attribute(const Expression* subject) {
  if (current().kind == TokenKind::integer) return add(Kind::item, {subject, parse_number()});
  return add(Expression{.kind = Kind::attribute, .text = expect_name(), .parts = {subject}});
}

const Expression* ExpressionParser::parse_subscript(const Expression* subject) {
  std::vector<const Expression*> parts = {subject};
  parts.push_back(at_sign(":") ? nullptr : parse_tuple());
  while (parts.size() < 4 && skip_sign(":"))
    parts.push_back(at_sign(":") || at_sign("]") ? nullptr : parse_expression());
  expect_sign("]");
  if (parts.size() == 2) return add(Kind::item, std::move(parts));
  parts.resize(4, nullptr);
  return add(Kind::slice, std::move(parts));
}

const Expression* ExpressionParser::parse_filtered(const Expression* subject) {
  while (!error_) {
    if (at_sign("|"))
      subject = parse_filters(subject, true);
    else if (skip_name("is"))
      subject = parse_test(subject);
    else if (at_sign("("))  // what a filter or test gave may be called
      subject = parse_call(subject);
    else
      break;
  }
  return subject;
}

const Expression* ExpressionParser::parse_filters(const Expression* subject, bool bar_is_first) {
  if (!bar_is_first) subject = parse_filter(subject);
  while (skip_sign("|")) subject = parse_filter(subject);
  return subject;
}

const Expression* ExpressionParser::parse_filter(const Expression* subject) {
  Expression filter{.kind = Kind::filter, .text = parse_dotted_name(), .parts = {subject}};
  if (skip_sign("(")) filter.arguments = parse_arguments();
  return add(std::move(filter));
}

/// `x is divisibleby 3` does without parentheses.
bool ExpressionParser::starts_test_argument() const {
  switch (current().kind) {
    case TokenKind::name:
      return !at_name("else") && !at_name("or") && !at_name("and") && !at_name("if") &&
             !at_name("is") && !at_name("in") && !at_name("not");
    case TokenKind::text:
    case TokenKind::integer:
    case TokenKind::real:
      return true;
    default:
      return at_sign("[") || at_sign("{");
  }
}

const Expression* ExpressionParser::parse_test(const Expression* subject) {
  const bool negated = skip_name("not");
  Expression test{.kind = Kind::test, .text = parse_dotted_name(), .parts = {subject}};
  if (skip_sign("("))
    test.arguments = parse_arguments();
  else if (starts_test_argument())
    test.arguments.push_back({{}, parse_postfix(parse_primary())});
  const Expression* node = add(std::move(test));
  return negated ? add(Kind::logical_not, {node}) : node;
}

const Expression* ExpressionParser::parse_call(const Expression* subject) {
  expect_sign("(");
  Expression call{.kind = Kind::call, .parts = {subject}};
  call.arguments = parse_arguments();
  return add(std::move(call));
}

std::string ExpressionParser::parse_dotted_name() {
  std::string name = expect_name();
  while (skip_sign(".")) (name += '.') += expect_name();
  return name;
}

/// Behind the opening parenthesis, up to and with the closing one.
std::vector<Argument> ExpressionParser::parse_arguments() {
  std::vector<Argument> arguments;
  while (!error_ && !at_sign(")")) {
    if (at_sign("*") || at_sign("**")) fail("arguments after * or ** are not supported");
    std::string name;
    if (current().kind == TokenKind::name && ahead().kind == TokenKind::sign &&
        ahead().text == "=") {
      name = next().text;
      next();
    } else if (!arguments.empty() && !arguments.back().name.empty()) {
      fail("an argument by position behind one by name");
    }
    arguments.push_back({std::move(name), parse_expression()});
    if (!skip_sign(",")) break;
  }
  expect_sign(")");
  return arguments;
}

}  // namespace sluice::jinja
