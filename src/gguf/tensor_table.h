// The tensors of one file: parses an entry of its table and gives every tensor its place in the
// file. Used by the header parser only; pure functions. What passes here is safe to read: the
// shape is sane, the bytes follow from it and lie inside the file, and no two tensors share any.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "gguf/gguf_file.h"
#include "gguf/head_reader.h"

namespace sluice::gguf {

/// Reads the entry of a tensor whose name has just been read. Its extent's offset is relative to
/// the start of the data, until place_tensors. When the reader has failed, it means nothing.
Result<Tensor> parse_tensor(HeadReader& reader, std::string_view name);

/// Where tensor data lies in the file.
struct DataRange {
  uint64_t begin = 0;  ///< from the start of the file; may lie past its end
  uint64_t alignment = 1;
  uint64_t file_bytes = 0;
};

/// Makes the extents absolute and checks each against the file, and all against each other.
Status place_tensors(std::vector<Tensor>& tensors, const DataRange& range);

}  // namespace sluice::gguf
