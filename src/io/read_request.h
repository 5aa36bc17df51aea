// One wish of the engine: these bytes of that file, in this buffer, with this urgency.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "base/extent.h"
#include "base/result.h"

namespace sluice::io {

/// In order of urgency.
enum class ReadClass : uint8_t {
  demand,    ///< computing waits for it now
  prefetch,  ///< a guess; never before a demand read
  load,      ///< dense weights and preloading, before any token
};
inline constexpr ReadClass kReadClasses[] = {ReadClass::demand, ReadClass::prefetch,
                                             ReadClass::load};
inline constexpr size_t kReadClassCount = std::size(kReadClasses);

/// Who is told when a request has ended. `error` is null on success and lives only during the call.
struct ReadSink {
  void (*on_complete)(void* context, uint64_t tag, const Error* error) = nullptr;
  void* context = nullptr;
};

struct ReadRequest {
  FileExtent wanted;
  /// Room for the window of `wanted` (io/window.h), aligned like the file; the wanted bytes will
  /// start at buffer + window.head. REQUIRES: it outlives the completion.
  std::byte* buffer = nullptr;
  ReadClass read_class = ReadClass::demand;
  uint64_t tag = 0;
  ReadSink sink;
};

}  // namespace sluice::io
