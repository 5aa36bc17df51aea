#include "base/ledger.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Ledger, AddsUpByUse) {
  Ledger ledger;
  EXPECT_EQ(ledger.total_bytes(), 0u);
  ledger.add(MemoryUse::weights, 100);
  ledger.add(MemoryUse::cache, uint64_t{1} << 40);
  ledger.add(MemoryUse::cache, 7);
  EXPECT_EQ(ledger.bytes(MemoryUse::weights), 100u);
  EXPECT_EQ(ledger.bytes(MemoryUse::cache), (uint64_t{1} << 40) + 7);
  EXPECT_EQ(ledger.bytes(MemoryUse::kv), 0u);
  EXPECT_EQ(ledger.total_bytes(), (uint64_t{1} << 40) + 107);
  ledger.remove(MemoryUse::cache, uint64_t{1} << 40);
  EXPECT_EQ(ledger.total_bytes(), 107u);
}

TEST(Ledger, NamesTheUses) {
  EXPECT_EQ(memory_use_name(MemoryUse::weights), "weights");
  EXPECT_EQ(memory_use_name(MemoryUse::kv), "kv");
  EXPECT_EQ(memory_use_name(MemoryUse::scratch), "scratch");
  EXPECT_EQ(memory_use_name(MemoryUse::cache), "cache");
  EXPECT_EQ(memory_use_name(MemoryUse::io), "io");
}

TEST(LedgerDeathTest, NothingLeavesThatNeverCame) {
  Ledger ledger;
  ledger.add(MemoryUse::kv, 10);
  EXPECT_DEATH(ledger.remove(MemoryUse::kv, 11), "check failed");
  EXPECT_DEATH(ledger.remove(MemoryUse::io, 1), "check failed");
}

}  // namespace
}  // namespace sluice
