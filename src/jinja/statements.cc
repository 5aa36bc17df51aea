#include "jinja/evaluator.h"
#include "jinja/python_text.h"

namespace sluice::jinja {

using Kind = StatementKind;

Evaluator::Evaluator(Run& run, const Variables& variables)
    : run_(run), scope_(scopes_.open(nullptr)) {
  for (const auto& [name, value] : variables) scope_->set(name, value);
  scope_ = scopes_.open(scope_);
}

Text Evaluator::render(const Body& body) {
  return captured(body);
}

void Evaluator::write(const Text& text) {
  if (run_.may_make(text.size()) && run_.fits(output_->size() + text.size())) output_->append(text);
}

Text Evaluator::captured(const Body& body) {
  Text text;
  Text* outer = std::exchange(output_, &text);
  execute(body);
  output_ = outer;
  return text;
}

Evaluator::Flow Evaluator::execute(const Body& body) {
  const Run::Depth depth(run_);
  if (!depth.ok()) return Flow::normal;
  for (const Statement* statement : body) {
    const Flow flow = execute(*statement);
    if (run_.failed() || flow != Flow::normal) return flow;
  }
  return Flow::normal;
}

Evaluator::Flow Evaluator::execute(const Statement& statement) {
  run_.set_line(statement.line);
  if (!run_.charge()) return Flow::normal;
  switch (statement.kind) {
    case Kind::data:
      write(statement.literal);
      break;
    case Kind::print:
      write(to_text(run_, evaluate(*statement.expression)));
      break;
    case Kind::loop:
      return execute_loop(statement);
    case Kind::branch:
      return execute_branch(statement);
    case Kind::assign:
      assign(statement.target, evaluate(*statement.expression));
      break;
    case Kind::assign_block:
      assign(statement.target, filtered(statement.expression, captured(statement.body)));
      break;
    case Kind::macro:
      define_macro(statement);
      break;
    case Kind::call_block:
      execute_call_block(statement);
      break;
    case Kind::filter_block:
      write(to_text(run_, filtered(statement.expression, captured(statement.body))));
      break;
    case Kind::scope:
      return in_new_scope(statement.body);
    case Kind::plain:
      return execute(statement.body);
    case Kind::loop_break:
      return Flow::broken;
    case Kind::loop_continue:
      return Flow::continued;
  }
  return Flow::normal;
}

Evaluator::Flow Evaluator::execute_branch(const Statement& statement) {
  for (const auto& [condition, body] : statement.branches) {
    const bool holds = evaluate(*condition).truthy();
    if (run_.failed()) return Flow::normal;
    if (holds) return execute(body);
  }
  return execute(statement.otherwise);
}

Evaluator::Flow Evaluator::in_new_scope(const Body& body) {
  Scope* outer = scope_;
  scope_ = scopes_.open(outer);
  const Flow flow = execute(body);
  scopes_.close(std::exchange(scope_, outer));
  return flow;
}

Evaluator::Flow Evaluator::execute_loop(const Statement& statement) {
  const Value over = run_.list(loop_items(statement));
  if (run_.failed()) return Flow::normal;
  const auto loop = std::make_shared<Loop>();
  loop->over = over.shared_list();
  const size_t count = loop->over->items.size();
  for (; loop->index < count && !run_.failed(); ++loop->index)
    if (execute_pass(statement, loop) == Flow::broken) return Flow::normal;
  return count == 0 ? execute(statement.otherwise) : Flow::normal;
}

/// One pass has names of its own; those of the pass before it are gone.
Evaluator::Flow Evaluator::execute_pass(const Statement& statement,
                                        const std::shared_ptr<Loop>& loop) {
  Scope* outer = scope_;
  scope_ = scopes_.open(outer);
  scope_->set("loop", std::shared_ptr<const Loop>(loop));
  assign(statement.target, loop->over->items[loop->index]);
  const Flow flow = execute(statement.body);
  scopes_.close(std::exchange(scope_, outer));
  return flow;
}

/// What a loop runs over, without those that its condition refuses.
std::vector<Value> Evaluator::loop_items(const Statement& statement) {
  std::vector<Value> items = iterate(run_, evaluate(*statement.expression));
  if (statement.condition == nullptr || run_.failed()) return items;
  std::vector<Value> chosen;
  Scope* outer = scope_;
  for (Value& item : items) {
    scope_ = scopes_.open(outer);
    assign(statement.target, item);
    const bool holds = evaluate(*statement.condition).truthy();
    scopes_.close(std::exchange(scope_, outer));
    if (run_.failed()) return {};
    if (holds) chosen.push_back(std::move(item));
  }
  return chosen;
}

void Evaluator::assign(const Target& target, Value value) {
  if (run_.failed()) return;
  if (!target.attribute.empty()) {
    const Value* space = scope_->find(target.names[0]);
    if (space == nullptr || space->space() == nullptr)
      run_.fail("'{}' is no namespace; only attributes of namespaces can be set", target.names[0]);
    else
      space->space()->attributes[target.attribute] = std::move(value);
    return;
  }
  if (!target.is_tuple) return scope_->set(target.names[0], std::move(value));
  std::vector<Value> items = iterate(run_, value);
  if (run_.failed()) return;
  if (items.size() != target.names.size()) {
    run_.fail("{} values for {} names", items.size(), target.names.size());
    return;
  }
  for (size_t i = 0; i < items.size(); ++i) scope_->set(target.names[i], std::move(items[i]));
}

Value Evaluator::filtered(const Expression* filters, Text text) {
  Value subject = run_.text(std::move(text));
  if (filters == nullptr) return subject;
  Value outer = std::exchange(filter_subject_, std::move(subject));
  Value result = evaluate(*filters);
  filter_subject_ = std::move(outer);
  return result;
}

void Evaluator::define_macro(const Statement& statement) {
  scope_->keep();
  macros_.push_back({.name = statement.target.names[0], .macro = &statement, .scope = scope_});
  scope_->set(statement.target.names[0], &macros_.back());
}

void Evaluator::execute_call_block(const Statement& statement) {
  scope_->keep();
  macros_.push_back({.name = "caller", .macro = &statement, .scope = scope_});
  write(to_text(run_, evaluate_call(*statement.expression, &macros_.back())));
}

}  // namespace sluice::jinja
