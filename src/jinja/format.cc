#include "jinja/format.h"

#include <array>

#include "jinja/literals.h"
#include "jinja/operations.h"
#include "jinja/python_text.h"

namespace sluice::jinja {
namespace {

/// The digits after the point of a number at most; more would only be noise.
constexpr int64_t kPrecisionMax = 40;

/// What stands between % or : and the letter of a conversion.
struct Conversion {
  char letter = 's';
  std::optional<int64_t> precision = {};
  size_t size = 0;
};

/// ".2f", "d", "s": a precision and a letter. Nothing when it is more than that.
std::optional<Conversion> parse_conversion(std::string_view text) {
  Conversion conversion;
  size_t at = 0;
  if (text.starts_with('.')) {
    const size_t end = text.find_first_not_of("0123456789", 1);
    if (end == std::string_view::npos) return {};
    conversion.precision = parse_integer(text.substr(1, end - 1), 10);
    if (!conversion.precision || *conversion.precision > kPrecisionMax) return {};
    at = end;
  }
  if (at == text.size()) return {};
  conversion.letter = text[at];
  conversion.size = at + 1;
  return conversion;
}

Text converted(Run& run, const Conversion& conversion, const Value& value) {
  const char letter = conversion.letter;
  if (letter == 's' && !conversion.precision) return to_text(run, value);
  if (letter == 'r' && !conversion.precision) return to_repr(run, value);
  const bool whole = letter == 'd' || letter == 'i';
  if (whole && value.is_number() && !conversion.precision) {
    const double number = value.real();
    if (value.is_whole()) return {fmt::format("{}", value.integer()), Origin::message};
    return {fmt::format("{:.0f}", std::trunc(number)), Origin::message};
  }
  if (letter == 'f' && value.is_number())
    return {fmt::format("{:.{}f}", value.real(), conversion.precision.value_or(6)),
            Origin::message};
  run.fail("cannot format {} with '{}'", value.kind_name(), letter);
  return {};
}

/// "0.name[1]" of format(): the first part is an argument, the rest walks from there.
Value format_field(Run& run, std::string_view field, const Arguments& values, size_t& next) {
  const size_t name_end = std::min(field.find_first_of(".["), field.size());
  if (name_end != field.size())
    return run.fail("format: '{{{}}}' is not supported, only names and numbers", field);
  if (!field.empty() && field.find_first_not_of("0123456789") != std::string_view::npos) {
    for (const auto& [name, value] : values.by_name)
      if (name == field) return value;
    return run.fail("format: no argument '{}'", field);
  }
  const auto index = field.empty() ? static_cast<int64_t>(next++) : parse_integer(field, 10);
  if (!index || static_cast<size_t>(*index) >= values.by_place.size())
    return run.fail("format: too few arguments");
  return values.by_place[static_cast<size_t>(*index)];
}

constexpr std::array<std::string_view, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                   "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> kMonths = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"};

/// One letter after % in a time's format; nothing when it is not known.
std::optional<std::string> time_part(const std::tm& now, char letter) {
  const int hour = now.tm_hour % 12 == 0 ? 12 : now.tm_hour % 12;
  const auto day = std::string(kDays[static_cast<size_t>(now.tm_wday) % kDays.size()]);
  const auto month = std::string(kMonths[static_cast<size_t>(now.tm_mon) % kMonths.size()]);
  switch (letter) {
    case 'Y':
      return fmt::format("{}", now.tm_year + 1900);
    case 'y':
      return fmt::format("{:02}", now.tm_year % 100);
    case 'm':
      return fmt::format("{:02}", now.tm_mon + 1);
    case 'd':
      return fmt::format("{:02}", now.tm_mday);
    case 'e':
      return fmt::format("{:2}", now.tm_mday);
    case 'j':
      return fmt::format("{:03}", now.tm_yday + 1);
    case 'H':
      return fmt::format("{:02}", now.tm_hour);
    case 'I':
      return fmt::format("{:02}", hour);
    case 'M':
      return fmt::format("{:02}", now.tm_min);
    case 'S':
      return fmt::format("{:02}", now.tm_sec);
    case 'p':
      return now.tm_hour < 12 ? "AM" : "PM";
    case 'A':
      return day;
    case 'a':
      return day.substr(0, 3);
    case 'B':
      return month;
    case 'b':
    case 'h':
      return month.substr(0, 3);
    case 'w':
      return fmt::format("{}", now.tm_wday);
    case 'F':
      return fmt::format("{}-{:02}-{:02}", now.tm_year + 1900, now.tm_mon + 1, now.tm_mday);
    case 'D':
      return fmt::format("{:02}/{:02}/{:02}", now.tm_mon + 1, now.tm_mday, now.tm_year % 100);
    case 'T':
      return fmt::format("{:02}:{:02}:{:02}", now.tm_hour, now.tm_min, now.tm_sec);
    case 'R':
      return fmt::format("{:02}:{:02}", now.tm_hour, now.tm_min);
    case 'n':
      return "\n";
    case 't':
      return "\t";
    case '%':
      return "%";
    default:
      return {};
  }
}

std::string without_padding(std::string part) {
  const size_t digits = part.find_first_not_of("0 ");
  if (digits == std::string::npos) return "0";
  return part.substr(digits);
}

}  // namespace

Value format_percent(Run& run, const Value& pattern, const Value& values) {
  const Text& text = *pattern.text();
  const std::string& bytes = text.bytes();
  const List* tuple = values.list() != nullptr && values.list()->is_tuple ? values.list() : nullptr;
  size_t next = 0;
  Text out;
  for (size_t at = 0; at < bytes.size() && run.charge() && run.fits(out.size());) {
    const size_t percent = std::min(bytes.find('%', at), bytes.size());
    out.append(text, at, percent);
    if (percent == bytes.size()) break;
    const auto conversion = parse_conversion(std::string_view(bytes).substr(percent + 1));
    if (!conversion) return run.fail("a format that is not supported: '{}'", bytes.substr(percent));
    at = percent + 1 + conversion->size;
    if (conversion->letter == '%') {
      out.append(text, percent, percent + 1);
      continue;
    }
    const size_t count = tuple != nullptr ? tuple->items.size() : 1;
    if (next == count) return run.fail("a format with more conversions than values");
    out.append(converted(run, *conversion, tuple != nullptr ? tuple->items[next] : values));
    ++next;
  }
  if (next < (tuple != nullptr ? tuple->items.size() : 1) && values.dict() == nullptr)
    return run.fail("a format with fewer conversions than values");
  return run.text(std::move(out));
}

Value format_braces(Run& run, const Text& pattern, const Arguments& values) {
  const std::string& bytes = pattern.bytes();
  size_t next = 0;
  Text out;
  for (size_t at = 0; at < bytes.size() && run.charge() && run.fits(out.size());) {
    const size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
    out.append(pattern, at, brace);
    if (brace == bytes.size()) break;
    if (brace + 1 < bytes.size() && bytes[brace + 1] == bytes[brace]) {  // {{ is one brace
      out.append(pattern, brace, brace + 1);
      at = brace + 2;
      continue;
    }
    const size_t end = bytes.find('}', brace);
    if (bytes[brace] == '}' || end == std::string::npos) return run.fail("format: a lone brace");
    const std::string_view field = std::string_view(bytes).substr(brace + 1, end - brace - 1);
    const size_t colon = std::min(field.find(':'), field.size());
    Conversion conversion;
    if (colon + 1 < field.size()) {
      const auto given = parse_conversion(field.substr(colon + 1));
      if (!given || given->size != field.size() - colon - 1)
        return run.fail("format: '{{{}}}' is not supported", field);
      conversion = *given;
    }
    const Value value = format_field(run, field.substr(0, colon), values, next);
    out.append(converted(run, conversion, value));
    at = end + 1;
  }
  return run.text(std::move(out));
}

Value format_time(Run& run, const Text& pattern) {
  const std::string& bytes = pattern.bytes();
  Text out;
  for (size_t at = 0; at < bytes.size() && run.charge() && run.fits(out.size());) {
    const size_t percent = std::min(bytes.find('%', at), bytes.size());
    out.append(pattern, at, percent);
    if (percent == bytes.size()) break;
    const bool bare = bytes.compare(percent, 2, "%-") == 0;
    const size_t letter = percent + (bare ? 2 : 1);
    const auto part = letter < bytes.size() ? time_part(run.now(), bytes[letter]) : std::nullopt;
    if (!part) return run.fail("strftime_now: '{}' is not supported", bytes.substr(percent, 3));
    out.append(bare ? without_padding(*part) : *part, pattern.origin_at(percent));
    at = letter + 1;
  }
  return run.text(std::move(out));
}

}  // namespace sluice::jinja
