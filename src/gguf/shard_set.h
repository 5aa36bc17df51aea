// The files of one model as one: reads each header, checks that the files are the whole of one set
// and belong together, and joins them. A set is made by splitting a model between tensors: the
// first shard carries the key/values, every shard says which of how many it is (split.no,
// split.count) and how many tensors the set holds (split.tensors.count). No weight is read before
// all of that has been found to agree. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/gguf_file.h"
#include "gguf/header_parser.h"

namespace sluice::gguf {

/// One file and its checked header.
struct Shard {
  std::string path;
  uint64_t file_bytes = 0;
  ShardHeader header;
};

/// Reads as much of a file as its header needs, in few reads. Errors name the file.
Result<Shard> read_shard(const std::string& path);

class SetReader {
 public:
  /// Opens a file and, where it says that there are others, those.
  static Result<GgufFile> open(const std::string& path);

  /// Joins the shards of one set, given in any order. REQUIRES: !shards.empty()
  static Result<GgufFile> join(std::vector<Shard> shards);

 private:
  static Status add_tensors(GgufFile& file, std::vector<Tensor> tensors);
};

}  // namespace sluice::gguf
