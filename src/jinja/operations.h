// What operators and subscripts do to values, by Python's rules. Each takes the run for its limits
// and errors, and gives undefined after an error. One thread per Run.
#pragma once

#include <optional>
#include <vector>

#include "jinja/run.h"
#include "jinja/syntax.h"

namespace sluice::jinja {

Value combine(Run& run, Operator op, const Value& left, const Value& right);
bool compare(Run& run, Operator op, const Value& left, const Value& right);
/// Python's ==
bool is_equal(Run& run, const Value& left, const Value& right);
/// Whether left < right; fails the run where Python has no order.
bool is_less(Run& run, const Value& left, const Value& right);
Value negated(Run& run, const Value& value);

/// What a loop over the value sees: items, keys, characters.
std::vector<Value> iterate(Run& run, const Value& value);
/// len()
size_t length(Run& run, const Value& value);

/// value.name: methods before keys. value[key]: keys before methods.
Value attribute(Run& run, const Value& value, std::string_view name);
Value item(Run& run, const Value& value, const Value& key);
/// "a.b.0" from the value on, as filters take it.
Value dotted(Run& run, Value value, const Value& path);

/// value[start:stop:step]; undefined or none where a part was left out.
struct SliceBounds {
  Value start, stop, step;
};
Value slice(Run& run, const Value& value, const SliceBounds& bounds);

}  // namespace sluice::jinja
