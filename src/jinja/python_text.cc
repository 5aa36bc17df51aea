#include "jinja/python_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "jinja/characters.h"
#include "jinja/function.h"
#include "text/utf8.h"

namespace sluice::jinja {
namespace {

/// The largest exponent that Python still writes without e.
constexpr int kPlainExponentMax = 16;

std::string escaped(char32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\r') return "\\r";
  if (code == '\t') return "\\t";
  if (code < 0x100) return fmt::format("\\x{:02x}", static_cast<uint32_t>(code));
  if (code < 0x10000) return fmt::format("\\u{:04x}", static_cast<uint32_t>(code));
  return fmt::format("\\U{:08x}", static_cast<uint32_t>(code));
}

void append_quoted(const Text& text, Text& out) {
  const std::string& bytes = text.bytes();
  const bool doubles =
      bytes.find('\'') != std::string::npos && bytes.find('"') == std::string::npos;
  const char quote = doubles ? '"' : '\'';
  out.append({&quote, 1}, Origin::message);
  for (size_t at = 0; at < bytes.size();) {
    const text::Utf8Char c = text::decode_utf8(bytes, at);
    const Origin origin = text.origin_at(at);
    if (c.code == '\\' || c.code == static_cast<char32_t>(quote)) out.append("\\", origin);
    if (is_printable(c.code))
      out.append(text, at, at + c.bytes);
    else
      out.append(escaped(c.code), origin);
    at += c.bytes;
  }
  out.append({&quote, 1}, Origin::message);
}

void append_repr(Run& run, const Value& value, Text& out);

void append_repr_list(Run& run, const List& list, Text& out) {
  out.append(list.is_tuple ? "(" : "[", Origin::message);
  bool first = true;
  for (const Value& item : list.items) {
    if (!std::exchange(first, false)) out.append(", ", Origin::message);
    append_repr(run, item, out);
    if (run.failed()) return;
  }
  if (list.is_tuple && list.items.size() == 1) out.append(",", Origin::message);
  out.append(list.is_tuple ? ")" : "]", Origin::message);
}

void append_repr_dict(Run& run, const Dict& dict, Text& out) {
  out.append("{", Origin::message);
  bool first = true;
  for (const auto& [key, value] : dict.entries()) {
    if (!std::exchange(first, false)) out.append(", ", Origin::message);
    append_repr(run, key, out);
    out.append(": ", Origin::message);
    append_repr(run, value, out);
    if (run.failed()) return;
  }
  out.append("}", Origin::message);
}

std::string scalar_text(const Value& value) {
  if (value.is_undefined()) return "Undefined";
  if (value.is_none()) return "None";
  if (value.is_bool()) return value.truthy() ? "True" : "False";
  if (value.is_integer()) return fmt::format("{}", value.integer());
  if (value.is_real()) return real_text(value.real());
  if (value.loop() != nullptr) return "<LoopContext>";
  if (value.space() != nullptr) return "<Namespace>";
  return fmt::format("<function {}>", value.function()->name);
}

void append_repr(Run& run, const Value& value, Text& out) {
  if (!run.charge() || !run.fits(out.size())) return;
  if (const Text* text = value.text())
    append_quoted(*text, out);
  else if (const List* list = value.list())
    append_repr_list(run, *list, out);
  else if (const Dict* dict = value.dict())
    append_repr_dict(run, *dict, out);
  else
    out.append(scalar_text(value), Origin::message);
}

class JsonWriter {
 public:
  JsonWriter(Run& run, const JsonStyle& style) : run_(run), style_(style) {}

  Text take() { return std::move(out_); }

  void write(const Value& value, size_t level) {
    if (!run_.charge() || !run_.fits(out_.size())) return;
    if (const Text* text = value.text()) return write_text(*text);
    if (const List* list = value.list()) return write_list(*list, level);
    if (const Dict* dict = value.dict()) return write_dict(*dict, level);
    const auto scalar = json_scalar(value);
    if (scalar)
      put(*scalar);
    else
      run_.fail("tojson cannot write {}",
                value.is_undefined() ? value.what() : std::string(value.kind_name()));
  }

 private:
  void put(std::string_view text) { out_.append(text, Origin::message); }

  static std::optional<std::string> json_scalar(const Value& value) {
    if (value.is_none()) return "null";
    if (value.is_bool()) return value.truthy() ? "true" : "false";
    if (value.is_integer()) return fmt::format("{}", value.integer());
    if (!value.is_real()) return {};
    const double number = value.real();
    if (std::isnan(number)) return "NaN";
    if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
    return real_text(number);
  }

  void write_list(const List& list, size_t level) {
    if (list.items.empty()) return put("[]");
    put("[");
    for (size_t i = 0; i < list.items.size() && !run_.failed(); ++i) {
      start_item(i, level + 1);
      write(list.items[i], level + 1);
    }
    start_line(level);
    put("]");
  }

  void write_dict(const Dict& dict, size_t level) {
    if (dict.entries().empty()) return put("{}");
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries()) entries.push_back(&entry);
    if (style_.sorts_keys)
      std::ranges::stable_sort(
          entries, {}, [this](const auto* entry) { return key_text(entry->first).bytes(); });
    put("{");
    for (size_t i = 0; i < entries.size() && !run_.failed(); ++i) {
      start_item(i, level + 1);
      write_text(key_text(entries[i]->first));
      put(style_.key_separator);
      write(entries[i]->second, level + 1);
    }
    start_line(level);
    put("}");
  }

  Text key_text(const Value& key) {
    if (const Text* text = key.text()) return *text;
    const auto scalar = json_scalar(key);
    if (!scalar) run_.fail("tojson cannot write a key that is a {}", key.kind_name());
    return {scalar.value_or(""), Origin::message};
  }

  void start_item(size_t index, size_t level) {
    if (index != 0) put(style_.item_separator);
    start_line(level);
  }

  void start_line(size_t level) {
    if (!style_.indent || !run_.may_make(style_.indent->size() * level)) return;
    put("\n");
    for (size_t i = 0; i < level; ++i) put(*style_.indent);
  }

  void write_text(const Text& text) {
    put("\"");
    const std::string& bytes = text.bytes();
    for (size_t at = 0; at < bytes.size();) {
      const text::Utf8Char c = text::decode_utf8(bytes, at);
      const std::string escape = escape_of(c.code);
      if (escape.empty())
        out_.append(text, at, at + c.bytes);
      else
        out_.append(escape, text.origin_at(at));
      at += c.bytes;
    }
    put("\"");
  }

  std::string escape_of(char32_t code) const {
    constexpr std::string_view kPlain = "\"\\\n\r\t\f\b";
    constexpr std::string_view kLetters = "\"\\nrtfb";
    if (code < 0x80)
      if (const size_t at = kPlain.find(static_cast<char>(code)); at != std::string_view::npos)
        return {'\\', kLetters[at]};
    const auto number = static_cast<uint32_t>(code);
    if (code < 0x20) return fmt::format("\\u{:04x}", number);
    if (code < 0x7f || !style_.ascii_only) return {};
    if (code == 0x7f) return {};
    if (code < 0x10000) return fmt::format("\\u{:04x}", number);
    const uint32_t rest = number - 0x10000;
    return fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (rest >> 10), 0xdc00 + (rest & 0x3ff));
  }

  Run& run_;
  const JsonStyle& style_;
  Text out_;
};

}  // namespace

Text to_text(Run& run, const Value& value) {
  if (const Text* text = value.text()) return *text;
  if (value.is_undefined()) return {};
  return to_repr(run, value);
}

Text to_repr(Run& run, const Value& value) {
  Text out;
  append_repr(run, value, out);
  return out;
}

std::string real_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto written =
      std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::scientific);
  std::string_view shown(buffer, written.ptr);
  const size_t e = shown.find('e');
  int exponent = 0;
  const std::string_view digits = shown.substr(shown[e + 1] == '+' ? e + 2 : e + 1);
  std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
  if (exponent < -4 || exponent >= kPlainExponentMax) return std::string(shown);
  const auto fixed =
      std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::fixed);
  std::string plain(buffer, fixed.ptr);
  if (plain.find('.') == std::string::npos) plain += ".0";
  return plain;
}

Text to_json(Run& run, const Value& value, const JsonStyle& style) {
  JsonWriter writer(run, style);
  writer.write(value, 0);
  return writer.take();
}

}  // namespace sluice::jinja
