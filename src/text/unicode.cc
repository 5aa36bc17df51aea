#include "text/unicode.h"

#include <algorithm>

#include "text/unicode_tables.h"

namespace sluice::text {

Category category(char32_t code) {
  // The entry of the run that holds `code` is the last one that starts at or before it.
  const uint32_t past = (static_cast<uint32_t>(code) + 1) << 5;
  const auto next = std::ranges::lower_bound(kCategoryStarts, past);
  return static_cast<Category>(next[-1] & 0x1f);
}

}  // namespace sluice::text
