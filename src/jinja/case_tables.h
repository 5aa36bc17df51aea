// Which characters beyond ASCII have another case, as runs of equal distance. Characters whose
// other case is several characters (ß) are left out and stay as they are. Data; any thread.
#pragma once

#include <cstdint>

namespace sluice::jinja {

/// Every `stride`-th character from `first` to `last` maps to itself plus `distance`.
struct CaseRange {
  uint32_t first, last;
  uint32_t stride;
  int32_t distance;
};

/// Sorted by `first`; no two overlap.
extern const CaseRange kUpperRanges[193];
extern const CaseRange kLowerRanges[180];

}  // namespace sluice::jinja
