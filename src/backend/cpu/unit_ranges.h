// Work that is numbered through: each of several items has some units, and a range of the numbers
// is what a thread takes at a time (ComputePool::run_guided). Pure; any thread.
#pragma once

#include <algorithm>
#include <cstddef>

namespace sluice {

/// Calls f(item, first, last) for every item that has units in [begin, end) of all; the units are
/// the item's own, [first, last). units_of(item) tells how many it has. REQUIRES: begin < end, and
/// no more than there are.
template <typename Items, typename UnitsOf, typename F>
void for_units(const Items& items, size_t begin, size_t end, const UnitsOf& units_of, const F& f) {
  for (const auto& item : items) {
    const size_t units = units_of(item);
    if (begin < units) f(item, begin, std::min(end, units));
    if (end <= units) return;
    begin -= std::min(begin, units);
    end -= units;
  }
}

}  // namespace sluice
