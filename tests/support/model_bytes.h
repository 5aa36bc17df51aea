// A model file held in memory whole: what tests need to put an engine together by hand over a fake
// drive, and to write changed copies of a model. Immutable after open(); any thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gguf/gguf_file.h"
#include "gguf/gguf_writer.h"
#include "model/weight_map.h"

namespace sluice {

class ModelBytes {
 public:
  /// A file that cannot be read stops the test program.
  static std::unique_ptr<ModelBytes> open(const std::string& path);

  const gguf::GgufFile& header() const { return header_; }
  const ModelConfig& config() const { return config_; }
  /// Dense weights point into files().
  const WeightMap& weights() const { return *weights_; }
  /// The bytes of each shard.
  const std::vector<std::vector<std::byte>>& files() const { return files_; }

  std::span<const std::byte> bytes_of(const FileExtent& extent) const {
    return std::span(files_[extent.file]).subspan(extent.offset, extent.bytes);
  }

 private:
  explicit ModelBytes(gguf::GgufFile header) : header_(std::move(header)) {}

  gguf::GgufFile header_;
  ModelConfig config_;
  std::unique_ptr<WeightMap> weights_;
  std::vector<std::vector<std::byte>> files_;
  std::vector<std::byte> transposed_;
};

/// Gives all keys of a file to a writer, but those that tell of shards and those in `skipped`.
void copy_keys(const gguf::GgufFile& from, gguf::GgufWriter& to,
               const std::vector<std::string>& skipped = {});

/// Writes the model with each layer's gate and up tensors merged into one, as one file.
void write_merged_twin(const ModelBytes& model, const std::string& path);

/// Writes the model with `expert_count` experts a layer, of which those beyond the model's own
/// repeat their bytes, and a router of random numbers that spreads tokens over all of them.
void write_with_more_experts(const ModelBytes& model, uint64_t expert_count,
                             const std::string& path);

/// Writes the model with only the first `expert_count` experts of one layer.
void write_with_fewer_experts(const ModelBytes& model, uint32_t layer, uint64_t expert_count,
                              const std::string& path);

}  // namespace sluice
