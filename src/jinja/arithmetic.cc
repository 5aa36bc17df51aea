// Operators on numbers, and what + and * and % mean for texts and lists.
#include <cmath>

#include "jinja/format.h"
#include "jinja/operations.h"

namespace sluice::jinja {
namespace {

std::string_view sign_of(Operator op) {
  switch (op) {
    case Operator::add:
      return "+";
    case Operator::subtract:
      return "-";
    case Operator::multiply:
      return "*";
    case Operator::divide:
      return "/";
    case Operator::floor_divide:
      return "//";
    case Operator::modulo:
      return "%";
    default:
      return "**";
  }
}

/// Python's rounding: towards minus infinity. REQUIRES: divisor not 0
int64_t floor_divided(int64_t value, int64_t divisor) {
  const int64_t quotient = value / divisor;
  return value % divisor != 0 && (value < 0) != (divisor < 0) ? quotient - 1 : quotient;
}

double floor_modulo(double value, double divisor) {
  const double rest = std::fmod(value, divisor);
  return rest != 0 && (rest < 0) != (divisor < 0) ? rest + divisor : rest;
}

/// False when it leaves 64 bits.
bool raise(int64_t base, int64_t exponent, int64_t& result) {
  result = 1;
  if (base == 0 || base == 1) {
    result = exponent == 0 ? 1 : base;
    return true;
  }
  if (base == -1) {
    result = exponent % 2 == 0 ? 1 : -1;
    return true;
  }
  for (int64_t i = 0; i < exponent; ++i)
    if (__builtin_mul_overflow(result, base, &result)) return false;
  return true;
}

bool whole_result(Operator op, int64_t a, int64_t b, int64_t& result) {
  switch (op) {
    case Operator::add:
      return !__builtin_add_overflow(a, b, &result);
    case Operator::subtract:
      return !__builtin_sub_overflow(a, b, &result);
    case Operator::multiply:
      return !__builtin_mul_overflow(a, b, &result);
    case Operator::power:
      return raise(a, b, result);
    default:
      break;
  }
  if (b == -1) {  // the one quotient that may not fit
    result = 0;
    return op == Operator::modulo || !__builtin_sub_overflow(int64_t{0}, a, &result);
  }
  const int64_t quotient = floor_divided(a, b);
  result = op == Operator::floor_divide ? quotient : a - quotient * b;
  return true;
}

Value whole(Run& run, Operator op, int64_t a, int64_t b) {
  int64_t result = 0;
  if (!whole_result(op, a, b, result))
    return run.fail("the result of {} {} {} does not fit in 64 bits", a, sign_of(op), b);
  return result;
}

Value real(Operator op, double a, double b) {
  switch (op) {
    case Operator::add:
      return a + b;
    case Operator::subtract:
      return a - b;
    case Operator::multiply:
      return a * b;
    case Operator::divide:
      return a / b;
    case Operator::floor_divide:
      return std::floor(a / b);
    case Operator::modulo:
      return floor_modulo(a, b);
    default:
      return std::pow(a, b);
  }
}

Value numbers(Run& run, Operator op, const Value& left, const Value& right) {
  const bool divides =
      op == Operator::divide || op == Operator::floor_divide || op == Operator::modulo;
  if (divides && right.real() == 0) return run.fail("division by zero");
  const bool stays_whole =
      op != Operator::divide && !(op == Operator::power && right.is_whole() && right.integer() < 0);
  if (left.is_whole() && right.is_whole() && stays_whole)
    return whole(run, op, left.integer(), right.integer());
  return real(op, left.real(), right.real());
}

Value repeated(Run& run, const Value& value, int64_t count) {
  const auto times = static_cast<size_t>(std::max<int64_t>(count, 0));
  if (const Text* text = value.text()) {
    size_t bytes = 0;
    if (__builtin_mul_overflow(text->size(), times, &bytes)) bytes = SIZE_MAX;
    if (!run.may_make(bytes)) return {};
    Text result;
    for (size_t i = 0; i < times && !text->empty(); ++i) result.append(*text);
    return run.text(std::move(result));
  }
  const List& list = *value.list();
  std::vector<Value> items;
  for (size_t i = 0; i < times && !list.items.empty(); ++i) {
    if (!run.charge_items(list.items.size())) return {};
    items.insert(items.end(), list.items.begin(), list.items.end());
  }
  return run.list(std::move(items), list.is_tuple);
}

bool repeats(const Value& value, const Value& count) {
  return (value.text() != nullptr || value.list() != nullptr) && count.is_whole();
}

Value added(Run& run, const Text& left, const Text& right) {
  if (!run.may_make(left.size() + right.size())) return {};
  Text sum = left;
  sum.append(right);
  return run.text(std::move(sum));
}

}  // namespace

Value combine(Run& run, Operator op, const Value& left, const Value& right) {
  if (!run.charge()) return {};
  if (op == Operator::modulo && left.text() != nullptr) return format_percent(run, left, right);
  for (const Value* side : {&left, &right})
    if (side->is_undefined()) return run.fail_undefined(*side);
  if (left.is_number() && right.is_number()) return numbers(run, op, left, right);
  if (op == Operator::add) {
    if (left.text() != nullptr && right.text() != nullptr)
      return added(run, *left.text(), *right.text());
    const List* a = left.list();
    const List* b = right.list();
    if (a != nullptr && b != nullptr && a->is_tuple == b->is_tuple) {
      std::vector<Value> items = a->items;
      items.insert(items.end(), b->items.begin(), b->items.end());
      return run.list(std::move(items), a->is_tuple);
    }
  }
  if (op == Operator::multiply && repeats(left, right)) return repeated(run, left, right.integer());
  if (op == Operator::multiply && repeats(right, left)) return repeated(run, right, left.integer());
  return run.fail("{} does not work on {} and {}", sign_of(op), left.kind_name(),
                  right.kind_name());
}

Value negated(Run& run, const Value& value) {
  if (value.is_undefined()) return run.fail_undefined(value);
  if (value.is_whole()) return whole(run, Operator::subtract, 0, value.integer());
  if (value.is_real()) return -value.real();
  return run.fail("- does not work on {}", value.kind_name());
}

}  // namespace sluice::jinja
