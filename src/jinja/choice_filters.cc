// Filters that look at each item of a sequence: map, and what selects and rejects by a test.
#include "jinja/filters.h"
#include "jinja/operations.h"

namespace sluice::jinja {
namespace {

/// An argument that must be a name, such as that of a test; empty where none is left.
std::string take_name(Call& call) {
  const auto given = call.take("name");
  if (!given) return {};
  if (given->text() != nullptr) return given->text()->bytes();
  call.run.fail("{} needs a name, not {}", call.name(), given->kind_name());
  return {};
}

/// map(attribute="a.b", default=x) looks into each item; map("filter", …) applies one.
Value map(Call& call) {
  const std::vector<Value> items = call.subject_items();
  const auto path = call.take_named("attribute");
  const auto fallback = call.take_named("default");
  const std::string filter = path ? std::string() : take_name(call);
  const Arguments arguments = path ? Arguments{} : call.take_rest();
  if (!path && filter.empty()) return call.run.fail("map needs a filter or attribute=");
  std::vector<Value> mapped;
  for (const Value& item : items) {
    if (!call.run.charge_items(arguments.by_place.size())) return {};
    Value value =
        path ? dotted(call.run, item, *path) : apply_filter(call.run, filter, item, arguments);
    if (value.is_undefined() && fallback) value = *fallback;
    mapped.push_back(std::move(value));
  }
  return call.run.list(std::move(mapped));
}

enum class Choice : uint8_t { select, reject };

/// Items for which the test holds, or does not; without a test its truth counts.
Value choose(Call& call, Choice choice, bool by_attribute) {
  const std::vector<Value> items = call.subject_items();
  const Value path = by_attribute ? call.take_required("attribute") : Value(None{});
  const std::string test = take_name(call);
  const Arguments arguments = call.take_rest();
  std::vector<Value> chosen;
  for (const Value& item : items) {
    const Value looked_at = by_attribute ? dotted(call.run, item, path) : item;
    if (!call.run.charge_items(arguments.by_place.size())) return {};
    const bool holds =
        test.empty() ? looked_at.truthy() : apply_test(call.run, test, looked_at, arguments);
    if (holds == (choice == Choice::select)) chosen.push_back(item);
  }
  return call.run.list(std::move(chosen));
}

Value select(Call& call) {
  return choose(call, Choice::select, false);
}
Value reject(Call& call) {
  return choose(call, Choice::reject, false);
}
Value selectattr(Call& call) {
  return choose(call, Choice::select, true);
}
Value rejectattr(Call& call) {
  return choose(call, Choice::reject, true);
}

constexpr Builtin kFilters[] = {
    {"map", map},       {"reject", reject},         {"rejectattr", rejectattr},
    {"select", select}, {"selectattr", selectattr},
};

}  // namespace

std::span<const Builtin> choice_filters() {
  return kFilters;
}

}  // namespace sluice::jinja
