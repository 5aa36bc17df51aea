#include "jinja/parser.h"

#include <algorithm>
#include <array>

#include "jinja/expression_parser.h"

namespace sluice::jinja {
namespace {

using Kind = StatementKind;
using Names = std::initializer_list<std::string_view>;

class Parser : private ExpressionParser {
 public:
  Parser(std::span<const Token> tokens, Syntax& syntax)
      : ExpressionParser(tokens, syntax), syntax_(syntax) {}

  Status run() {
    syntax_.body = parse_body({});
    if (error()) return *error();
    return {};
  }

 private:
  const Statement* add(Statement statement) {
    return &syntax_.statements.emplace_back(std::move(statement));
  }

  /// Statements up to a block that starts with one of `ends`, whose name is then current; without
  /// `ends`, up to the end of the template.
  Body parse_body(Names ends) {
    const Depth depth(*this);
    Body body;
    while (current().kind != TokenKind::end) {
      const size_t line = current().line;
      if (current().kind == TokenKind::data) {
        body.push_back(
            add({.kind = Kind::data, .line = line, .literal = Text(next().text, Origin::written)}));
      } else if (current().kind == TokenKind::print_begin) {
        next();
        body.push_back(add({.kind = Kind::print, .line = line, .expression = parse_tuple()}));
        expect(TokenKind::print_end, "}}");
      } else {
        expect(TokenKind::block_begin, "a block");
        if (std::ranges::any_of(ends, [&](auto end) { return at_name(end); })) return body;
        parse_block(line, body);
      }
    }
    if (ends.size() != 0)
      fail(fmt::format("a block without its {}", ends.begin()[ends.size() - 1]));
    return body;
  }

  void end_block() { expect(TokenKind::block_end, "%}"); }

  /// "%}", the body, then the block that ends it, whose name is the only one that may.
  Body parse_rest(std::string_view end) {
    end_block();
    Body body = parse_body({end});
    next();
    if (end == "endmacro" && current().kind == TokenKind::name) next();
    end_block();
    return body;
  }

  /// Behind "{%".
  void parse_block(size_t line, Body& body) {
    const std::string name = expect_name();
    Statement statement{.kind = Kind::plain, .line = line};
    using Parse = void (Parser::*)(Statement&);
    struct Row {
      std::string_view name;
      Parse parse;
    };
    static constexpr Row kRows[] = {
        {"for", &Parser::parse_for},         {"if", &Parser::parse_if},
        {"set", &Parser::parse_set},         {"macro", &Parser::parse_macro},
        {"call", &Parser::parse_call_block}, {"filter", &Parser::parse_filter_block},
        {"with", &Parser::parse_with},       {"generation", &Parser::parse_generation},
        {"break", &Parser::parse_break},     {"continue", &Parser::parse_continue},
    };
    const auto* row = std::ranges::find(kRows, name, &Row::name);
    if (row == std::end(kRows)) return fail(fmt::format("{{% {} %}} is not supported here", name));
    (this->*row->parse)(statement);
    body.push_back(add(std::move(statement)));
  }

  void parse_break(Statement& statement) {
    if (loop_depth_ == 0) fail("break outside of a loop");
    statement.kind = Kind::loop_break;
    end_block();
  }

  void parse_continue(Statement& statement) {
    if (loop_depth_ == 0) fail("continue outside of a loop");
    statement.kind = Kind::loop_continue;
    end_block();
  }

  void parse_for(Statement& statement) {
    statement.kind = Kind::loop;
    statement.target = parse_target();
    if (!skip_name("in")) fail("'in' expected after the names of a for");
    statement.expression = parse_tuple(Condition::left_over);
    if (skip_name("if")) statement.condition = parse_expression();
    if (at_name("recursive")) fail("recursive loops are not supported; use a macro");
    end_block();
    ++loop_depth_;
    statement.body = parse_body({"else", "endfor"});
    --loop_depth_;
    if (next().text == "else") {
      end_block();
      statement.otherwise = parse_body({"endfor"});
      next();
    }
    end_block();
  }

  void parse_if(Statement& statement) {
    statement.kind = Kind::branch;
    std::string_view word = "if";
    while (word != "endif") {
      const Expression* condition = word == "else" ? nullptr : parse_tuple();
      end_block();
      Body body = word == "else" ? parse_body({"endif"}) : parse_body({"elif", "else", "endif"});
      if (condition == nullptr)
        statement.otherwise = std::move(body);
      else
        statement.branches.emplace_back(condition, std::move(body));
      if (error()) return;
      word = next().text;
    }
    end_block();
  }

  Target parse_target() {
    Target target;
    const bool parenthesis = skip_sign("(");
    target.names.push_back(expect_name());
    if (skip_sign(".")) target.attribute = expect_name();
    while (target.attribute.empty() && skip_sign(",")) {
      target.is_tuple = true;
      if (at_name("in") || at_sign("=") || at_sign(")")) break;
      target.names.push_back(expect_name());
    }
    if (parenthesis) expect_sign(")");
    return target;
  }

  void parse_set(Statement& statement) {
    statement.target = parse_target();
    if (skip_sign("=")) {
      statement.kind = Kind::assign;
      statement.expression = parse_tuple();
      return end_block();
    }
    statement.kind = Kind::assign_block;
    if (at_sign("|")) statement.expression = parse_filters(nullptr, true);
    statement.body = parse_rest("endset");
  }

  std::vector<Parameter> parse_parameters() {
    std::vector<Parameter> parameters;
    expect_sign("(");
    while (!error() && !at_sign(")")) {
      std::string name = expect_name();
      const Expression* fallback = skip_sign("=") ? parse_expression() : nullptr;
      if (fallback == nullptr && !parameters.empty() && parameters.back().fallback != nullptr)
        fail("a parameter without default behind one with a default");
      parameters.push_back({std::move(name), fallback});
      if (!skip_sign(",")) break;
    }
    expect_sign(")");
    return parameters;
  }

  /// The body of a macro, which no break or continue inside may leave.
  void parse_macro_body(std::string_view end, Statement& statement) {
    const int outer_loops = std::exchange(loop_depth_, 0);
    const size_t first = syntax_.expressions.size();
    statement.body = parse_rest(end);
    loop_depth_ = outer_loops;
    for (size_t i = first; i < syntax_.expressions.size(); ++i) {
      const Expression& expression = syntax_.expressions[i];
      if (expression.kind != ExpressionKind::name) continue;
      statement.uses_varargs |= expression.text == "varargs";
      statement.uses_kwargs |= expression.text == "kwargs";
    }
  }

  void parse_macro(Statement& statement) {
    statement.kind = Kind::macro;
    statement.target.names.push_back(expect_name());
    statement.parameters = parse_parameters();
    parse_macro_body("endmacro", statement);
  }

  void parse_call_block(Statement& statement) {
    statement.kind = Kind::call_block;
    if (at_sign("(")) statement.parameters = parse_parameters();
    statement.expression = parse_expression();
    if (!error() && statement.expression->kind != ExpressionKind::call)
      fail("a call block needs a call");
    parse_macro_body("endcall", statement);
  }

  void parse_filter_block(Statement& statement) {
    statement.kind = Kind::filter_block;
    statement.expression = parse_filters(nullptr, false);
    statement.body = parse_rest("endfilter");
  }

  void parse_with(Statement& statement) {
    statement.kind = Kind::scope;
    while (!error() && current().kind != TokenKind::block_end) {
      Statement assign{.kind = Kind::assign, .line = statement.line, .target = parse_target()};
      expect_sign("=");
      assign.expression = parse_expression();
      statement.body.push_back(add(std::move(assign)));
      if (!skip_sign(",")) break;
    }
    const Body body = parse_rest("endwith");
    statement.body.insert(statement.body.end(), body.begin(), body.end());
  }

  /// Marks what a model wrote, for training; renders as if it were not there.
  void parse_generation(Statement& statement) { statement.body = parse_rest("endgeneration"); }

  Syntax& syntax_;
  int loop_depth_ = 0;
};

}  // namespace

Result<Syntax> parse(std::string_view source) {
  auto tokens = cut_tokens(source);
  if (!tokens) return tokens.error();
  Syntax syntax;
  if (const Status parsed = Parser(*tokens, syntax).run(); !parsed) return parsed.error();
  return syntax;
}

}  // namespace sluice::jinja
