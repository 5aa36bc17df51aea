// Calls of all kinds: methods, functions, macros, filters and tests.
#include <algorithm>

#include "jinja/evaluator.h"

namespace sluice::jinja {

using Kind = ExpressionKind;

Arguments Evaluator::evaluate_arguments(const Expression& expression) {
  Arguments arguments;
  for (const Argument& argument : expression.arguments) {
    Value value = evaluate(*argument.value);
    if (run_.failed()) break;
    if (argument.name.empty())
      arguments.by_place.push_back(std::move(value));
    else
      arguments.by_name.emplace_back(argument.name, std::move(value));
  }
  run_.set_line(expression.line);
  return arguments;
}

Value Evaluator::evaluate_call(const Expression& expression, const Function* caller) {
  const Expression& callee = *expression.parts[0];
  Arguments arguments;
  Value function;
  if (callee.kind == Kind::attribute) {
    const Value receiver = evaluate_part(callee, 0);
    if (!run_.failed()) function = attribute(run_, receiver, callee.text);
    if (run_.failed()) return {};
    if (function.function() == &kMethod) {
      arguments = evaluate_arguments(expression);
      return call_method(receiver, callee.text, std::move(arguments));
    }
  } else {
    function = evaluate(callee);
  }
  if (run_.failed()) return {};
  const Function* called = function.function();
  if (called == nullptr && function.is_undefined()) return run_.fail_undefined(function);
  if (called == nullptr || called == &kMethod)
    return run_.fail("{} cannot be called", function.kind_name());
  arguments = evaluate_arguments(expression);
  if (run_.failed()) return {};
  if (called->macro != nullptr) return call_macro(*called, std::move(arguments), caller);
  Call call(run_, called->name, {}, std::move(arguments));
  Value result = called->builtin(call);
  call.finish();
  return result;
}

Value Evaluator::call_method(const Value& receiver, std::string_view name, Arguments arguments) {
  if (!run_.charge()) return {};
  Call call(run_, name, receiver, std::move(arguments));
  Value result = find_method(receiver, name)(call);
  call.finish();
  return result;
}

Value Evaluator::call_macro(const Function& macro, Arguments arguments, const Function* caller) {
  const Run::Depth depth(run_);
  if (!depth.ok()) return {};
  Scope* outer = scope_;
  scope_ = scopes_.open(macro.scope);
  if (caller != nullptr) scope_->set("caller", caller);
  Text text;
  if (bind_parameters(macro, arguments)) text = captured(macro.macro->body);
  scopes_.close(std::exchange(scope_, outer));
  return run_.text(std::move(text));
}

/// Gives each parameter its argument, or its default, which may use the parameters before it.
bool Evaluator::bind_parameters(const Function& macro, Arguments& arguments) {
  auto& by_place = arguments.by_place;
  auto& by_name = arguments.by_name;
  size_t used = 0;
  for (const Parameter& parameter : macro.macro->parameters) {
    const auto named =
        std::ranges::find_if(by_name, [&](const auto& a) { return a.first == parameter.name; });
    Value value = Value::missing(fmt::format("the parameter '{}'", parameter.name));
    if (used < by_place.size()) {
      value = std::move(by_place[used++]);
    } else if (named != by_name.end()) {
      value = std::move(named->second);
      by_name.erase(named);
    } else if (parameter.fallback != nullptr) {
      value = evaluate(*parameter.fallback);
    }
    if (run_.failed()) return false;
    scope_->set(parameter.name, std::move(value));
  }
  by_place.erase(by_place.begin(), by_place.begin() + static_cast<ptrdiff_t>(used));
  return bind_rest(macro, arguments);
}

/// Arguments without a parameter, which a macro sees as varargs and kwargs.
bool Evaluator::bind_rest(const Function& macro, Arguments& arguments) {
  if (!arguments.by_place.empty() && !macro.macro->uses_varargs)
    run_.fail("{} takes {} arguments, not {}", macro.name, macro.macro->parameters.size(),
              macro.macro->parameters.size() + arguments.by_place.size());
  if (!arguments.by_name.empty() && !macro.macro->uses_kwargs)
    run_.fail("{} takes no argument '{}'", macro.name, arguments.by_name[0].first);
  if (macro.macro->uses_varargs)
    scope_->set("varargs", run_.list(std::move(arguments.by_place), true));
  if (!macro.macro->uses_kwargs) return !run_.failed();
  Dict named;
  for (auto& [name, value] : arguments.by_name)
    named.set(Value(Text(name, Origin::written)), std::move(value));
  scope_->set("kwargs", run_.dict(std::move(named)));
  return !run_.failed();
}

Value Evaluator::evaluate_filter(const Expression& expression) {
  Value subject = expression.parts[0] == nullptr ? filter_subject_ : evaluate_part(expression, 0);
  Arguments arguments = evaluate_arguments(expression);
  if (run_.failed()) return {};
  return apply_filter(run_, expression.text, std::move(subject), std::move(arguments));
}

bool Evaluator::evaluate_test(const Expression& expression) {
  Value subject = evaluate_part(expression, 0);
  Arguments arguments = evaluate_arguments(expression);
  if (run_.failed()) return false;
  return apply_test(run_, expression.text, std::move(subject), std::move(arguments));
}

}  // namespace sluice::jinja
