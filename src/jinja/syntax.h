// The syntax tree of a template. Nodes are plain structs whose children are pointers; the tree that
// owns them keeps them in two lists, so nothing recurses when it goes. Every node knows how deep it
// is, and the parser refuses what is too deep: walking the tree may recurse. Immutable once parsed;
// any thread may read it.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "jinja/value.h"

namespace sluice::jinja {

struct Expression;
struct Statement;
using Body = std::vector<const Statement*>;

enum class Operator : uint8_t {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  equal,
  unequal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in,
};

struct Argument {
  std::string name;  ///< empty: by position
  const Expression* value;
};

enum class ExpressionKind : uint8_t {
  literal,      ///< literal
  name,         ///< text
  list,         ///< parts
  tuple,        ///< parts
  dict,         ///< parts: key, value, key, value, …
  attribute,    ///< parts[0].text
  item,         ///< parts[0][parts[1]]
  slice,        ///< parts[0][parts[1]:parts[2]:parts[3]], null where left out
  call,         ///< parts[0](arguments)
  filter,       ///< parts[0]|text(arguments); parts[0] null: what a block holds
  test,         ///< parts[0] is text(arguments)
  logical_not,  ///< not parts[0]
  negate,       ///< -parts[0]
  identity,     ///< +parts[0]
  logical_and,  ///< parts[0] and parts[1]
  logical_or,   ///< parts[0] or parts[1]
  arithmetic,   ///< parts[0] operators[0] parts[1]
  comparison,   ///< parts[0] operators[0] parts[1] operators[1] parts[2] …
  join,         ///< parts[0] ~ parts[1] ~ …
  condition,    ///< parts[0] if parts[1] else parts[2], the last null where left out
};

struct Expression {
  ExpressionKind kind;
  size_t line = 0;
  uint32_t depth = 1;
  std::string text = {};
  Value literal = {};
  std::vector<const Expression*> parts = {};
  std::vector<Operator> operators = {};
  std::vector<Argument> arguments = {};
};

/// What `set` and `for` bind: names, or one attribute of a namespace.
struct Target {
  std::vector<std::string> names;
  std::string attribute;  ///< of the namespace names[0]; empty: none
  bool is_tuple = false;
};

struct Parameter {
  std::string name;
  const Expression* fallback;  ///< null: none
};

enum class StatementKind : uint8_t {
  data,          ///< literal
  print,         ///< expression
  loop,          ///< for target in expression if condition: body; else: otherwise
  branch,        ///< the first of branches whose expression holds, or otherwise
  assign,        ///< set target = expression
  assign_block,  ///< set target: body, then the filters of expression (null: none)
  macro,         ///< macro target(parameters): body
  call_block,    ///< call(parameters) expression: body
  filter_block,  ///< filter expression: body
  scope,         ///< with: body in a scope of its own, assignments first
  plain,         ///< body in the scope around it
  loop_break,
  loop_continue,
};

struct Statement {
  StatementKind kind;
  size_t line = 0;
  Text literal = {};
  Target target = {};
  const Expression* expression = nullptr;
  const Expression* condition = nullptr;
  std::vector<Parameter> parameters = {};
  bool uses_varargs = false;  ///< of a macro: the name varargs stands in it
  bool uses_kwargs = false;
  std::vector<std::pair<const Expression*, Body>> branches = {};
  Body body = {};
  Body otherwise = {};
};

struct Syntax {
  std::deque<Expression> expressions;
  std::deque<Statement> statements;
  Body body;
};

}  // namespace sluice::jinja
