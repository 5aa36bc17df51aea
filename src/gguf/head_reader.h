// Reads values from the head of a file: the bytes that have been read of it so far. A read that
// the head cannot satisfy has one of two causes, and the difference decides what happens next:
// the file goes on, and more of it must be read (needs_more), or the file itself is too short for
// what it claims (past_end). Counts are judged the same way, before anything is allocated for
// them, so no allocation is larger than a small multiple of the bytes in hand.
//
// The first failure sticks and later reads give zeros: read a record, then ask ok(). One thread at
// a time.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/byte_reader.h"
#include "base/check.h"

namespace sluice::gguf {

enum class HeadState { good, needs_more, past_end };

class HeadReader {
 public:
  /// REQUIRES: head.size() ≤ file_bytes.
  HeadReader(std::span<const std::byte> head, uint64_t file_bytes)
      : reader_(head), file_bytes_(file_bytes) {
    CHECK(head.size() <= file_bytes);
  }

  bool ok() const { return state_ == HeadState::good; }
  HeadState state() const { return state_; }
  uint64_t position() const { return reader_.position(); }

  template <typename T>
  T read() {
    return can_hold(1, sizeof(T)) ? reader_.read<T>() : T{};
  }

  /// The next `count` bytes, still owned by the head; empty when they are not there.
  std::span<const std::byte> take(uint64_t count) {
    return can_hold(count, 1) ? reader_.take(count) : std::span<const std::byte>{};
  }

  /// A text: its length, then its bytes.
  std::string_view read_text() {
    const auto bytes = take(read<uint64_t>());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  /// Whether `count` items of at least `item_bytes_min` each can follow; if not, the reader has
  /// failed. REQUIRES: item_bytes_min > 0.
  bool can_hold(uint64_t count, uint64_t item_bytes_min) {
    if (!ok()) return false;
    if (count > (file_bytes_ - position()) / item_bytes_min)
      state_ = HeadState::past_end;
    else if (count > reader_.left() / item_bytes_min)
      state_ = HeadState::needs_more;
    return ok();
  }

 private:
  ByteReader reader_;
  uint64_t file_bytes_;
  HeadState state_ = HeadState::good;
};

}  // namespace sluice::gguf
