#!/usr/bin/env python3
"""Writes src/text/unicode_tables.cc from Python's unicodedata.

    scripts/make_unicode_tables.py > src/text/unicode_tables.cc

The Unicode version is that of the Python that runs it. src/text/unicode_tables.h says what the
tables hold. Whatever the C++ code takes for granted about Unicode is asserted here.
"""

import sys
import unicodedata

CODE_COUNT = 0x110000
# In the order of `enum class Category` in src/text/unicode.h.
CATEGORIES = ("Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po "
              "Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co Cn").split()
HANGUL_SYLLABLES = range(0xAC00, 0xAC00 + 11172)
HANGUL_VOWELS_AND_TAILS = (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))


def run_starts(value_of, shift):
    """(first code << shift | value) of each run of codes that share a value."""
    starts = []
    previous = None
    for code in range(CODE_COUNT):
        value = value_of(code)
        if value != previous:
            starts.append(code << shift | value)
            previous = value
    return starts


def decompositions():
    """code -> (first, second or 0), canonical only, Hangul syllables left to arithmetic."""
    table = {}
    for code in range(CODE_COUNT):
        text = unicodedata.decomposition(chr(code))
        if not text or text.startswith("<"):
            continue
        parts = [int(part, 16) for part in text.split()]
        assert len(parts) <= 2 and code not in HANGUL_SYLLABLES
        table[code] = (parts[0], parts[1] if len(parts) == 2 else 0)
    for first, second in table.values():
        assert second not in table, "only the first part may decompose further"
    return table


def compositions(table):
    """(first, second) -> code: the pairs that NFC puts together again."""
    pairs = {}
    for code, (first, second) in table.items():
        if second and unicodedata.normalize("NFC", chr(first) + chr(second)) == chr(code):
            pairs[first, second] = code
    return pairs


def normalization_value(table, pairs):
    """code -> unsafe << 8 | combining class. Unsafe: may change in NFC, or join what is before."""
    seconds = {second for _, second in pairs} | set(HANGUL_VOWELS_AND_TAILS)
    changed = {code for code in table if unicodedata.normalize("NFC", chr(code)) != chr(code)}

    def value(code):
        combining = unicodedata.combining(chr(code))
        unsafe = combining != 0 or code in seconds or code in changed
        assert not unsafe or code >= 0x300, "below U+0300 all text is in NFC"
        if code in table and not unsafe:  # its decomposition does not reach back either
            first = code
            while first in table:
                first = table[first][0]
            assert unicodedata.combining(chr(first)) == 0 and first not in seconds
        return unsafe << 8 | combining

    return value


def print_table(kind, name, entries):
    print(f"const {kind} {name}Entries[] = {{")
    line = "   "
    for entry in entries:
        if len(line) + len(entry) + 2 > 100:
            print(line)
            line = "   "
        line += f" {entry},"
    print(line)
    print("};")


def main():
    table = decompositions()
    pairs = compositions(table)
    categories = run_starts(lambda code: CATEGORIES.index(unicodedata.category(chr(code))), 5)
    normalization = run_starts(normalization_value(table, pairs), 9)

    print(f"// Made by scripts/make_unicode_tables.py from Unicode {unicodedata.unidata_version}; "
          "do not edit.")
    print('#include "text/unicode_tables.h"\n')
    print("// clang-format off")
    print("namespace sluice::text {")
    print("namespace {\n")
    print_table("uint32_t", "kCategory", [f"{value:#x}" for value in categories])
    print()
    print_table("uint32_t", "kNormalization", [f"{value:#x}" for value in normalization])
    print()
    print_table("Decomposition", "kDecomposition",
                [f"{{{code:#x}, {first:#x}, {second:#x}}}"
                 for code, (first, second) in sorted(table.items())])
    print()
    print_table("Composition", "kComposition",
                [f"{{{first:#x}, {second:#x}, {code:#x}}}"
                 for (first, second), code in sorted(pairs.items())])
    print("\n}  // namespace\n")
    print("const std::span<const uint32_t> kCategoryStarts{kCategoryEntries};")
    print("const std::span<const uint32_t> kNormalizationStarts{kNormalizationEntries};")
    print("const std::span<const Decomposition> kDecompositions{kDecompositionEntries};")
    print("const std::span<const Composition> kCompositions{kCompositionEntries};\n")
    print("}  // namespace sluice::text")


if __name__ == "__main__":
    sys.exit(main())
