// A trained correction of predictions: an optional file, fitted to one model by
// tools/train_correction, that says how the scores of a later router should be read. A router asked
// early has not seen what the layers in between add. On average that is a linear matter, and two
// things known at the asking layer tell most of it: what the later router says of this state, and
// which experts are about to add their part to it.
//
//   scores = bias + Σ_e predicted_e · P_e + Σ_chosen weight · C_chosen
//
// with vectors for each (later layer, distance). It changes what is read early, never what runs,
// so a bad file costs time and nothing else; a file of another model is refused all the same. The
// format is in docs/lookahead.md. Immutable after reading; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/byte_reader.h"
#include "base/result.h"
#include "lookahead/reach.h"
#include "model/weight_map.h"

namespace sluice {

/// What a file must agree on with the model that it corrects.
struct CorrectionIdentity {
  uint32_t layer_count = 0;
  uint32_t expert_count = 0;
  uint64_t router_hash = 0;  ///< of every router's bytes, see router_hash()

  friend bool operator==(const CorrectionIdentity&, const CorrectionIdentity&) = default;
};

/// FNV-1a over the routers in order of layers, taking eight bytes a step (the last step of a layer
/// is filled up with zeros). REQUIRES: the weights are loaded.
uint64_t router_hash(const WeightMap& map);
CorrectionIdentity correction_identity(const ModelConfig& config, const WeightMap& map);

/// What a prediction knows. Spans of a kind that it lacks are empty and count as zeros.
struct CorrectionInput {
  std::span<const float> predicted = {};  ///< [expert_count], of the later router
  std::span<const int32_t> experts = {};  ///< chosen by this layer
  std::span<const float> weights = {};    ///< of those
};

class Correction {
 public:
  /// Errors name the file and what is wrong with it or differs from the model.
  static Result<Correction> read(const std::string& path, const CorrectionIdentity& model);
  /// The same from bytes, which it keeps. `name` is for messages.
  static Result<Correction> parse(std::string bytes, const CorrectionIdentity& model,
                                  std::string_view name);

  /// Whether predictions of `layer` made `distance` layers before it are corrected.
  bool has(uint32_t layer, uint32_t distance) const { return map_of(layer, distance).bias != 0; }
  /// REQUIRES: has(layer, distance). `scores` is [expert_count] and no part of the input.
  void apply(uint32_t layer, uint32_t distance, const CorrectionInput& input,
             std::span<float> scores) const;

  /// What the ledger should know of.
  uint64_t memory_bytes() const { return bytes_.size(); }

 private:
  /// Where the parts of one map start in bytes_: [expert_count] floats, or as many for each expert
  /// of the input. 0: not there.
  struct Map {
    size_t bias = 0;
    size_t predicted = 0;
    size_t chosen = 0;
  };

  Correction(std::string bytes, const CorrectionIdentity& model)
      : bytes_(std::move(bytes)),
        expert_count_(model.expert_count),
        maps_(size_t{model.layer_count} * kDistanceMax) {}
  Status parse_map(ByteReader& reader);
  const float* floats_at(size_t offset) const {
    return reinterpret_cast<const float*>(bytes_.data() + offset);
  }
  const Map& map_of(uint32_t layer, uint32_t distance) const {
    return maps_[size_t{layer} * kDistanceMax + distance - 1];
  }

  std::string bytes_;
  uint32_t expert_count_;
  std::vector<Map> maps_;  ///< [layer][distance − 1]
};

}  // namespace sluice
