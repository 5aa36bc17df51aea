#include "jinja/operations.h"

#include <algorithm>

#include "jinja/characters.h"
#include "jinja/function.h"

namespace sluice::jinja {
namespace {

bool is_less_list(Run& run, const List& left, const List& right) {
  const size_t shared = std::min(left.items.size(), right.items.size());
  for (size_t i = 0; i < shared && run.charge(); ++i)
    if (!is_equal(run, left.items[i], right.items[i]))
      return is_less(run, left.items[i], right.items[i]);
  return left.items.size() < right.items.size();
}

bool is_equal_list(Run& run, const List& left, const List& right) {
  if (left.is_tuple != right.is_tuple || left.items.size() != right.items.size()) return false;
  for (size_t i = 0; i < left.items.size(); ++i)
    if (!is_equal(run, left.items[i], right.items[i])) return false;
  return true;
}

bool is_equal_dict(Run& run, const Dict& left, const Dict& right) {
  if (left.entries().size() != right.entries().size()) return false;
  for (const auto& [key, value] : left.entries()) {
    const Value* other = right.find(key);
    if (other == nullptr || !is_equal(run, value, *other)) return false;
  }
  return true;
}

bool contains(Run& run, const Value& container, const Value& value) {
  if (const Text* text = container.text()) {
    if (const Text* part = value.text()) {
      run.charge(text->size());
      return text->bytes().find(part->bytes()) != std::string::npos;
    }
    run.fail("'in' a text needs a text on its left, not {}", value.kind_name());
    return false;
  }
  if (const Dict* dict = container.dict()) {
    if (!is_hashable(value)) run.fail("a {} cannot be a key", value.kind_name());
    return !run.failed() && dict->find(value) != nullptr;
  }
  if (const List* list = container.list()) {
    for (const Value& item : list->items)
      if (is_equal(run, item, value)) return true;
    return false;
  }
  if (!container.is_undefined()) run.fail("'in' does not work on {}", container.kind_name());
  return false;
}

/// A Python index from the front or the back; none when it is outside.
std::optional<size_t> place_of(int64_t index, size_t count) {
  const auto size = static_cast<int64_t>(count);
  if (index < 0) index += size;
  if (index < 0 || index >= size) return {};
  return static_cast<size_t>(index);
}

Value character_at(Run& run, const Text& text, int64_t index) {
  if (!run.charge(text.size())) return {};
  const std::vector<size_t> offsets = character_offsets(text.bytes());
  const auto place = place_of(index, offsets.size() - 1);
  if (!place) return Value::missing(fmt::format("str object has no element {}", index));
  return run.text(text.part(offsets[*place], offsets[*place + 1]));
}

/// The bounds of a slice as Python clips them.
struct Clipped {
  int64_t start, stop, step;
};

std::optional<Clipped> clip(Run& run, const SliceBounds& bounds, size_t count) {
  const auto size = static_cast<int64_t>(count);
  for (const Value* bound : {&bounds.start, &bounds.stop, &bounds.step})
    if (!bound->is_whole() && !bound->is_none()) {
      run.fail("a slice needs integers, not {}", bound->kind_name());
      return {};
    }
  const int64_t step = bounds.step.is_none() ? 1 : bounds.step.integer();
  if (step == 0) {
    run.fail("the step of a slice cannot be 0");
    return {};
  }
  const int64_t low = step > 0 ? 0 : -1;
  const int64_t high = step > 0 ? size : size - 1;
  const auto clipped = [&](const Value& bound, int64_t fallback) {
    if (bound.is_none()) return fallback;
    int64_t place = bound.integer();
    if (place < 0) place = place < -size ? -1 - size : place;
    if (place < 0) place += size;
    return std::clamp(place, low, high);
  };
  return Clipped{clipped(bounds.start, step > 0 ? low : high),
                 clipped(bounds.stop, step > 0 ? high : low), step};
}

/// Calls `take` with each index of the slice.
template <typename Take>
void each_place(Run& run, const Clipped& bounds, const Take& take) {
  int64_t at = bounds.start;
  while (bounds.step > 0 ? at < bounds.stop : at > bounds.stop) {
    if (!run.charge()) return;
    take(static_cast<size_t>(at));
    if (__builtin_add_overflow(at, bounds.step, &at)) return;
  }
}

Value slice_text(Run& run, const Text& text, const SliceBounds& bounds) {
  if (!run.charge(text.size())) return {};
  const std::vector<size_t> offsets = character_offsets(text.bytes());
  const auto clipped = clip(run, bounds, offsets.size() - 1);
  if (!clipped) return {};
  if (clipped->step == 1) {
    const auto begin = static_cast<size_t>(clipped->start);
    const auto end = static_cast<size_t>(std::max(clipped->start, clipped->stop));
    return run.text(text.part(offsets[begin], offsets[end]));
  }
  Text result;
  each_place(run, *clipped, [&](size_t at) { result.append(text, offsets[at], offsets[at + 1]); });
  return run.text(std::move(result));
}

/// loop.name; nothing when a loop has no such attribute.
std::optional<Value> loop_attribute(const Loop& loop, std::string_view name) {
  const std::vector<Value>& items = loop.over->items;
  const auto index = static_cast<int64_t>(loop.index);
  const auto count = static_cast<int64_t>(items.size());
  if (name == "index0") return index;
  if (name == "index") return index + 1;
  if (name == "revindex0") return count - index - 1;
  if (name == "revindex") return count - index;
  if (name == "first") return index == 0;
  if (name == "last") return index + 1 == count;
  if (name == "length") return count;
  if (name == "depth0") return int64_t{0};
  if (name == "depth") return int64_t{1};
  if (name == "previtem")
    return index == 0 ? Value::missing("the item before the first") : items[loop.index - 1];
  if (name == "nextitem")
    return index + 1 >= count ? Value::missing("the item after the last") : items[loop.index + 1];
  return {};
}

Value missing_attribute(const Value& value, std::string_view name) {
  return Value::missing(fmt::format("'{}' of {}", name, value.kind_name()));
}

}  // namespace

bool is_equal(Run& run, const Value& left, const Value& right) {
  if (!run.charge()) return false;
  if (left.is_whole() && right.is_whole()) return left.integer() == right.integer();
  if (left.is_number() && right.is_number()) return left.real() == right.real();
  if (left.text() != nullptr && right.text() != nullptr) {
    run.charge(std::min(left.text()->size(), right.text()->size()));
    return left.text()->bytes() == right.text()->bytes();
  }
  if (left.list() != nullptr && right.list() != nullptr)
    return is_equal_list(run, *left.list(), *right.list());
  if (left.dict() != nullptr && right.dict() != nullptr)
    return is_equal_dict(run, *left.dict(), *right.dict());
  if (left.space() != nullptr) return left.space() == right.space();
  if (left.function() != nullptr) return left.function() == right.function();
  if (left.loop() != nullptr) return left.loop() == right.loop();
  return (left.is_none() && right.is_none()) || (left.is_undefined() && right.is_undefined());
}

bool is_less(Run& run, const Value& left, const Value& right) {
  const Run::Depth depth(run);
  if (!depth.ok() || !run.charge()) return false;
  if (left.is_whole() && right.is_whole()) return left.integer() < right.integer();
  if (left.is_number() && right.is_number()) return left.real() < right.real();
  if (left.text() != nullptr && right.text() != nullptr)
    return left.text()->bytes() < right.text()->bytes();
  if (left.list() != nullptr && right.list() != nullptr)
    return is_less_list(run, *left.list(), *right.list());
  for (const Value* side : {&left, &right})
    if (side->is_undefined()) run.fail_undefined(*side);
  run.fail("{} and {} have no order", left.kind_name(), right.kind_name());
  return false;
}

bool compare(Run& run, Operator op, const Value& left, const Value& right) {
  if (!run.charge()) return false;
  switch (op) {
    case Operator::in:
      return contains(run, right, left);
    case Operator::not_in:
      return !contains(run, right, left);
    case Operator::equal:
      return is_equal(run, left, right);
    case Operator::unequal:
      return !is_equal(run, left, right);
    case Operator::less:
      return is_less(run, left, right);
    case Operator::greater:
      return is_less(run, right, left);
    case Operator::less_equal:
      return is_less(run, left, right) || is_equal(run, left, right);
    default:
      return is_less(run, right, left) || is_equal(run, left, right);
  }
}

std::vector<Value> iterate(Run& run, const Value& value) {
  if (const List* list = value.list()) {
    if (!run.charge_items(list->items.size())) return {};
    return list->items;
  }
  std::vector<Value> items;
  if (const Dict* dict = value.dict()) {
    if (!run.charge_items(dict->entries().size())) return {};
    for (const auto& entry : dict->entries()) items.push_back(entry.first);
  } else if (const Text* text = value.text()) {
    const std::vector<size_t> offsets = character_offsets(text->bytes());
    if (!run.charge_items(offsets.size())) return {};
    for (size_t i = 0; i + 1 < offsets.size(); ++i)
      items.emplace_back(text->part(offsets[i], offsets[i + 1]));
  } else if (!value.is_undefined()) {
    run.fail("{} is not iterable", value.kind_name());
  }
  return items;
}

size_t length(Run& run, const Value& value) {
  if (const Text* text = value.text()) {
    run.charge(text->size());
    return count_characters(text->bytes());
  }
  if (const List* list = value.list()) return list->items.size();
  if (const Dict* dict = value.dict()) return dict->entries().size();
  if (!value.is_undefined()) run.fail("{} has no length", value.kind_name());
  return 0;
}

Value attribute(Run& run, const Value& value, std::string_view name) {
  if (value.is_undefined()) return run.fail_undefined(value);
  if (const Namespace* space = value.space()) {
    const auto found = space->attributes.find(name);
    if (found != space->attributes.end()) return found->second;
  }
  if (const Loop* loop = value.loop())
    if (const auto found = loop_attribute(*loop, name)) return *found;
  if (find_method(value, name) != nullptr) return &kMethod;
  if (const Dict* dict = value.dict())
    if (const Value* found = dict->find(name)) return *found;
  return missing_attribute(value, name);
}

Value item(Run& run, const Value& value, const Value& key) {
  if (value.is_undefined()) return run.fail_undefined(value);
  if (const Dict* dict = value.dict(); dict != nullptr && is_hashable(key))
    if (const Value* found = dict->find(key)) return *found;
  if (key.is_whole()) {
    const int64_t index = key.integer();
    if (const Text* text = value.text()) return character_at(run, *text, index);
    if (const List* list = value.list()) {
      if (const auto place = place_of(index, list->items.size())) return list->items[*place];
      return Value::missing(fmt::format("element {} of {}", index, value.kind_name()));
    }
  }
  if (const Text* name = key.text()) return attribute(run, value, name->bytes());
  return missing_attribute(value, key.kind_name());
}

Value dotted(Run& run, Value value, const Value& path) {
  if (path.is_whole()) return item(run, value, path);
  if (path.text() == nullptr) return run.fail("an attribute is a name, not {}", path.kind_name());
  std::string_view rest = path.text()->bytes();
  while (!run.failed()) {
    const size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    const bool is_index = !part.empty() && part.size() < 10 &&
                          part.find_first_not_of("0123456789") == std::string_view::npos;
    if (is_index)
      value = item(run, value, static_cast<int64_t>(std::stoll(std::string(part))));
    else
      value = item(run, value, Text(part, Origin::written));
    if (dot == std::string_view::npos || !run.charge()) return value;
    rest.remove_prefix(dot + 1);
  }
  return {};
}

Value slice(Run& run, const Value& value, const SliceBounds& bounds) {
  if (value.is_undefined()) return run.fail_undefined(value);
  if (const Text* text = value.text()) return slice_text(run, *text, bounds);
  const List* list = value.list();
  if (list == nullptr) return run.fail("{} cannot be sliced", value.kind_name());
  const auto clipped = clip(run, bounds, list->items.size());
  if (!clipped) return {};
  std::vector<Value> items;
  each_place(run, *clipped, [&](size_t at) { items.push_back(list->items[at]); });
  return run.list(std::move(items), list->is_tuple);
}

}  // namespace sluice::jinja
