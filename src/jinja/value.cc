#include "jinja/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace sluice::jinja {
namespace {

/// Spells a key so that keys are equal when their spellings are: 1, 1.0 and true are one key.
std::string spelling(const Value& key) {
  if (const Text* text = key.text()) return fmt::format("t{}", text->bytes());
  if (key.is_whole()) return fmt::format("i{}", key.integer());
  if (key.is_real()) {
    const double number = key.real();
    const bool whole = std::abs(number) < 9e15 && number == std::floor(number);
    return whole ? fmt::format("i{}", static_cast<int64_t>(number)) : fmt::format("f{}", number);
  }
  if (key.is_none()) return "n";
  std::string spelled = "l";
  if (const List* list = key.list())
    for (const Value& item : list->items) {
      const std::string one = spelling(item);
      spelled += fmt::format("{}:{}", one.size(), one);
    }
  return spelled;
}

}  // namespace

int64_t Value::integer() const {
  CHECK(is_whole());
  const auto* boolean = std::get_if<bool>(&held_);
  return boolean != nullptr ? *boolean : std::get<int64_t>(held_);
}

double Value::real() const {
  CHECK(is_number());
  return is_real() ? std::get<double>(held_) : static_cast<double>(integer());
}

bool Value::truthy() const {
  if (is_undefined() || is_none()) return false;
  if (is_number()) return real() != 0;
  if (const Text* held = text()) return !held->empty();
  if (const List* held = list()) return !held->items.empty();
  if (const Dict* held = dict()) return !held->entries().empty();
  return true;
}

uint32_t Value::depth() const {
  if (const List* held = list()) return held->depth;
  if (const Dict* held = dict()) return held->depth();
  if (const Loop* held = loop()) return held->over->depth + 1;
  return 0;
}

std::string_view Value::kind_name() const {
  constexpr std::string_view kNames[] = {"undefined value",  "None",         "bool object",
                                         "int object",       "float object", "str object",
                                         "list object",      "dict object",  "loop object",
                                         "namespace object", "function"};
  if (list() != nullptr && list()->is_tuple) return "tuple object";
  return kNames[held_.index()];
}

std::string Value::what() const {
  const auto* undefined = std::get_if<Undefined>(&held_);
  return undefined == nullptr || undefined->what == nullptr ? "an undefined value"
                                                            : *undefined->what;
}

const Value* Dict::find(const Value& key) const {
  const auto place = places_.find(spelling(key));
  return place == places_.end() ? nullptr : &entries_[place->second].second;
}

const Value* Dict::find(std::string_view key) const {
  return find(Value(Text(key, Origin::message)));
}

void Dict::set(const Value& key, Value value) {
  depth_ = std::max({depth_, key.depth() + 1, value.depth() + 1});
  const auto [place, is_new] = places_.try_emplace(spelling(key), entries_.size());
  if (is_new)
    entries_.emplace_back(key, std::move(value));
  else
    entries_[place->second].second = std::move(value);
}

bool is_hashable(const Value& value) {
  if (const List* list = value.list())
    return list->is_tuple && list->depth == 1 && std::ranges::all_of(list->items, is_hashable);
  return value.is_none() || value.is_number() || value.text() != nullptr;
}

}  // namespace sluice::jinja
