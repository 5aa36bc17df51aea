// The functions that every template may call.
#include <algorithm>

#include "jinja/format.h"
#include "jinja/function.h"
#include "jinja/operations.h"
#include "jinja/python_text.h"

namespace sluice::jinja {
namespace {

/// As Jinja's sandbox has it.
constexpr int64_t kRangeMax = 100'000;

Value make_range(Call& call) {
  const Value first = call.take_required("start");
  const auto second = call.take("stop");
  const int64_t step = call.take_integer("step", 1);
  if (call.run.failed()) return {};
  if (!first.is_whole() || (second && !second->is_whole()) || step == 0)
    return call.run.fail("range needs integers, and a step other than 0");
  const int64_t start = second ? first.integer() : 0;
  const int64_t stop = second ? second->integer() : first.integer();
  std::vector<Value> items;
  int64_t at = start;
  while (step > 0 ? at < stop : at > stop) {
    if (items.size() == kRangeMax)
      return call.run.fail("a range of more than {} numbers", kRangeMax);
    items.emplace_back(at);
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return call.run.list(std::move(items));
}

/// The pairs of a dictionary, or of a list of pairs, and the arguments by name.
std::vector<std::pair<Value, Value>> take_pairs(Call& call) {
  std::vector<std::pair<Value, Value>> pairs;
  Arguments given = call.take_rest();
  for (const Value& value : given.by_place) {
    if (const Dict* dict = value.dict()) {
      pairs.insert(pairs.end(), dict->entries().begin(), dict->entries().end());
      continue;
    }
    for (const Value& item : iterate(call.run, value)) {
      const List* pair = item.list();
      if (pair == nullptr || pair->items.size() != 2)
        call.run.fail("{} needs a dictionary or pairs", call.name());
      if (call.run.failed()) return {};
      pairs.emplace_back(pair->items[0], pair->items[1]);
    }
  }
  for (auto& [name, value] : given.by_name)
    pairs.emplace_back(Text(name, Origin::written), std::move(value));
  call.run.charge_items(pairs.size());
  return pairs;
}

Value make_namespace(Call& call) {
  auto pairs = take_pairs(call);
  if (!call.run.charge_items(pairs.size() + 1)) return {};
  Namespace* space = call.run.new_space();
  for (auto& [name, value] : pairs) {
    if (name.text() == nullptr) return call.run.fail("namespace needs names as keys");
    space->attributes[name.text()->bytes()] = std::move(value);
  }
  return space;
}

Value make_dict(Call& call) {
  Dict dict;
  for (auto& [key, value] : take_pairs(call)) {
    if (!is_hashable(key)) return call.run.fail("a {} cannot be a key", key.kind_name());
    dict.set(key, std::move(value));
  }
  return call.run.dict(std::move(dict));
}

Value raise_exception(Call& call) {
  const Value message = call.take_required("message");
  return call.run.fail("{}", to_text(call.run, message).bytes());
}

Value time_now(Call& call) {
  return format_time(call.run, call.take_text("format", ""));
}

constexpr Function kFunctions[] = {
    {.name = "dict", .builtin = make_dict},
    {.name = "namespace", .builtin = make_namespace},
    {.name = "raise_exception", .builtin = raise_exception},
    {.name = "range", .builtin = make_range},
    {.name = "strftime_now", .builtin = time_now},
};

}  // namespace

const Function* find_function(std::string_view name) {
  const auto* row = std::ranges::find(kFunctions, name, &Function::name);
  return row == std::end(kFunctions) ? nullptr : row;
}

}  // namespace sluice::jinja
