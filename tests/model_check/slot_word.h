// The word of a slot (experts/slot_state.h) as a value, for models: what each transition makes of
// it, or that it is forbidden. That the code agrees is tested in slot_model_test.cc.
#pragma once

#include <compare>
#include <cstdint>

#include "experts/slot_state.h"

namespace sluice::model_check {

inline constexpr uint8_t kSlotParts = 2;
inline constexpr uint8_t kAllSlotParts = (1u << kSlotParts) - 1;

struct SlotWord {
  uint8_t phase = static_cast<uint8_t>(SlotPhase::empty);
  uint8_t parts = 0;
  uint8_t leases = 0;
  uint8_t is_forbidden = 0;  ///< the transition that led here breaks a REQUIRES

  auto operator<=>(const SlotWord&) const = default;

  bool is(SlotPhase other) const { return phase == static_cast<uint8_t>(other); }
  bool has_part(uint8_t part) const { return (parts >> part & 1) != 0; }
  bool is_read_into() const { return is(SlotPhase::reading) || is(SlotPhase::failed); }

  SlotWord with_phase(SlotPhase next) const {
    SlotWord word = *this;
    word.phase = static_cast<uint8_t>(next);
    return word;
  }
  SlotWord unless(bool is_wrong) const {
    SlotWord word = *this;
    word.is_forbidden |= is_wrong;
    return word;
  }

  SlotWord begin_read() const { return with_phase(SlotPhase::reading).unless(*this != SlotWord{}); }
  SlotWord part_ready(uint8_t part) const {
    SlotWord word = *this;
    word.parts = static_cast<uint8_t>(parts | 1u << part);
    if (is(SlotPhase::reading) && word.parts == kAllSlotParts)
      word = word.with_phase(SlotPhase::resident);
    return word.unless(!is_read_into());
  }
  SlotWord fail() const { return with_phase(SlotPhase::failed).unless(!is_read_into()); }
  SlotWord give_up() const {
    const SlotWord word = is(SlotPhase::resident) ? *this : with_phase(SlotPhase::failed);
    return word.unless(is(SlotPhase::empty) || leases > 0);
  }
  SlotWord add_lease() const {
    SlotWord word = *this;
    ++word.leases;
    return word.unless(!is(SlotPhase::reading) && !is(SlotPhase::resident));
  }
  SlotWord try_add_lease() const { return is(SlotPhase::failed) ? *this : add_lease(); }
  SlotWord drop_lease() const {
    SlotWord word = *this;
    --word.leases;
    return word.unless(leases == 0);
  }
  SlotWord clear() const {
    const bool is_busy = leases > 0 || is(SlotPhase::empty) || is(SlotPhase::reading);
    return SlotWord{}.unless(is_busy);
  }
};

}  // namespace sluice::model_check
