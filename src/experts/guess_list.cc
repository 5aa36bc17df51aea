#include "experts/guess_list.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace sluice {
namespace {

auto urgency(const Guess& guess) {
  return std::make_tuple(guess.distance == kNextToken, guess.id.layer, guess.distance, guess.rank,
                         guess.id.index);
}

bool is_less_urgent(const Guess& a, const Guess& b) {
  return urgency(a) > urgency(b);
}

}  // namespace

void GuessList::add(const Guess& guess) {
  const auto same = std::ranges::find(guesses_, guess.id, &Guess::id);
  if (same != guesses_.end()) {
    if (!is_less_urgent(*same, guess)) return;
    guesses_.erase(same);
  }
  if (guesses_.size() == capacity_) {
    if (!is_less_urgent(guesses_.front(), guess)) return;
    guesses_.erase(guesses_.begin());
  }
  guesses_.insert(std::ranges::upper_bound(guesses_, guess, is_less_urgent), guess);
}

Guess GuessList::pop() {
  CHECK(!guesses_.empty());
  const Guess guess = guesses_.back();
  guesses_.pop_back();
  return guess;
}

void GuessList::drop_layer(uint32_t layer) {
  std::erase_if(guesses_, [layer](const Guess& guess) { return guess.id.layer == layer; });
}

}  // namespace sluice
