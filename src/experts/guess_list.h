// Experts that will probably be wanted, waiting for the drive to have nothing better to do: nearest
// layer first, then by how far ahead the guess was made (nearer guesses are truer), then by rank.
// A guess gets a slot only when its read would start at once (late binding), so a wrong one that
// never got that far has cost nothing. Allocates at construction only. One thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/expert_id.h"

namespace sluice {

/// The distance of a guess for the next token: it comes after all guesses for this one.
inline constexpr uint32_t kNextToken = 1u << 16;

struct Guess {
  ExpertId id;
  uint32_t distance = 1;  ///< layers between the one that guessed and the one guessed for
  uint32_t rank = 0;      ///< 0: the likeliest
};

class GuessList {
 public:
  explicit GuessList(size_t capacity) : capacity_(capacity) { guesses_.reserve(capacity); }

  bool empty() const { return guesses_.empty(); }
  size_t size() const { return guesses_.size(); }

  /// Adds a guess; if the expert waits already, the more urgent of the two stays. When the list is
  /// full the least urgent is dropped.
  void add(const Guess& guess);
  /// The most urgent. REQUIRES: !empty()
  Guess pop();
  /// Drops the guesses for a layer, whose turn has come.
  void drop_layer(uint32_t layer);
  void clear() { guesses_.clear(); }

 private:
  const size_t capacity_;
  std::vector<Guess> guesses_;  ///< the most urgent last
};

}  // namespace sluice
