// A range of bytes in one of a model's files: the unit in which weights are located and read.
#pragma once

#include <cstdint>

namespace sluice {

/// `file` counts the shards of a model from 0; `offset` and `bytes` are in bytes.
struct FileExtent {
  uint32_t file = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;

  constexpr uint64_t end() const { return offset + bytes; }
  friend bool operator==(const FileExtent&, const FileExtent&) = default;
};

}  // namespace sluice
