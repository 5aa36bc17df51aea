// The usage census of a model: how often each expert was picked, over all runs. It says which
// experts to read before anyone asks: at start-up, while idle, and ahead of a long prompt
// (mechanisms 19 to 21). Knowledge, not cache: it survives the run in a small file (census_file.h).
//
// Picks are counted by where they come from. What decode will use is best told by what decode used,
// so a pick while decoding counts four times one of a prompt. Old use fades: when the sum of all
// counts reaches its bound, the counts are halved. The bound is what 65,536 decoded tokens pick, so
// a pick counts in full for the next 32k tokens at least, and a topic left behind loses half of its
// weight every 32k. Halving by the sum rather than by time keeps a census that is seldom used.
//
// Counting and ranking do not allocate. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/expert_id.h"

namespace sluice {

/// Which model a census is about. A file of another is never used.
struct CensusIdentity {
  uint32_t layer_count = 0;   ///< of the model, MoE or not
  uint32_t expert_count = 0;  ///< of a layer, the most
  uint64_t model_bytes = 0;   ///< of all its files
  std::string model_name;     ///< of its (first) file, without folders

  friend bool operator==(const CensusIdentity&, const CensusIdentity&) = default;
};

enum class PickSource : uint8_t { decode, prompt };

class UsageCensus {
 public:
  /// `used_count`: experts that a token picks in a layer.
  UsageCensus(CensusIdentity identity, uint32_t used_count);

  const CensusIdentity& identity() const { return identity_; }

  /// REQUIRES: expert.layer < layer_count, expert.index < expert_count
  void add(ExpertId expert, PickSource source, uint32_t pick_count = 1);
  /// Once for each decoded token.
  void on_decode_token() { ++decode_token_count_; }

  uint32_t count(ExpertId expert) const { return counts_[place_of(expert)]; }
  uint64_t decode_token_count() const { return decode_token_count_; }  ///< of this run

  /// The experts of a layer that were ever picked, the most used first, ties by lower index. Valid
  /// until the next call.
  std::span<const ExpertId> most_used(uint32_t layer);
  /// The same over all layers, ties by lower layer, then index.
  std::span<const ExpertId> most_used();

  /// Joins what a file holds with what this run has added since it was last joined or stored.
  /// REQUIRES: as many as counts()
  void join(std::span<const uint32_t> stored);
  /// counts() lie in a file now: this run has added nothing to them yet.
  void mark_stored();

  /// [layer][expert]
  std::span<const uint32_t> counts() const { return counts_; }

 private:
  size_t place_of(ExpertId expert) const;
  std::span<ExpertId> list_layer(uint32_t layer);
  std::span<const ExpertId> rank(std::span<ExpertId> experts);
  void halve();

  CensusIdentity identity_;
  uint64_t sum_max_;
  std::vector<uint32_t> counts_;  ///< [layer][expert], all that is known
  std::vector<uint32_t> added_;   ///< [layer][expert], of it what no file has yet
  std::vector<ExpertId> order_;   ///< room for rankings
  uint64_t sum_ = 0;              ///< of counts_
  uint64_t decode_token_count_ = 0;
};

/// The census as the bytes of a file, and back. The format is in docs/census.md. Bytes are not
/// trusted: a census that is damaged, of another version or of another model is an error that says
/// which.
std::string write_census(const CensusIdentity& identity, std::span<const uint32_t> counts);
Result<std::vector<uint32_t>> read_census(std::string_view bytes, const CensusIdentity& identity);

/// Whether these are the first bytes of some census, good or bad.
bool looks_like_census(std::string_view bytes);
/// The size of a census file of this model.
uint64_t census_bytes(const CensusIdentity& identity);

}  // namespace sluice
