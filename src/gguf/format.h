// The GGUF format in names and numbers: what stands in a file before any weight, and the limits
// that this reader sets. A file is, little-endian throughout:
//
//   magic "GGUF" · version u32 · tensor count u64 · key/value count u64
//   per key/value: key (text) · value type u32 · value
//   per tensor:    name (text) · dimension count u32 · dimensions u64… · type id u32 · offset u64
//   padding to the alignment, then the tensors' data; offsets count from here
//
// A text is its length in bytes (u64), then the bytes. An array is its element type (u32), its
// count (u64), then the elements. Version 2 has the same layout as 3; version 1 counted in u32.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/units.h"

namespace sluice::gguf {

inline constexpr std::string_view kMagic = "GGUF";
inline constexpr uint32_t kVersionMin = 2;
inline constexpr uint32_t kVersionMax = 3;

inline constexpr uint64_t kAlignmentDefault = 32;
inline constexpr uint64_t kAlignmentMax = 16 * kMiB;  ///< far above a page; a larger one is damage
inline constexpr uint32_t kDimensionsMax = 4;
inline constexpr int kArrayDepthMax = 8;  ///< arrays inside arrays; files in use have at most 2

inline constexpr std::string_view kKeyAlignment = "general.alignment";
inline constexpr std::string_view kKeySplitNumber = "split.no";  ///< of this shard, from 0
inline constexpr std::string_view kKeySplitCount = "split.count";
inline constexpr std::string_view kKeySplitTensors = "split.tensors.count";  ///< of the whole set

/// The numbers are the value type ids of the format.
enum class ValueType : uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  text = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};

constexpr bool is_value_type(uint32_t id) {
  return id <= static_cast<uint32_t>(ValueType::f64);
}

constexpr bool has_fixed_size(ValueType type) {
  return type != ValueType::text && type != ValueType::array;
}

/// Bytes of a value of fixed size; for the others the bytes of an empty one. Never 0, so that it
/// bounds how many values the bytes that are left can hold.
constexpr uint64_t value_bytes_min(ValueType type) {
  switch (type) {
    case ValueType::u8:
    case ValueType::i8:
    case ValueType::boolean:
      return 1;
    case ValueType::u16:
    case ValueType::i16:
      return 2;
    case ValueType::u32:
    case ValueType::i32:
    case ValueType::f32:
      return 4;
    case ValueType::u64:
    case ValueType::i64:
    case ValueType::f64:
    case ValueType::text:
      return 8;
    case ValueType::array:
      return 4 + 8;
  }
  return 1;
}

inline constexpr uint64_t kKeyValueBytesMin = 8 + 4 + 1;        ///< empty key, one byte
inline constexpr uint64_t kTensorBytesMin = 8 + 4 + 8 + 4 + 8;  ///< empty name, one dimension

}  // namespace sluice::gguf
