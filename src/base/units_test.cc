#include "base/units.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Units, ParsesSizesAsWritten) {
  EXPECT_EQ(*parse_size("4096"), 4096u);
  EXPECT_EQ(*parse_size("512K"), 512 * kKiB);
  EXPECT_EQ(*parse_size("0.5G"), kGiB / 2);
  EXPECT_EQ(*parse_size("300MiB"), 300 * kMiB);
  EXPECT_EQ(*parse_size("0"), 0u);
}

TEST(Units, RefusesWhatIsNoSize) {
  for (const char* text : {"", "K", "-1", "1T", "1e30G", "nan", "inf", "4 K", "1Kx"}) {
    const auto size = parse_size(text);
    ASSERT_FALSE(size.ok()) << text;
    EXPECT_EQ(size.error().kind, ErrorKind::usage);
  }
}

TEST(Units, RoundsToAlignment) {
  EXPECT_EQ(round_up(1, 4096), 4096u);
  EXPECT_EQ(round_up(4096, 4096), 4096u);
  EXPECT_EQ(round_down(8191, 4096), 4096u);
}

TEST(Units, FormatsForPeople) {
  EXPECT_EQ(format_bytes(17), "17 B");
  EXPECT_EQ(format_bytes(kMiB * 3 / 2), "1.5 MiB");
}

}  // namespace
}  // namespace sluice
