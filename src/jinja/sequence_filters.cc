// Filters over whole sequences: order, length, joining.
#include <algorithm>

#include "jinja/characters.h"
#include "jinja/filters.h"
#include "jinja/operations.h"
#include "jinja/text_operations.h"

namespace sluice::jinja {
namespace {

Value count(Call& call) {
  return static_cast<int64_t>(length(call.run, call.subject));
}

Value first(Call& call) {
  const std::vector<Value> items = call.subject_items();
  return items.empty() ? Value::missing("the first of nothing") : items.front();
}

Value last(Call& call) {
  const std::vector<Value> items = call.subject_items();
  return items.empty() ? Value::missing("the last of nothing") : items.back();
}

Value list(Call& call) {
  return call.run.list(call.subject_items());
}

Value items(Call& call) {
  if (call.subject.is_undefined()) return call.run.list({});
  if (call.subject.dict() == nullptr)
    return call.run.fail("items needs a dictionary, not {}", call.subject.kind_name());
  std::vector<Value> pairs;
  for (const auto& [key, value] : call.subject.dict()->entries())
    pairs.push_back(call.run.list({key, value}, true));
  return call.run.list(std::move(pairs));
}

/// The attribute that the filter was told to look at, or the value itself.
Value looked_at(Run& run, const Value& item, const Value& path) {
  return path.is_none() ? item : dotted(run, item, path);
}

Value join(Call& call) {
  const Text separator = call.take_text("d", "");
  const Value path = call.take("attribute", None{});
  std::vector<Value> all = call.subject_items();
  for (Value& item : all) item = looked_at(call.run, item, path);
  return joined(call.run, all, separator);
}

Value reverse(Call& call) {
  if (call.subject.text() != nullptr)
    return slice(call.run, call.subject, {.start = None{}, .stop = None{}, .step = int64_t{-1}});
  std::vector<Value> all = call.subject_items();
  std::ranges::reverse(all);
  return call.run.list(std::move(all));
}

/// Texts compare without case unless told otherwise.
Value sort_key(Run& run, const Value& value, bool minds_case) {
  if (minds_case || value.text() == nullptr || !run.charge(value.text()->size() * 8)) return value;
  return lower(*value.text());
}

/// Sorts by keys beside the items. Merging, so that an order that is none cannot do harm.
void sort_by_keys(Run& run, std::vector<std::pair<Value, Value>>& keyed, bool reverse) {
  const auto comes_first = [&](const auto& a, const auto& b) {
    if (run.failed()) return false;
    return reverse ? is_less(run, b.first, a.first) : is_less(run, a.first, b.first);
  };
  std::vector<std::pair<Value, Value>> merged(keyed.size());
  for (size_t width = 1; width < keyed.size() && !run.failed(); width *= 2) {
    for (size_t begin = 0; begin < keyed.size(); begin += 2 * width) {
      const auto at = [&](size_t offset) {
        return keyed.begin() + static_cast<ptrdiff_t>(std::min(begin + offset, keyed.size()));
      };
      std::merge(at(0), at(width), at(width), at(2 * width),
                 merged.begin() + static_cast<ptrdiff_t>(begin), comes_first);
    }
    keyed.swap(merged);
  }
}

Value sorted(Call& call, std::vector<std::pair<Value, Value>> keyed, bool reverse) {
  sort_by_keys(call.run, keyed, reverse);
  std::vector<Value> ordered;
  for (auto& [key, item] : keyed) ordered.push_back(std::move(item));
  return call.run.list(std::move(ordered));
}

Value sort(Call& call) {
  const bool reverse = call.take_bool("reverse", false);
  const bool minds_case = call.take_bool("case_sensitive", false);
  const Value path = call.take("attribute", None{});
  std::vector<std::pair<Value, Value>> keyed;
  for (Value& item : call.subject_items()) {
    Value key = sort_key(call.run, looked_at(call.run, item, path), minds_case);
    keyed.emplace_back(std::move(key), std::move(item));
  }
  return sorted(call, std::move(keyed), reverse);
}

Value dictsort(Call& call) {
  const bool minds_case = call.take_bool("case_sensitive", false);
  const Text by = call.take_text("by", "key");
  const bool reverse = call.take_bool("reverse", false);
  if (call.subject.dict() == nullptr) return call.run.fail("dictsort needs a dictionary");
  if (by.bytes() != "key" && by.bytes() != "value")
    return call.run.fail("dictsort sorts by key or value");
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, value] : call.subject.dict()->entries())
    keyed.emplace_back(sort_key(call.run, by.bytes() == "key" ? key : value, minds_case),
                       call.run.list({key, value}, true));
  return sorted(call, std::move(keyed), reverse);
}

Value unique(Call& call) {
  const bool minds_case = call.take_bool("case_sensitive", false);
  const Value path = call.take("attribute", None{});
  Dict seen;
  std::vector<Value> chosen;
  for (Value& item : call.subject_items()) {
    const Value key = sort_key(call.run, looked_at(call.run, item, path), minds_case);
    if (call.run.failed()) return {};
    if (!is_hashable(key)) return call.run.fail("unique cannot compare a {}", key.kind_name());
    if (seen.find(key) != nullptr) continue;
    seen.set(key, None{});
    chosen.push_back(std::move(item));
  }
  return call.run.list(std::move(chosen));
}

Value extreme(Call& call, bool wants_less) {
  const bool minds_case = call.take_bool("case_sensitive", false);
  const Value path = call.take("attribute", None{});
  Value best = Value::missing("the extreme of nothing");
  Value best_key;
  for (const Value& item : call.subject_items()) {
    const Value key = sort_key(call.run, looked_at(call.run, item, path), minds_case);
    if (call.run.failed()) return {};
    const bool better = best_key.is_undefined() || (wants_less ? is_less(call.run, key, best_key)
                                                               : is_less(call.run, best_key, key));
    if (!better) continue;
    best = item;
    best_key = key;
  }
  return best;
}

Value min(Call& call) {
  return extreme(call, true);
}
Value max(Call& call) {
  return extreme(call, false);
}

Value sum(Call& call) {
  const Value path = call.take("attribute", None{});
  Value total = call.take("start", int64_t{0});
  for (const Value& item : call.subject_items())
    total = combine(call.run, Operator::add, total, looked_at(call.run, item, path));
  return total;
}

/// Groups of `linecount`, the last filled up where a filler is given.
Value batch(Call& call) {
  const int64_t size = call.take_integer("linecount", 0);
  const Value filler = call.take("fill_with", None{});
  if (size < 1) return call.run.fail("batch needs a size of 1 or more");
  std::vector<Value> groups, group;
  const auto close = [&] { groups.push_back(call.run.list(std::exchange(group, {}))); };
  for (Value& item : call.subject_items()) {
    group.push_back(std::move(item));
    if (group.size() == static_cast<size_t>(size)) close();
  }
  if (group.empty()) return call.run.list(std::move(groups));
  if (!filler.is_none() && call.run.charge_items(static_cast<size_t>(size)))
    group.resize(static_cast<size_t>(size), filler);
  close();
  return call.run.list(std::move(groups));
}

constexpr Builtin kFilters[] = {
    {"batch", batch}, {"count", count}, {"dictsort", dictsort}, {"first", first},
    {"items", items}, {"join", join},   {"last", last},         {"length", count},
    {"list", list},   {"max", max},     {"min", min},           {"reverse", reverse},
    {"sort", sort},   {"sum", sum},     {"unique", unique},
};

}  // namespace

std::span<const Builtin> sequence_filters() {
  return kFilters;
}

}  // namespace sluice::jinja
