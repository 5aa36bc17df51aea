// What may stand behind `is`, and by name in select and reject.
#include <algorithm>

#include "jinja/characters.h"
#include "jinja/function.h"
#include "jinja/operations.h"
#include "text/utf8.h"

namespace sluice::jinja {
namespace {

Value is_defined(Call& call) {
  return !call.subject.is_undefined();
}
Value is_undefined(Call& call) {
  return call.subject.is_undefined();
}
Value is_none(Call& call) {
  return call.subject.is_none();
}
Value is_boolean(Call& call) {
  return call.subject.is_bool();
}
Value is_true(Call& call) {
  return call.subject.is_bool() && call.subject.truthy();
}
Value is_false(Call& call) {
  return call.subject.is_bool() && !call.subject.truthy();
}
Value is_integer(Call& call) {
  return call.subject.is_integer();
}
Value is_float(Call& call) {
  return call.subject.is_real();
}
Value is_number(Call& call) {
  return call.subject.is_number();
}
Value is_string(Call& call) {
  return call.subject.text() != nullptr;
}
Value is_mapping(Call& call) {
  return call.subject.dict() != nullptr;
}
Value is_callable(Call& call) {
  return call.subject.function() != nullptr;
}
Value is_escaped(Call&) {
  return false;
}

/// As Python has it, undefined is an empty sequence.
Value is_sequence(Call& call) {
  const Value& value = call.subject;
  return value.is_undefined() || value.text() != nullptr || value.list() != nullptr ||
         value.dict() != nullptr;
}

Value is_odd(Call& call) {
  if (!call.subject.is_whole()) return call.run.fail("odd needs an integer");
  return call.subject.integer() % 2 != 0;
}

Value is_even(Call& call) {
  if (!call.subject.is_whole()) return call.run.fail("even needs an integer");
  return call.subject.integer() % 2 == 0;
}

Value is_divisible(Call& call) {
  const int64_t divisor = call.take_integer("num", 0);
  if (!call.subject.is_whole() || divisor == 0)
    return call.run.fail("divisibleby needs integers, and not 0");
  return divisor == -1 || call.subject.integer() % divisor == 0;
}

template <Operator op>
Value compares(Call& call) {
  const Value other = call.take_required("other");
  return compare(call.run, op, call.subject, other);
}

/// The same object: we can only tell for values, where Python would say the same.
Value is_same(Call& call) {
  const Value other = call.take_required("other");
  if (call.subject.is_bool() != other.is_bool() || call.subject.is_real() != other.is_real())
    return false;
  return is_equal(call.run, call.subject, other);
}

/// Some letter is of the case, and none of the other.
template <bool (*wanted)(char32_t), bool (*refused)(char32_t)>
Value is_of_case(Call& call) {
  const std::string& bytes = call.subject_text().bytes();
  bool found = false;
  for (size_t at = 0; at < bytes.size();) {
    const text::Utf8Char c = text::decode_utf8(bytes, at);
    if (refused(c.code)) return false;
    found = found || wanted(c.code);
    at += c.bytes;
  }
  return found;
}

Value is_filter(Call& call) {
  return find_filter(call.subject_text().bytes()) != nullptr;
}

Value is_test(Call& call) {
  return find_test(call.subject_text().bytes()) != nullptr;
}

constexpr Builtin kTests[] = {
    {"!=", compares<Operator::unequal>},
    {"<", compares<Operator::less>},
    {"<=", compares<Operator::less_equal>},
    {"==", compares<Operator::equal>},
    {">", compares<Operator::greater>},
    {">=", compares<Operator::greater_equal>},
    {"boolean", is_boolean},
    {"callable", is_callable},
    {"defined", is_defined},
    {"divisibleby", is_divisible},
    {"eq", compares<Operator::equal>},
    {"equalto", compares<Operator::equal>},
    {"escaped", is_escaped},
    {"even", is_even},
    {"false", is_false},
    {"filter", is_filter},
    {"float", is_float},
    {"ge", compares<Operator::greater_equal>},
    {"greaterthan", compares<Operator::greater>},
    {"gt", compares<Operator::greater>},
    {"in", compares<Operator::in>},
    {"integer", is_integer},
    {"iterable", is_sequence},
    {"le", compares<Operator::less_equal>},
    {"lessthan", compares<Operator::less>},
    {"lower", is_of_case<is_lower, is_upper>},
    {"lt", compares<Operator::less>},
    {"mapping", is_mapping},
    {"ne", compares<Operator::unequal>},
    {"none", is_none},
    {"number", is_number},
    {"odd", is_odd},
    {"sameas", is_same},
    {"sequence", is_sequence},
    {"string", is_string},
    {"test", is_test},
    {"true", is_true},
    {"undefined", is_undefined},
    {"upper", is_of_case<is_upper, is_lower>},
};

}  // namespace

Apply find_test(std::string_view name) {
  const auto* row = std::ranges::find(kTests, name, &Builtin::name);
  return row == std::end(kTests) ? nullptr : row->apply;
}

}  // namespace sluice::jinja
