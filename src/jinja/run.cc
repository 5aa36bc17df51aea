#include "jinja/run.h"

#include <algorithm>

namespace sluice::jinja {

Value Run::fail_with(std::string message) {
  std::ranges::replace(message, '\n', ' ');
  if (!error_) error_ = make_error(ErrorKind::usage, "template, line {}: {}", line_, message);
  return {};
}

bool Run::charge(size_t bytes) {
  if (failed()) return false;
  steps_ += 1 + bytes / 64;
  if (steps_ > limits_.steps_max) fail("rendering takes more than {} steps", limits_.steps_max);
  return !failed();
}

bool Run::fits(size_t bytes) {
  if (bytes > limits_.output_bytes_max)
    fail("a text of more than {} bytes; that is the limit", limits_.output_bytes_max);
  return !failed();
}

Value Run::text(Text text) {
  return may_make(text.size()) ? Value(std::move(text)) : Value();
}

Value Run::list(std::vector<Value> items, bool is_tuple) {
  List list{.items = std::move(items), .is_tuple = is_tuple};
  for (const Value& item : list.items) list.depth = std::max(list.depth, item.depth() + 1);
  if (list.depth > kValueDepthMax)
    return fail("a list nested more than {} levels deep", kValueDepthMax);
  if (!charge_items(list.items.size())) return {};
  return std::make_shared<const List>(std::move(list));
}

Value Run::dict(Dict dict) {
  if (dict.depth() > kValueDepthMax)
    return fail("a dictionary nested more than {} levels deep", kValueDepthMax);
  if (!charge_items(dict.entries().size())) return {};
  return std::make_shared<const Dict>(std::move(dict));
}

bool Run::Depth::ok() const {
  if (run_.depth_ > kEvaluateDepthMax)
    run_.fail("macros and expressions call each other more than {} levels deep", kEvaluateDepthMax);
  return !run_.failed();
}

}  // namespace sluice::jinja
