// Reads little-endian values from bytes that nobody has vouched for. Every read is bounded; the
// first one that does not fit marks the reader failed, and all later reads give zeros, so that a
// parser may read a whole record and ask ok() once. One thread at a time.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace sluice {

static_assert(std::endian::native == std::endian::little,
              "GGUF files and our packed structs are "
              "little-endian");

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  size_t position() const { return position_; }
  size_t left() const { return ok_ ? bytes_.size() - position_ : 0; }

  template <typename T>
  T read() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    const auto raw = take(sizeof(T));
    if (ok_) std::memcpy(&value, raw.data(), sizeof(T));
    return value;
  }

  /// The next `count` bytes, still owned by the underlying buffer; empty when they are not there.
  std::span<const std::byte> take(uint64_t count) {
    if (count > left()) {
      ok_ = false;
      return {};
    }
    const auto part = bytes_.subspan(position_, static_cast<size_t>(count));
    position_ += static_cast<size_t>(count);
    return part;
  }

  std::string_view take_text(uint64_t count) {
    const auto part = take(count);
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }

 private:
  std::span<const std::byte> bytes_;
  size_t position_ = 0;
  bool ok_ = true;
};

}  // namespace sluice
