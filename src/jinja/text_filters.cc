// Filters over texts. As in Jinja, most take any value and look at it as text.
#include <algorithm>

#include "jinja/characters.h"
#include "jinja/filters.h"
#include "jinja/format.h"
#include "jinja/python_text.h"
#include "jinja/text_operations.h"
#include "text/utf8.h"

namespace sluice::jinja {
namespace {

constexpr int64_t kIndentMax = 1024;

Text subject_as_text(Call& call) {
  Text text = to_text(call.run, call.subject);
  call.run.charge(text.size());
  return text;
}

template <Text (*change)(const Text&)>
Value changes_case(Call& call) {
  const Text text = subject_as_text(call);
  if (!call.run.charge(text.size() * 8)) return {};
  return call.run.text(change(text));
}

/// Unlike str.title(), only what follows white space, a dash or an opening bracket is upper case.
Text titled(const Text& text) {
  constexpr std::string_view kOpening = "-({[<";
  Text out;
  std::string one;
  bool starts = true;
  for (size_t at = 0; at < text.size();) {
    const text::Utf8Char c = text::decode_utf8(text.bytes(), at);
    one.clear();
    if (c.valid())
      text::append_utf8(starts ? to_upper(c.code) : to_lower(c.code), one);
    else
      one = text.bytes()[at];
    out.append(one, text.origin_at(at));
    starts = is_white(c.code) ||
             (c.code < 0x80 && kOpening.find(static_cast<char>(c.code)) != std::string_view::npos);
    at += c.bytes;
  }
  return out;
}

Value trim(Call& call) {
  const Value given = call.take("chars", None{});
  const Text text = subject_as_text(call);
  if (given.is_none()) return call.run.text(stripped(text, {}, Side::both));
  if (given.text() == nullptr) return call.run.fail("trim needs a text");
  if (!call.run.charge(text.size() * (1 + given.text()->size() / 8))) return {};
  return call.run.text(stripped(text, *given.text(), Side::both));
}

Value replace(Call& call) {
  const Text old = call.take_text("old", "");
  const Text with = call.take_text("new", "");
  const Value count = call.take("count", None{});
  if (!count.is_none() && !count.is_whole()) return call.run.fail("replace: count is an integer");
  const size_t count_max = count.is_none() ? kNoMaximum : maximum_of(count.integer());
  return replaced(call.run, subject_as_text(call), old, with, count_max);
}

Text indent_text(Call& call, const Value& width) {
  if (width.text() != nullptr) return *width.text();
  if (width.is_whole() && width.integer() <= kIndentMax)
    return {std::string(static_cast<size_t>(std::max<int64_t>(width.integer(), 0)), ' '),
            Origin::written};
  call.run.fail("indent: a width is a text or a number up to {}", kIndentMax);
  return {};
}

Value indent(Call& call) {
  const Text indentation = indent_text(call, call.take("width", int64_t{4}));
  const bool also_first = call.take_bool("first", false);
  const bool also_blank = call.take_bool("blank", false);
  Text text = subject_as_text(call);
  text.append("\n", text.empty() ? Origin::written : text.origin_at(text.size() - 1));
  Text out;
  bool first = true;
  for (const Text& line : split_lines(text, false)) {
    if (!first) out.append("\n", Origin::written);
    if (first ? also_first : also_blank || !line.empty()) out.append(indentation);
    out.append(line);
    first = false;
    if (!call.run.charge(indentation.size()) || !call.run.fits(out.size())) return {};
  }
  return call.run.text(std::move(out));
}

Value escape(Call& call) {
  const Text text = subject_as_text(call);
  Text out;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text.bytes()[at];
    const std::string_view with = c == '&'    ? "&amp;"
                                  : c == '<'  ? "&lt;"
                                  : c == '>'  ? "&gt;"
                                  : c == '"'  ? "&#34;"
                                  : c == '\'' ? "&#39;"
                                              : std::string_view(&c, 1);
    out.append(with, text.origin_at(at));
  }
  return call.run.text(std::move(out));
}

Value wordcount(Call& call) {
  const Text text = subject_as_text(call);
  return static_cast<int64_t>(split_at_white(call.run, text, kNoMaximum).size());
}

Value format(Call& call) {
  Arguments values = call.take_rest();
  if (call.subject.text() == nullptr) return call.run.fail("format needs a text");
  const Value tuple = call.run.list(std::move(values.by_place), true);
  return call.run.failed() ? Value() : format_percent(call.run, call.subject, tuple);
}

constexpr Builtin kFilters[] = {
    {"capitalize", changes_case<capitalize>},
    {"e", escape},
    {"escape", escape},
    {"format", format},
    {"indent", indent},
    {"lower", changes_case<lower>},
    {"replace", replace},
    {"title", changes_case<titled>},
    {"trim", trim},
    {"upper", changes_case<upper>},
    {"wordcount", wordcount},
};

}  // namespace

std::span<const Builtin> text_filters() {
  return kFilters;
}

}  // namespace sluice::jinja
