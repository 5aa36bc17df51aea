// The memory ledger: every large allocation is entered here under what it is for, so that the sum
// is what the process uses, a stated cap can be kept, and a report can say where memory went.
// Entries are made while a model is loaded or a session is set up; reading is free. One thread at
// a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice {

enum class MemoryUse : uint8_t {
  weights,  ///< dense weights, resident for the life of the model
  kv,       ///< KV caches
  scratch,  ///< activations and the working memory of a prompt, logits, tables
  cache,    ///< expert slots
  io,       ///< staging and probe buffers, rings
};
inline constexpr size_t kMemoryUseCount = 5;

std::string_view memory_use_name(MemoryUse use);

class Ledger {
 public:
  void add(MemoryUse use, uint64_t bytes) { bytes_[static_cast<size_t>(use)] += bytes; }
  void remove(MemoryUse use, uint64_t bytes);

  uint64_t bytes(MemoryUse use) const { return bytes_[static_cast<size_t>(use)]; }
  uint64_t total_bytes() const;

 private:
  std::array<uint64_t, kMemoryUseCount> bytes_{};
};

}  // namespace sluice
