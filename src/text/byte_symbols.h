// GPT-2's printable stand-ins for bytes, in which byte-level BPE vocabularies are written: the 188
// printable characters of Latin-1 stand for themselves, the other 68 bytes are U+0100 and up in
// order, so that a space is Ġ and a newline Ċ. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::text {

constexpr bool is_own_symbol(uint8_t byte) {
  return (0x21 <= byte && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
}

/// The character that stands for a byte.
char32_t symbol_of_byte(uint8_t byte);

/// The byte that a character stands for, or −1.
int byte_of_symbol(char32_t symbol);

/// " a" → "Ġa"
std::string symbols_of_bytes(std::string_view bytes);

/// "Ġa" → " a". A character that stands for no byte is kept as it is written.
void append_bytes_of_symbols(std::string_view symbols, std::string& bytes);

}  // namespace sluice::text
