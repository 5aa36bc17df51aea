#include "jinja/evaluator.h"
#include "jinja/python_text.h"

namespace sluice::jinja {

using Kind = ExpressionKind;

Value Evaluator::evaluate(const Expression& expression) {
  const Run::Depth depth(run_);
  if (!depth.ok() || !run_.charge()) return {};
  run_.set_line(expression.line);
  switch (expression.kind) {
    case Kind::literal:
      return expression.literal;
    case Kind::name:
      return evaluate_name(expression);
    case Kind::list:
      return evaluate_list(expression, false);
    case Kind::tuple:
      return evaluate_list(expression, true);
    case Kind::dict:
      return evaluate_dict(expression);
    case Kind::attribute:
      return evaluate_attribute(expression);
    case Kind::slice:
      return evaluate_slice(expression);
    case Kind::call:
      return evaluate_call(expression, nullptr);
    case Kind::filter:
      return evaluate_filter(expression);
    case Kind::test:
      return evaluate_test(expression);
    case Kind::comparison:
      return evaluate_comparison(expression);
    case Kind::join:
      return evaluate_join(expression);
    case Kind::condition:
      return evaluate_condition(expression);
    default:
      return evaluate_operator(expression);
  }
}

/// What has one or two parts and needs no more than a line.
Value Evaluator::evaluate_operator(const Expression& expression) {
  const Value left = evaluate(*expression.parts[0]);
  if (run_.failed()) return {};
  switch (expression.kind) {
    case Kind::logical_and:
      return left.truthy() ? evaluate_part(expression, 1) : left;
    case Kind::logical_or:
      return left.truthy() ? left : evaluate_part(expression, 1);
    case Kind::logical_not:
      return !left.truthy();
    case Kind::negate:
      return negated(run_, left);
    case Kind::identity:
      return left;
    default:
      break;
  }
  const Value right = evaluate_part(expression, 1);
  if (run_.failed()) return {};
  run_.set_line(expression.line);
  return expression.kind == Kind::item ? item(run_, left, right)
                                       : combine(run_, expression.operators[0], left, right);
}

/// None where the part was left out.
Value Evaluator::evaluate_part(const Expression& expression, size_t index) {
  const Expression* part = expression.parts[index];
  return part == nullptr ? Value(None{}) : evaluate(*part);
}

Value Evaluator::evaluate_name(const Expression& expression) {
  if (const Value* value = scope_->find(expression.text)) return *value;
  if (const Function* function = find_function(expression.text)) return function;
  return Value::missing(fmt::format("'{}'", expression.text));
}

Value Evaluator::evaluate_list(const Expression& expression, bool is_tuple) {
  std::vector<Value> items;
  for (size_t i = 0; i < expression.parts.size() && !run_.failed(); ++i)
    items.push_back(evaluate_part(expression, i));
  return run_.list(std::move(items), is_tuple);
}

Value Evaluator::evaluate_dict(const Expression& expression) {
  Dict dict;
  for (size_t i = 0; i < expression.parts.size(); i += 2) {
    const Value key = evaluate_part(expression, i);
    Value value = evaluate_part(expression, i + 1);
    if (run_.failed()) return {};
    if (!is_hashable(key)) return run_.fail("a {} cannot be a key", key.kind_name());
    dict.set(key, std::move(value));
  }
  return run_.dict(std::move(dict));
}

Value Evaluator::evaluate_attribute(const Expression& expression) {
  const Value subject = evaluate_part(expression, 0);
  return run_.failed() ? Value() : attribute(run_, subject, expression.text);
}

Value Evaluator::evaluate_slice(const Expression& expression) {
  const Value subject = evaluate_part(expression, 0);
  const SliceBounds bounds{.start = evaluate_part(expression, 1),
                           .stop = evaluate_part(expression, 2),
                           .step = evaluate_part(expression, 3)};
  return run_.failed() ? Value() : slice(run_, subject, bounds);
}

/// a < b < c is a < b and b < c, with b looked at once.
Value Evaluator::evaluate_comparison(const Expression& expression) {
  Value left = evaluate_part(expression, 0);
  for (size_t i = 0; i < expression.operators.size(); ++i) {
    Value right = evaluate_part(expression, i + 1);
    if (run_.failed()) return {};
    if (!compare(run_, expression.operators[i], left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Evaluator::evaluate_join(const Expression& expression) {
  Text joined;
  for (size_t i = 0; i < expression.parts.size(); ++i) {
    joined.append(to_text(run_, evaluate_part(expression, i)));
    if (!run_.fits(joined.size())) return {};
  }
  return run_.text(std::move(joined));
}

Value Evaluator::evaluate_condition(const Expression& expression) {
  const bool holds = evaluate_part(expression, 1).truthy();
  if (run_.failed()) return {};
  if (holds) return evaluate_part(expression, 0);
  if (expression.parts[2] == nullptr)
    return Value::missing("what an if without else gives when it does not hold");
  return evaluate_part(expression, 2);
}

}  // namespace sluice::jinja
