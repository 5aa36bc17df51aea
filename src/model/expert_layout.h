// Where the routed experts of a layer lie, in their file and in a slot, and how they look in memory.
//
// An unmodified GGUF file stores the gate matrices of all experts of a layer in one tensor, the up
// matrices in another, the down matrices in a third; some files merge gate and up. One expert is
// thus two or three slices in different places: its *parts*. Each part is read on its own and has
// its own ready flag, so that computing starts on gate and up while down is still being read.
// Immutable; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/extent.h"
#include "model/matrix.h"

namespace sluice {

enum class ExpertPartKind : uint8_t {
  gate,
  up,
  gate_up,  ///< rows 0 … n−1 are gate, n … 2n−1 are up
  down,
};

inline constexpr size_t kExpertPartCountMax = 3;

struct ExpertPart {
  ExpertPartKind kind = ExpertPartKind::gate;
  Matrix shape;             ///< of one expert, without data
  FileExtent first_expert;  ///< of expert 0; the others follow without gaps

  FileExtent extent(uint32_t expert) const {
    return {first_expert.file, first_expert.offset + expert * first_expert.bytes,
            first_expert.bytes};
  }
};

/// An expert's matrices in memory. Valid while the lease on its slot is held.
struct ExpertView {
  Matrix gate;  ///< [expert_hidden_size][hidden_size]
  Matrix up;    ///< [expert_hidden_size][hidden_size]
  Matrix down;  ///< [hidden_size][expert_hidden_size]
};

/// A bit per part, in the order of ExpertLayout::parts.
using PartMask = uint32_t;

class ExpertLayout {
 public:
  ExpertLayout() = default;
  /// Parts in reading order: what is needed first comes first. REQUIRES: at most
  /// kExpertPartCountMax parts that together give gate, up and down.
  ExpertLayout(uint32_t expert_count, std::span<const ExpertPart> parts);

  uint32_t expert_count() const { return expert_count_; }  ///< 0: a dense layer
  std::span<const ExpertPart> parts() const { return {parts_.data(), part_count_}; }
  uint64_t expert_bytes() const;  ///< of one expert, all parts

  PartMask all_parts() const { return (PartMask{1} << part_count_) - 1; }
  PartMask gate_up_parts() const { return all_parts() & ~down_parts(); }
  PartMask down_parts() const { return PartMask{1} << down_index_; }

  /// The matrices, given where each part's first byte is.
  ExpertView view(std::span<const std::byte* const> part_data) const;

 private:
  uint32_t expert_count_ = 0;
  std::array<ExpertPart, kExpertPartCountMax> parts_{};
  size_t part_count_ = 0;
  size_t down_index_ = 0;
};

}  // namespace sluice
