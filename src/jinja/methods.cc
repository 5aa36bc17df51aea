// The methods of texts, dictionaries, lists and loops, as Python has them. What would change a
// value is refused, as in the sandbox that templates are written for.
#include <algorithm>
#include <span>

#include "jinja/characters.h"
#include "jinja/format.h"
#include "jinja/function.h"
#include "jinja/operations.h"
#include "jinja/text_operations.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace sluice::jinja {
namespace {

Value strip_side(Call& call, Side side) {
  const Value given = call.take("chars", None{});
  if (!given.is_none() && given.text() == nullptr)
    return call.run.fail("{} needs a text, not {}", call.name(), given.kind_name());
  const auto characters = given.is_none() ? std::nullopt : std::optional<Text>(*given.text());
  const size_t wanted = characters ? characters->size() : 0;
  if (!call.run.charge(call.subject_text().size() * (1 + wanted / 8))) return {};
  return call.run.text(stripped(call.subject_text(), characters, side));
}

Value strip(Call& call) {
  return strip_side(call, Side::both);
}
Value lstrip(Call& call) {
  return strip_side(call, Side::left);
}
Value rstrip(Call& call) {
  return strip_side(call, Side::right);
}

Value split(Call& call) {
  const Value separator = call.take("sep", None{});
  const size_t count_max = maximum_of(call.take_integer("maxsplit", -1));
  const Text& text = call.subject_text();
  if (separator.is_none()) return call.run.list(split_at_white(call.run, text, count_max));
  if (separator.text() == nullptr || separator.text()->empty())
    return call.run.fail("split needs a separator that is a text and not empty");
  return call.run.list(split_at(call.run, text, *separator.text(), count_max));
}

Value rsplit(Call& call) {
  const Value separator = call.take("sep", None{});
  const size_t count_max = maximum_of(call.take_integer("maxsplit", -1));
  const Text& text = call.subject_text();
  if (separator.is_none())
    return call.run.list(split_at_white_from_right(call.run, text, count_max));
  if (separator.text() == nullptr || separator.text()->empty())
    return call.run.fail("rsplit needs a separator that is a text and not empty");
  return call.run.list(split_at_from_right(call.run, text, *separator.text(), count_max));
}

Value splitlines(Call& call) {
  const bool keeps_ends = call.take_bool("keepends", false);
  if (!call.run.charge(call.subject_text().size())) return {};
  std::vector<Value> lines;
  for (Text& line : split_lines(call.subject_text(), keeps_ends))
    lines.emplace_back(std::move(line));
  return call.run.list(std::move(lines));
}

/// One text, or a tuple of texts of which any will do.
template <typename Matches>
Value matches_any(Call& call, const Matches& matches) {
  const Value given = call.take_required("prefix");
  const std::string& text = call.subject_text().bytes();
  const std::vector<Value> parts =
      given.list() != nullptr ? given.list()->items : std::vector<Value>{given};
  for (const Value& part : parts) {
    if (call.run.failed()) return {};
    if (part.text() == nullptr)
      return call.run.fail("{} needs a text, not {}", call.name(), part.kind_name());
    if (matches(std::string_view(text), part.text()->bytes())) return true;
  }
  return false;
}

Value startswith(Call& call) {
  return matches_any(
      call, [](std::string_view text, const std::string& part) { return text.starts_with(part); });
}

Value endswith(Call& call) {
  return matches_any(
      call, [](std::string_view text, const std::string& part) { return text.ends_with(part); });
}

Value index_of(Call& call, bool from_right) {
  const Text part = call.take_text("sub", "");
  const std::string& text = call.subject_text().bytes();
  if (!call.run.charge(text.size())) return {};
  const size_t at = from_right ? text.rfind(part.bytes()) : text.find(part.bytes());
  if (at == std::string::npos) return int64_t{-1};
  return static_cast<int64_t>(count_characters(std::string_view(text).substr(0, at)));
}

Value find(Call& call) {
  return index_of(call, false);
}
Value rfind(Call& call) {
  return index_of(call, true);
}

Value index(Call& call) {
  const Value found = index_of(call, false);
  if (found.is_integer() && found.integer() < 0) return call.run.fail("index: not in the text");
  return found;
}

Value count(Call& call) {
  const Text part = call.take_text("sub", "");
  const std::string& text = call.subject_text().bytes();
  if (!call.run.charge(text.size())) return {};
  if (part.empty()) return static_cast<int64_t>(count_characters(text) + 1);
  int64_t found = 0;
  for (size_t at = text.find(part.bytes()); at != std::string::npos;
       at = text.find(part.bytes(), at + part.size()))
    ++found;
  return found;
}

Value replace(Call& call) {
  const Text old = call.take_text("old", "");
  const Text with = call.take_text("new", "");
  const size_t count_max = maximum_of(call.take_integer("count", -1));
  return replaced(call.run, call.subject_text(), old, with, count_max);
}

template <Text (*change)(const Text&)>
Value changes_case(Call& call) {
  if (!call.run.charge(call.subject_text().size() * 8)) return {};
  return call.run.text(change(call.subject_text()));
}

Value join(Call& call) {
  const Value items = call.take_required("iterable");
  return joined(call.run, iterate(call.run, items), call.subject_text());
}

/// Whether all characters are of a kind, and there is one.
template <bool (*is_kind)(char32_t)>
Value all_are(Call& call) {
  const std::string& text = call.subject_text().bytes();
  for (size_t at = 0; at < text.size();) {
    const text::Utf8Char c = text::decode_utf8(text, at);
    if (!is_kind(c.code)) return false;
    at += c.bytes;
  }
  return !text.empty();
}

bool is_digit(char32_t code) {
  return text::category(code) == text::Category::decimal_number;
}
bool is_alpha(char32_t code) {
  return text::is_letter(text::category(code));
}
bool is_alnum(char32_t code) {
  return is_alpha(code) || text::is_number(text::category(code));
}

Value isupper(Call& call) {
  return apply_test(call.run, "upper", call.subject, {});
}
Value islower(Call& call) {
  return apply_test(call.run, "lower", call.subject, {});
}

Value removeprefix(Call& call) {
  const Text part = call.take_text("prefix", "");
  const Text& text = call.subject_text();
  const bool has = text.bytes().starts_with(part.bytes());
  return call.run.text(text.part(has ? part.size() : 0, text.size()));
}

Value removesuffix(Call& call) {
  const Text part = call.take_text("suffix", "");
  const Text& text = call.subject_text();
  const bool has = text.bytes().ends_with(part.bytes());
  return call.run.text(text.part(0, text.size() - (has ? part.size() : 0)));
}

/// The text before, the separator and the text after it, or the whole and two empty ones.
Value partition_at(Call& call, bool from_right) {
  const Text separator = call.take_text("sep", "");
  const Text& text = call.subject_text();
  if (separator.empty()) return call.run.fail("partition needs a separator that is not empty");
  const std::string& bytes = text.bytes();
  const size_t at = from_right ? bytes.rfind(separator.bytes()) : bytes.find(separator.bytes());
  if (!call.run.charge(text.size())) return {};
  if (at == std::string::npos) {
    const Value whole = text;
    return from_right ? call.run.list({Text(), Text(), whole}, true)
                      : call.run.list({whole, Text(), Text()}, true);
  }
  const size_t end = at + separator.size();
  return call.run.list({text.part(0, at), text.part(at, end), text.part(end, text.size())}, true);
}

Value partition(Call& call) {
  return partition_at(call, false);
}
Value rpartition(Call& call) {
  return partition_at(call, true);
}

Value pad(Call& call, Side side, std::string_view filler) {
  const auto width = static_cast<size_t>(std::max<int64_t>(call.take_integer("width", 0), 0));
  const Text& text = call.subject_text();
  const size_t characters = count_characters(text.bytes());
  if (!call.run.may_make(width)) return {};
  const size_t missing = width > characters ? width - characters : 0;
  const std::string fill(missing, filler[0]);
  Text out;
  if (side == Side::left) out.append(fill, Origin::written);
  out.append(text);
  if (side == Side::right) out.append(fill, Origin::written);
  return call.run.text(std::move(out));
}

Value ljust(Call& call) {
  return pad(call, Side::right, " ");
}
Value rjust(Call& call) {
  return pad(call, Side::left, " ");
}
Value zfill(Call& call) {
  return pad(call, Side::left, "0");
}

Value format(Call& call) {
  const Arguments values = call.take_rest();
  return format_braces(call.run, call.subject_text(), values);
}

Value items(Call& call) {
  std::vector<Value> pairs;
  for (const auto& [key, value] : call.subject.dict()->entries())
    pairs.push_back(call.run.list({key, value}, true));
  return call.run.list(std::move(pairs));
}

Value keys(Call& call) {
  return call.run.list(iterate(call.run, call.subject));
}

Value values(Call& call) {
  std::vector<Value> found;
  for (const auto& entry : call.subject.dict()->entries()) found.push_back(entry.second);
  return call.run.list(std::move(found));
}

Value value_or(Call& call) {
  const Value key = call.take_required("key");
  Value fallback = call.take("default", None{});
  if (!is_hashable(key)) return call.run.fail("a {} cannot be a key", key.kind_name());
  const Value* found = call.subject.dict()->find(key);
  return found == nullptr ? fallback : *found;
}

Value same(Call& call) {
  return call.subject;
}

Value refused(Call& call) {
  return call.run.fail("{} would change a value; templates may only change a namespace",
                       call.name());
}

Value list_index(Call& call) {
  const Value wanted = call.take_required("value");
  const std::vector<Value>& all = call.subject.list()->items;
  for (size_t i = 0; i < all.size(); ++i)
    if (is_equal(call.run, all[i], wanted)) return static_cast<int64_t>(i);
  return call.run.fail("index: not in the list");
}

Value list_count(Call& call) {
  const Value wanted = call.take_required("value");
  int64_t found = 0;
  for (const Value& item : call.subject.list()->items)
    if (is_equal(call.run, item, wanted)) ++found;
  return found;
}

Value cycle(Call& call) {
  const Arguments given = call.take_rest();
  if (given.by_place.empty()) return call.run.fail("cycle needs values");
  return given.by_place[call.subject.loop()->index % given.by_place.size()];
}

constexpr Builtin kTextMethods[] = {
    {"capitalize", changes_case<capitalize>},
    {"count", count},
    {"endswith", endswith},
    {"find", find},
    {"format", format},
    {"index", index},
    {"isalnum", all_are<is_alnum>},
    {"isalpha", all_are<is_alpha>},
    {"isdigit", all_are<is_digit>},
    {"islower", islower},
    {"isspace", all_are<is_white>},
    {"isupper", isupper},
    {"join", join},
    {"ljust", ljust},
    {"lower", changes_case<lower>},
    {"lstrip", lstrip},
    {"partition", partition},
    {"removeprefix", removeprefix},
    {"removesuffix", removesuffix},
    {"replace", replace},
    {"rfind", rfind},
    {"rjust", rjust},
    {"rpartition", rpartition},
    {"rsplit", rsplit},
    {"rstrip", rstrip},
    {"split", split},
    {"splitlines", splitlines},
    {"startswith", startswith},
    {"strip", strip},
    {"title", changes_case<title>},
    {"upper", changes_case<upper>},
    {"zfill", zfill},
};

constexpr Builtin kDictMethods[] = {
    {"clear", refused},  {"copy", same},     {"get", value_or},    {"items", items},
    {"keys", keys},      {"pop", refused},   {"popitem", refused}, {"setdefault", refused},
    {"update", refused}, {"values", values},
};

constexpr Builtin kListMethods[] = {
    {"append", refused}, {"clear", refused},    {"copy", same},      {"count", list_count},
    {"extend", refused}, {"index", list_index}, {"insert", refused}, {"pop", refused},
    {"remove", refused}, {"reverse", refused},  {"sort", refused},
};

constexpr Builtin kLoopMethods[] = {{"cycle", cycle}};

std::span<const Builtin> methods_of(const Value& receiver) {
  if (receiver.text() != nullptr) return kTextMethods;
  if (receiver.dict() != nullptr) return kDictMethods;
  if (receiver.list() != nullptr) return kListMethods;
  if (receiver.loop() != nullptr) return kLoopMethods;
  return {};
}

}  // namespace

Apply find_method(const Value& receiver, std::string_view name) {
  const auto methods = methods_of(receiver);
  const auto row = std::ranges::find(methods, name, &Builtin::name);
  return row == methods.end() ? nullptr : row->apply;
}

}  // namespace sluice::jinja
