// Writes GGUF files, as one file or split into shards: for the packed layout, for tools, and for
// tests, which build every model they read. The writer holds the key/values; tensor data comes
// from a source piece by piece, so that a file of any size is written with little memory. The same
// calls give the same bytes. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.h"
#include "gguf/format.h"
#include "quant/dtype.h"

namespace sluice::gguf {

/// Types with a value type of their own in the format.
template <typename T>
concept Storable = std::is_arithmetic_v<T> || std::same_as<T, std::string>;

template <Storable T>
constexpr ValueType value_type_of() {
  if constexpr (std::same_as<T, std::string>) return ValueType::text;
  if constexpr (std::same_as<T, bool>) return ValueType::boolean;
  if constexpr (std::same_as<T, float>) return ValueType::f32;
  if constexpr (std::same_as<T, double>) return ValueType::f64;
  constexpr bool kSigned = std::is_signed_v<T>;
  if constexpr (sizeof(T) == 1) return kSigned ? ValueType::i8 : ValueType::u8;
  if constexpr (sizeof(T) == 2) return kSigned ? ValueType::i16 : ValueType::u16;
  if constexpr (sizeof(T) == 4) return kSigned ? ValueType::i32 : ValueType::u32;
  return kSigned ? ValueType::i64 : ValueType::u64;
}

/// Appends a value as the format stores it: little-endian, a text with its length in front.
template <Storable T>
void append_value(std::string& bytes, const T& value) {
  if constexpr (std::same_as<T, std::string>) {
    append_value(bytes, uint64_t{value.size()});
    bytes += value;
  } else {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
}

struct WriterOptions {
  uint32_t version = kVersionMax;
  uint32_t alignment = kAlignmentDefault;  ///< a power of two; stored when it is not the default
  uint32_t shard_count = 1;                ///< tensors are dealt out in order, equally many each
};

class GgufWriter {
 public:
  /// Fills `piece` with the tensor's bytes from `offset` on. Asked in order, each byte once.
  using TensorSource = std::function<Status(uint64_t offset, std::span<std::byte> piece)>;

  explicit GgufWriter(const WriterOptions& options = {});

  /// Keys and tensor names are written once each, in the order of these calls.
  template <Storable T>
  void set(std::string_view key, const T& value) {
    std::string bytes;
    append_value(bytes, value);
    set_encoded(key, value_type_of<T>(), bytes);
  }
  void set(std::string_view key, const char* text) { set(key, std::string(text)); }
  template <Storable T>
  void set_array(std::string_view key, const std::vector<T>& values) {
    std::string bytes;
    append_value(bytes, static_cast<uint32_t>(value_type_of<T>()));
    append_value(bytes, uint64_t{values.size()});
    for (const T& value : values) append_value(bytes, value);
    set_encoded(key, ValueType::array, bytes);
  }
  /// A value that is already encoded.
  void set_encoded(std::string_view key, ValueType type, std::string_view bytes);

  /// REQUIRES: shape has 1 to 4 dimensions, none 0, rows of whole blocks.
  void add_tensor(std::string name, Dtype dtype, std::vector<uint64_t> shape, TensorSource source);
  /// The bytes are not copied: they must live until the last write. REQUIRES: as many as the shape
  /// needs.
  void add_tensor(std::string name, Dtype dtype, std::vector<uint64_t> shape,
                  std::span<const std::byte> bytes);

  /// The paths that write() makes: `path` itself, or with several shards the names of the set, of
  /// which `path` without its ".gguf" is the prefix.
  std::vector<std::string> shard_paths(const std::string& path) const;
  /// Writes all shards. After an error the files written so far are left, incomplete.
  Status write(const std::string& path) const;
  /// Writes one shard. REQUIRES: shard < shard_count.
  Status write_shard(uint32_t shard, std::ostream& out) const;
  /// All shards as bytes in memory, for tests. REQUIRES: sources that do not fail.
  std::vector<std::string> encode() const;

 private:
  struct PendingTensor {
    std::string name;
    Dtype dtype;
    std::vector<uint64_t> shape;
    uint64_t bytes;
    TensorSource source;
  };

  std::span<const PendingTensor> tensors_of(uint32_t shard) const;
  std::string encode_header(uint32_t shard) const;

  WriterOptions options_;
  std::vector<std::string> keys_;
  std::string values_;  ///< the key/values, encoded one after the other
  std::vector<PendingTensor> tensors_;
};

}  // namespace sluice::gguf
