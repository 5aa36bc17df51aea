#include "base/units.h"

#include <charconv>
#include <cmath>

namespace sluice {
namespace {

/// The factor that a unit stands for, 0 when it is not a unit.
uint64_t unit_factor(std::string_view unit) {
  if (unit.empty() || unit == "B") return 1;
  uint64_t factor = 0;
  switch (unit.front()) {
    case 'k':
    case 'K':
      factor = kKiB;
      break;
    case 'm':
    case 'M':
      factor = kMiB;
      break;
    case 'g':
    case 'G':
      factor = kGiB;
      break;
    default:
      return 0;
  }
  unit.remove_prefix(1);
  return unit.empty() || unit == "B" || unit == "iB" ? factor : 0;
}

}  // namespace

Result<uint64_t> parse_size(std::string_view text) {
  double number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto unit = text.substr(static_cast<size_t>(end - text.data()));
  const uint64_t factor = unit_factor(unit);
  const double bytes = number * static_cast<double>(factor);
  if (status != std::errc{} || factor == 0 || !std::isfinite(bytes) || bytes < 0 || bytes >= 0x1p63)
    return make_error(ErrorKind::usage, "'{}' is not a size; write a number and K, M or G", text);
  return static_cast<uint64_t>(bytes);
}

std::string format_bytes(uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes >= kGiB) return fmt::format("{:.2f} GiB", value / static_cast<double>(kGiB));
  if (bytes >= kMiB) return fmt::format("{:.1f} MiB", value / static_cast<double>(kMiB));
  if (bytes >= kKiB) return fmt::format("{:.1f} KiB", value / static_cast<double>(kKiB));
  return fmt::format("{} B", bytes);
}

}  // namespace sluice
