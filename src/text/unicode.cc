#include "text/unicode.h"

#include <algorithm>

#include "text/unicode_tables.h"

namespace sluice::text {
namespace {

constexpr CodeRange kHan[] = {
    {0x2e80, 0x2e99},   {0x2e9b, 0x2ef3},   {0x2f00, 0x2fd5},   {0x3005, 0x3005},
    {0x3007, 0x3007},   {0x3021, 0x3029},   {0x3038, 0x303b},   {0x3400, 0x4dbf},
    {0x4e00, 0x9fff},   {0xf900, 0xfa6d},   {0xfa70, 0xfad9},   {0x16fe2, 0x16fe3},
    {0x16ff0, 0x16ff1}, {0x20000, 0x2a6df}, {0x2a700, 0x2b739}, {0x2b740, 0x2b81d},
    {0x2b820, 0x2cea1}, {0x2ceb0, 0x2ebe0}, {0x2ebf0, 0x2ee5d}, {0x2f800, 0x2fa1d},
    {0x30000, 0x3134a}, {0x31350, 0x323af}};

}  // namespace

Category category(char32_t code) {
  // The entry of the run that holds `code` is the last one that starts at or before it.
  const uint32_t past = (static_cast<uint32_t>(code) + 1) << 5;
  const auto next = std::ranges::lower_bound(kCategoryStarts, past);
  return static_cast<Category>(next[-1] & 0x1f);
}

bool is_in(char32_t code, std::span<const CodeRange> ranges) {
  const auto next = std::ranges::upper_bound(ranges, code, {}, &CodeRange::first);
  return next != ranges.begin() && code <= next[-1].last;
}

bool is_han(char32_t code) {
  return is_in(code, kHan);
}

}  // namespace sluice::text
