// A model as it lies on the drive, opened: parsed headers, a reader and a queue over its shards,
// and the dense weights brought into memory. The routed experts stay where they are. One thread at
// a time.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/ledger.h"
#include "base/log.h"
#include "engine/options.h"
#include "gguf/gguf_file.h"
#include "io/device_probe.h"
#include "io/read_queue.h"
#include "model/weight_map.h"
#include "os/arena.h"
#include "os/async_read.h"
#include "text/tokenizer.h"

namespace sluice {

/// What a model is called in reports: the name of its (first) file, without folders.
std::string display_name_of(const gguf::GgufFile& file);

/// The vocabulary of a model file, whole or vocabulary-only.
Result<text::Vocabulary> read_vocabulary(const gguf::GgufFile& file);

class ModelFiles {
 public:
  /// Opens every shard and checks that all that the model needs is there. Reads no weights.
  static Result<std::unique_ptr<ModelFiles>> open(const std::string& path,
                                                  const EngineOptions& options, const Log& log);
  ~ModelFiles();

  const ModelConfig& config() const { return config_; }
  const WeightMap& weights() const { return *weights_; }
  const text::Tokenizer& tokenizer() const { return *tokenizer_; }
  io::ReadQueue& queue() { return *queue_; }
  /// Alignment of the file that holds the layer's experts.
  uint32_t expert_alignment(size_t layer) const;

  bool reads_direct() const { return direct_; }  ///< every shard
  std::string_view reader_name() const { return reader_->name(); }
  const std::string& display_name() const { return display_name_; }
  const std::vector<std::string>& paths() const { return paths_; }  ///< of every shard
  uint64_t file_bytes() const;                                      ///< of all shards

  /// What load_dense() will take.
  uint64_t dense_arena_bytes() const;
  /// Reads the dense weights into anonymous memory and enters it in the ledger. When it is stopped
  /// or fails, nothing but destruction may follow.
  Status load_dense(Ledger& ledger, const std::atomic<bool>* stop);

  /// The loaded dense weights, piece by piece.
  std::vector<std::span<const std::byte>> dense_pieces() const;

  /// Measures the drive with reads of this size, into so much memory that is free for the moment.
  /// REQUIRES: nothing is in flight.
  io::DeviceProfile probe_drive(uint64_t read_bytes, uint64_t memory_bytes);

 private:
  ModelFiles() = default;
  Status open_shards(const gguf::GgufFile& file, const EngineOptions& options, const Log& log);

  std::string display_name_;
  std::vector<std::string> paths_;
  ModelConfig config_;
  std::unique_ptr<WeightMap> weights_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  std::vector<std::unique_ptr<os::File>> shards_;
  std::unique_ptr<os::AsyncReader> reader_;
  std::unique_ptr<io::ReadQueue> queue_;
  bool direct_ = true;
  os::Arena dense_arena_;
  Ledger* ledger_ = nullptr;
};

}  // namespace sluice
