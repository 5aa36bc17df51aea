// Writes the file that engine/logits_base describes: header, the tokens of all chunks, then a row
// for each scored position. The file appears under its name when all of that is there. A file of
// that name that is no such file is refused and stays as it is. One thread at a time.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/logits_base.h"
#include "os/new_file.h"

namespace sluice {

class LogitsBaseWriter {
 public:
  static Result<LogitsBaseWriter> create(const std::string& path, const ChunkShape& shape);

  /// Those of the next chunk. REQUIRES: shape.context_tokens of them; before the first row.
  Status add_tokens(std::span<const text::TokenId> tokens);
  /// The next row, [vocabulary]; `log_sum` is log_sum_exp(logits). REQUIRES: finite logits.
  Status add_row(std::span<const float> logits, double log_sum);
  /// REQUIRES: all tokens and rows were added.
  Status commit();

 private:
  LogitsBaseWriter(os::NewFile file, const ChunkShape& shape);

  os::NewFile file_;
  ChunkShape shape_;
  uint64_t chunks_left_;
  uint64_t rows_left_;
  std::vector<uint16_t> row_;  ///< head, codes and padding
};

}  // namespace sluice
