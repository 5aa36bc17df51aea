#include "text/byte_symbols.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice::text {
namespace {

std::string bytes_of(std::string_view symbols) {
  std::string bytes;
  append_bytes_of_symbols(symbols, bytes);
  return bytes;
}

TEST(ByteSymbols, AreThoseOfGpt2) {
  EXPECT_EQ(symbol_of_byte('!'), U'!');
  EXPECT_EQ(symbol_of_byte('~'), U'~');
  EXPECT_EQ(symbol_of_byte(0), 0x100u);
  EXPECT_EQ(symbol_of_byte('\n'), 0x10au);  // Ċ
  EXPECT_EQ(symbol_of_byte(' '), 0x120u);   // Ġ
  EXPECT_EQ(symbol_of_byte(0x7f), 0x121u);
  EXPECT_EQ(symbol_of_byte(0x80), 0x122u);
  EXPECT_EQ(symbol_of_byte(0xa0), 0x142u);
  EXPECT_EQ(symbol_of_byte(0xa1), 0xa1u);
  EXPECT_EQ(symbol_of_byte(0xad), 0x143u);  // the soft hyphen is the last one borrowed
  EXPECT_EQ(symbol_of_byte(0xff), 0xffu);
}

TEST(ByteSymbols, AreInvertible) {
  std::set<char32_t> symbols;
  for (int byte = 0; byte < 256; ++byte) {
    const char32_t symbol = symbol_of_byte(static_cast<uint8_t>(byte));
    EXPECT_TRUE(symbols.insert(symbol).second);
    EXPECT_EQ(byte_of_symbol(symbol), byte);
  }
  EXPECT_EQ(byte_of_symbol(' '), -1);
  EXPECT_EQ(byte_of_symbol(0xad), -1);
  EXPECT_EQ(byte_of_symbol(0x144), -1);
  EXPECT_EQ(byte_of_symbol(0x10ffff), -1);
}

TEST(ByteSymbols, WriteText) {
  EXPECT_EQ(symbols_of_bytes(" caf\xc3\xa9\n"), "\u0120caf\u00c3\u00a9\u010a");
  EXPECT_EQ(bytes_of("\u0120caf\u00c3\u00a9\u010a"), " caf\xc3\xa9\n");
}

TEST(ByteSymbols, KeepWhatIsNoSymbol) {
  EXPECT_EQ(bytes_of("\u4e2d \xff"), "\u4e2d \xff");
}

}  // namespace
}  // namespace sluice::text
