#include "gguf/value_parser.h"

#include <cstring>

#include "gguf/format.h"

namespace sluice::gguf {
namespace {

Error unknown_type(uint32_t type_id) {
  return make_error(ErrorKind::corrupt, "unknown value type {}; the format knows 0 to {}", type_id,
                    static_cast<uint32_t>(ValueType::f64));
}

/// An array of fixed-size numbers, each widened from Stored to Kept.
template <typename Stored, typename Kept>
Value parse_numbers(HeadReader& reader, uint64_t count) {
  if (!reader.can_hold(count, sizeof(Stored))) return {};
  const std::byte* stored = reader.take(count * sizeof(Stored)).data();
  std::vector<Kept> numbers(static_cast<size_t>(count));
  for (Kept& number : numbers) {
    Stored value;
    std::memcpy(&value, stored, sizeof(value));
    stored += sizeof(value);
    number = value;
  }
  return numbers;
}

/// Booleans are bytes of which the format allows two values.
Result<Value> parse_booleans(HeadReader& reader, uint64_t count) {
  const auto bytes = reader.take(count);
  std::vector<bool> booleans(bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] > std::byte{1})
      return make_error(ErrorKind::corrupt, "a boolean holds {}", static_cast<int>(bytes[i]));
    booleans[i] = bytes[i] == std::byte{1};
  }
  return Value(std::move(booleans));
}

Result<Value> parse_boolean(HeadReader& reader) {
  auto booleans = parse_booleans(reader, 1);
  if (!booleans.ok() || !reader.ok()) return booleans;
  const bool value = std::get<std::vector<bool>>(*booleans).front();
  return Value(value);
}

Value parse_texts(HeadReader& reader, uint64_t count) {
  if (!reader.can_hold(count, value_bytes_min(ValueType::text))) return {};
  std::vector<std::string> texts;
  texts.reserve(static_cast<size_t>(count));
  for (uint64_t i = 0; i < count && reader.ok(); ++i) texts.emplace_back(reader.read_text());
  return texts;
}

/// Steps over `count` elements of an array inside an array. `depth` counts the arrays around them
/// and bounds the recursion; each level reads bytes of its own, so the work stays linear.
Status skip_elements(HeadReader& reader, ValueType type, uint64_t count, int depth) {
  if (!reader.can_hold(count, value_bytes_min(type))) return {};
  if (has_fixed_size(type)) {
    reader.take(count * value_bytes_min(type));
    return {};
  }
  if (depth > kArrayDepthMax)
    return make_error(ErrorKind::corrupt, "arrays are nested more than {} deep", kArrayDepthMax);
  for (uint64_t i = 0; i < count && reader.ok(); ++i) {
    if (type == ValueType::text) {
      reader.read_text();
      continue;
    }
    const auto inner_type = reader.read<uint32_t>();
    const auto inner_count = reader.read<uint64_t>();
    if (!reader.ok()) break;
    if (!is_value_type(inner_type)) return unknown_type(inner_type);
    const Status inner =
        skip_elements(reader, static_cast<ValueType>(inner_type), inner_count, depth + 1);
    if (!inner.ok()) return inner;
  }
  return {};
}

Result<Value> parse_array(HeadReader& reader) {
  const auto type_id = reader.read<uint32_t>();
  const auto count = reader.read<uint64_t>();
  if (!reader.ok()) return Value{};
  switch (static_cast<ValueType>(type_id)) {
    case ValueType::u8:
      return parse_numbers<uint8_t, uint64_t>(reader, count);
    case ValueType::i8:
      return parse_numbers<int8_t, int64_t>(reader, count);
    case ValueType::u16:
      return parse_numbers<uint16_t, uint64_t>(reader, count);
    case ValueType::i16:
      return parse_numbers<int16_t, int64_t>(reader, count);
    case ValueType::u32:
      return parse_numbers<uint32_t, uint64_t>(reader, count);
    case ValueType::i32:
      return parse_numbers<int32_t, int64_t>(reader, count);
    case ValueType::f32:
      return parse_numbers<float, double>(reader, count);
    case ValueType::boolean:
      return parse_booleans(reader, count);
    case ValueType::text:
      return parse_texts(reader, count);
    case ValueType::u64:
      return parse_numbers<uint64_t, uint64_t>(reader, count);
    case ValueType::i64:
      return parse_numbers<int64_t, int64_t>(reader, count);
    case ValueType::f64:
      return parse_numbers<double, double>(reader, count);
    case ValueType::array:
      break;
  }
  if (!is_value_type(type_id)) return unknown_type(type_id);
  const Status skipped = skip_elements(reader, ValueType::array, count, 1);
  return skipped.ok() ? Result<Value>(Value(NestedArray{})) : skipped.error();
}

}  // namespace

Result<Value> parse_value(HeadReader& reader, uint32_t type_id) {
  switch (static_cast<ValueType>(type_id)) {
    case ValueType::u8:
      return Value(uint64_t{reader.read<uint8_t>()});
    case ValueType::i8:
      return Value(int64_t{reader.read<int8_t>()});
    case ValueType::u16:
      return Value(uint64_t{reader.read<uint16_t>()});
    case ValueType::i16:
      return Value(int64_t{reader.read<int16_t>()});
    case ValueType::u32:
      return Value(uint64_t{reader.read<uint32_t>()});
    case ValueType::i32:
      return Value(int64_t{reader.read<int32_t>()});
    case ValueType::f32:
      return Value(double{reader.read<float>()});
    case ValueType::boolean:
      return parse_boolean(reader);
    case ValueType::text:
      return Value(std::string(reader.read_text()));
    case ValueType::array:
      return parse_array(reader);
    case ValueType::u64:
      return Value(reader.read<uint64_t>());
    case ValueType::i64:
      return Value(reader.read<int64_t>());
    case ValueType::f64:
      return Value(reader.read<double>());
  }
  return unknown_type(type_id);
}

}  // namespace sluice::gguf
