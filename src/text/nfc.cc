#include "text/nfc.h"

#include <algorithm>
#include <vector>

#include "text/unicode_tables.h"
#include "text/utf8.h"

namespace sluice::text {
namespace {

// Hangul syllables are composed of a leading consonant, a vowel and an optional tail by arithmetic.
constexpr char32_t kSyllableBase = 0xac00, kLeadBase = 0x1100, kVowelBase = 0x1161,
                   kTailBase = 0x11a7;  // one before the first tail: no tail is tail number 0
constexpr uint32_t kLeadCount = 19, kVowelCount = 21, kTailCount = 28;
constexpr uint32_t kSyllableCount = kLeadCount * kVowelCount * kTailCount;

/// A character that may move: combining class 0 is a starter, which stays.
struct Part {
  char32_t code;
  uint32_t combining;
};

struct Properties {
  bool unsafe;
  uint32_t combining;
};

Properties properties(char32_t code) {
  if (code < 0x300) return {false, 0};
  const uint32_t past = (static_cast<uint32_t>(code) + 1) << 9;
  const uint32_t entry = std::ranges::lower_bound(kNormalizationStarts, past)[-1];
  return {(entry & 0x100) != 0, entry & 0xff};
}

/// 0 when the two do not compose.
char32_t compose(char32_t first, char32_t second) {
  if (const uint32_t lead = first - kLeadBase, vowel = second - kVowelBase;
      lead < kLeadCount && vowel < kVowelCount)
    return kSyllableBase + (lead * kVowelCount + vowel) * kTailCount;
  if (const uint32_t syllable = first - kSyllableBase, tail = second - kTailBase;
      syllable < kSyllableCount && syllable % kTailCount == 0 && 0 < tail && tail < kTailCount)
    return first + tail;
  const auto key = [](const Composition& c) { return uint64_t{c.first} << 32 | c.second; };
  const uint64_t wanted = uint64_t{first} << 32 | second;
  const auto found = std::ranges::lower_bound(kCompositions, wanted, {}, key);
  return found != kCompositions.end() && key(*found) == wanted ? found->code : 0;
}

void append_decomposed(char32_t code, std::vector<Part>& parts) {
  if (const uint32_t syllable = code - kSyllableBase; syllable < kSyllableCount) {
    const uint32_t tail = syllable % kTailCount;
    parts.push_back({kLeadBase + syllable / (kVowelCount * kTailCount), 0});
    parts.push_back({kVowelBase + syllable / kTailCount % kVowelCount, 0});
    if (tail != 0) parts.push_back({kTailBase + tail, 0});
    return;
  }
  // Only the first part of a decomposition decomposes further, so the second ones come out last
  // to first.
  const size_t begin = parts.size();
  while (true) {
    const auto found = std::ranges::lower_bound(kDecompositions, code, {}, &Decomposition::code);
    if (found == kDecompositions.end() || found->code != code) break;
    if (found->second != 0) parts.push_back({found->second, properties(found->second).combining});
    code = found->first;
  }
  parts.push_back({code, properties(code).combining});
  std::reverse(parts.begin() + static_cast<ptrdiff_t>(begin), parts.end());
}

/// Canonical ordering: each run of non-starters is sorted by combining class, stably.
void order_marks(std::vector<Part>& parts) {
  const auto starter = [](const Part& part) { return part.combining == 0; };
  for (auto run = parts.begin(); run != parts.end();) {
    run = std::find_if_not(run, parts.end(), starter);
    const auto end = std::find_if(run, parts.end(), starter);
    std::stable_sort(run, end,
                     [](const Part& a, const Part& b) { return a.combining < b.combining; });
    run = end;
  }
}

/// Canonical composition, in place: a part joins the last starter unless something between the two
/// blocks it, which is a starter, or a mark of the same or a higher class.
void compose_parts(std::vector<Part>& parts) {
  constexpr size_t kNone = SIZE_MAX;
  size_t kept = 0;
  size_t starter = kNone;
  for (const Part part : parts) {
    if (starter != kNone) {
      const bool adjacent = kept == starter + 1;
      const bool blocked = !adjacent && parts[kept - 1].combining >= part.combining;
      const char32_t joined = blocked ? 0 : compose(parts[starter].code, part.code);
      if (joined != 0) {
        parts[starter].code = joined;
        continue;
      }
    }
    if (part.combining == 0) starter = kept;
    parts[kept++] = part;
  }
  parts.resize(kept);
}

struct Stretch {
  size_t begin, end;
};

/// The next stretch that NFC may change: the unsafe characters and the safe one before them, which
/// they may join. Empty at the end of the text when there is none.
Stretch next_unsafe_stretch(std::string_view text, size_t at) {
  size_t begin = at;  // of the last safe character
  while (at < text.size()) {
    if (const size_t end = ascii_end(text, at); end != at) {
      begin = end - 1;
      at = end;
      continue;
    }
    const Utf8Char next = decode_utf8(text, at);
    if (properties(next.code).unsafe) break;
    begin = at;
    at += next.bytes;
  }
  if (at == text.size()) return {at, at};
  while (at < text.size()) {
    const Utf8Char next = decode_utf8(text, at);
    if (!properties(next.code).unsafe) break;
    at += next.bytes;
  }
  return {begin, at};
}

void append_normalized(std::string_view text, std::vector<Part>& parts, std::string& out) {
  parts.clear();
  for (size_t at = 0; at < text.size();) {
    const Utf8Char next = decode_utf8(text, at);
    append_decomposed(next.code, parts);
    at += next.bytes;
  }
  order_marks(parts);
  compose_parts(parts);
  for (const Part& part : parts) append_utf8(part.code, out);
}

}  // namespace

std::string_view to_nfc(std::string_view text, std::string& storage) {
  Stretch stretch = next_unsafe_stretch(text, 0);
  if (stretch.begin == text.size()) return text;
  storage.clear();
  storage.reserve(text.size());
  std::vector<Part> parts;
  size_t copied = 0;
  while (stretch.begin < text.size()) {
    storage.append(text, copied, stretch.begin - copied);
    append_normalized(text.substr(stretch.begin, stretch.end - stretch.begin), parts, storage);
    copied = stretch.end;
    stretch = next_unsafe_stretch(text, copied);
  }
  storage.append(text, copied);
  return storage;
}

}  // namespace sluice::text
