// Walks a syntax tree and writes what it says: statements in statements.cc, expressions in
// expressions.cc, calls in calls.cc. Lives for one rendering, on one thread; the tree and the
// variables outlive it.
#pragma once

#include <deque>
#include <map>
#include <string>

#include "jinja/function.h"
#include "jinja/operations.h"
#include "jinja/scope.h"
#include "jinja/template.h"

namespace sluice::jinja {

class Evaluator {
 public:
  Evaluator(Run& run, const Variables& variables);

  /// What the body writes.
  Text render(const Body& body);

 private:
  /// How a body ended.
  enum class Flow : uint8_t { normal, broken, continued };
  Flow execute(const Body& body);
  Flow execute(const Statement& statement);
  Flow execute_branch(const Statement& statement);
  Flow execute_loop(const Statement& statement);
  Flow execute_pass(const Statement& statement, const std::shared_ptr<Loop>& loop);
  void execute_call_block(const Statement& statement);
  std::vector<Value> loop_items(const Statement& statement);
  Flow in_new_scope(const Body& body);
  void assign(const Target& target, Value value);
  /// What the body writes, kept from the output.
  Text captured(const Body& body);
  Value filtered(const Expression* filters, Text text);
  void define_macro(const Statement& statement);
  void write(const Text& text);

  Value evaluate(const Expression& expression);
  Value evaluate_part(const Expression& expression, size_t index);
  Value evaluate_name(const Expression& expression);
  Value evaluate_list(const Expression& expression, bool is_tuple);
  Value evaluate_dict(const Expression& expression);
  Value evaluate_attribute(const Expression& expression);
  Value evaluate_slice(const Expression& expression);
  Value evaluate_comparison(const Expression& expression);
  Value evaluate_join(const Expression& expression);
  Value evaluate_condition(const Expression& expression);
  Value evaluate_operator(const Expression& expression);

  Arguments evaluate_arguments(const Expression& expression);
  Value evaluate_call(const Expression& expression, const Function* caller);
  Value evaluate_filter(const Expression& expression);
  bool evaluate_test(const Expression& expression);
  Value call_method(const Value& receiver, std::string_view name, Arguments arguments);
  Value call_macro(const Function& macro, Arguments arguments, const Function* caller);
  bool bind_parameters(const Function& macro, Arguments& arguments);
  bool bind_rest(const Function& macro, Arguments& arguments);

  Run& run_;
  Scopes scopes_;
  Scope* scope_;
  std::deque<Function> macros_;
  Text* output_ = nullptr;
  /// What {% set x | filter %} and {% filter x %} filter.
  Value filter_subject_;
};

}  // namespace sluice::jinja
