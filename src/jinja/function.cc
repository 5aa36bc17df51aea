#include "jinja/function.h"

#include <algorithm>

#include "jinja/operations.h"
#include "jinja/python_text.h"

namespace sluice::jinja {

constinit const Function kMethod{.name = "method"};

std::optional<Value> Call::take(std::string_view name) {
  if (next_ < arguments_.by_place.size()) return arguments_.by_place[next_++];
  return take_named(name);
}

std::optional<Value> Call::take_named(std::string_view name) {
  auto& by_name = arguments_.by_name;
  const auto given = std::ranges::find(by_name, name, &std::pair<std::string_view, Value>::first);
  if (given == by_name.end()) return {};
  const Value value = given->second;
  by_name.erase(given);
  return value;
}

Value Call::take(std::string_view name, Value fallback) {
  auto given = take(name);
  return given ? *std::move(given) : std::move(fallback);
}

Value Call::take_required(std::string_view name) {
  auto given = take(name);
  if (!given) return run.fail("{} needs the argument '{}'", name_, name);
  return *std::move(given);
}

Text Call::take_text(std::string_view name, std::string_view fallback) {
  const auto given = take(name);
  if (!given) return {fallback, Origin::written};
  if (const Text* text = given->text()) return *text;
  run.fail("{}: the argument '{}' must be a text, not {}", name_, name, given->kind_name());
  return {};
}

int64_t Call::take_integer(std::string_view name, int64_t fallback) {
  const auto given = take(name);
  if (!given) return fallback;
  if (given->is_whole()) return given->integer();
  run.fail("{}: the argument '{}' must be an integer, not {}", name_, name, given->kind_name());
  return fallback;
}

bool Call::take_bool(std::string_view name, bool fallback) {
  const auto given = take(name);
  return given ? given->truthy() : fallback;
}

Arguments Call::take_rest() {
  Arguments rest;
  rest.by_place.assign(arguments_.by_place.begin() + static_cast<ptrdiff_t>(next_),
                       arguments_.by_place.end());
  rest.by_name = std::move(arguments_.by_name);
  arguments_ = {};
  next_ = 0;
  return rest;
}

const Text& Call::subject_text() {
  static const Text kEmpty;
  if (const Text* text = subject.text()) return *text;
  if (subject.is_undefined())
    run.fail_undefined(subject);
  else
    run.fail("{} needs a text, not {}", name_, subject.kind_name());
  return kEmpty;
}

std::vector<Value> Call::subject_items() {
  return iterate(run, subject);
}

void Call::finish() {
  if (next_ < arguments_.by_place.size())
    run.fail("{} takes {} arguments, not {}", name_, next_, arguments_.by_place.size());
  if (!arguments_.by_name.empty())
    run.fail("{} takes no argument '{}'", name_, arguments_.by_name[0].first);
}

Value apply_filter(Run& run, std::string_view name, Value subject, Arguments arguments) {
  const Run::Depth depth(run);
  if (!depth.ok() || !run.charge()) return {};
  const Apply apply = find_filter(name);
  if (apply == nullptr) return run.fail("there is no filter '{}'", name);
  Call call(run, name, std::move(subject), std::move(arguments));
  Value result = apply(call);
  call.finish();
  return result;
}

bool apply_test(Run& run, std::string_view name, Value subject, Arguments arguments) {
  if (!run.charge()) return false;
  const Apply apply = find_test(name);
  if (apply == nullptr) {
    run.fail("there is no test '{}'", name);
    return false;
  }
  Call call(run, name, std::move(subject), std::move(arguments));
  const bool holds = apply(call).truthy();
  call.finish();
  return holds;
}

}  // namespace sluice::jinja
