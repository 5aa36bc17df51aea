#include "text/byte_symbols.h"

#include <array>

#include "text/utf8.h"

namespace sluice::text {
namespace {

constexpr char32_t kBorrowedBase = 0x100;
constexpr size_t kBorrowedCount = 68;

/// The bytes without a symbol of their own, in order: number i is written as U+0100 + i.
constexpr std::array<uint8_t, kBorrowedCount> kBorrowers = [] {
  std::array<uint8_t, kBorrowedCount> borrowers{};
  size_t count = 0;
  for (int byte = 0; byte < 256; ++byte)
    if (!is_own_symbol(static_cast<uint8_t>(byte))) borrowers[count++] = static_cast<uint8_t>(byte);
  return borrowers;
}();

constexpr std::array<char32_t, 256> kSymbols = [] {
  std::array<char32_t, 256> symbols{};
  for (size_t byte = 0; byte < symbols.size(); ++byte) symbols[byte] = static_cast<char32_t>(byte);
  for (size_t i = 0; i < kBorrowedCount; ++i)
    symbols[kBorrowers[i]] = kBorrowedBase + static_cast<char32_t>(i);
  return symbols;
}();

}  // namespace

char32_t symbol_of_byte(uint8_t byte) {
  return kSymbols[byte];
}

int byte_of_symbol(char32_t symbol) {
  if (symbol < 0x100) {
    const auto byte = static_cast<uint8_t>(symbol);
    return is_own_symbol(byte) ? byte : -1;
  }
  const char32_t borrowed = symbol - kBorrowedBase;
  return borrowed < kBorrowedCount ? kBorrowers[borrowed] : -1;
}

std::string symbols_of_bytes(std::string_view bytes) {
  std::string symbols;
  for (const char byte : bytes) append_utf8(symbol_of_byte(static_cast<uint8_t>(byte)), symbols);
  return symbols;
}

void append_bytes_of_symbols(std::string_view symbols, std::string& bytes) {
  for (size_t at = 0; at < symbols.size();) {
    const Utf8Char symbol = decode_utf8(symbols, at);
    if (const int byte = byte_of_symbol(symbol.code); byte >= 0) {
      bytes.push_back(static_cast<char>(byte));
    } else {
      bytes.append(symbols, at, symbol.bytes);
    }
    at += symbol.bytes;
  }
}

}  // namespace sluice::text
