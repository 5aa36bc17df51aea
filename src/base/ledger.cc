#include "base/ledger.h"

#include <numeric>

#include "base/check.h"

namespace sluice {

std::string_view memory_use_name(MemoryUse use) {
  constexpr std::array<std::string_view, kMemoryUseCount> kNames{"weights", "kv", "scratch",
                                                                 "cache", "io"};
  return kNames[static_cast<size_t>(use)];
}

void Ledger::remove(MemoryUse use, uint64_t bytes) {
  CHECK(bytes_[static_cast<size_t>(use)] >= bytes);
  bytes_[static_cast<size_t>(use)] -= bytes;
}

uint64_t Ledger::total_bytes() const {
  return std::accumulate(bytes_.begin(), bytes_.end(), uint64_t{0});
}

}  // namespace sluice
