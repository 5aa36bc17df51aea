#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/function_ref.h"

namespace sluice {
namespace {

Result<std::unique_ptr<int>> halve(int number) {
  if (number % 2 != 0) return make_error(ErrorKind::usage, "{} is odd", number);
  return std::make_unique<int>(number / 2);
}

TEST(Result, HoldsAValueOrAnError) {
  auto half = halve(10);
  ASSERT_TRUE(half.ok());
  EXPECT_EQ(**half, 5);
  const std::unique_ptr<int> taken = *std::move(half);
  EXPECT_EQ(*taken, 5);

  const auto none = halve(7);
  EXPECT_FALSE(none.ok());
  EXPECT_FALSE(static_cast<bool>(none));
  EXPECT_EQ(none.error().kind, ErrorKind::usage);
  EXPECT_EQ(none.error().message, "7 is odd");
  EXPECT_EQ(none.error().at("numbers.txt").message, "numbers.txt: 7 is odd");
  EXPECT_EQ(none.error().at("numbers.txt").kind, ErrorKind::usage);
}

TEST(Status, IsSuccessUnlessItIsAnError) {
  EXPECT_TRUE(Status().ok());
  const Status failed = make_error(ErrorKind::io, "gone");
  EXPECT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "gone");
}

TEST(ResultDeathTest, LookingForWhatIsNotThereIsOurMistake) {
  const auto none = halve(7);
  const auto half = halve(8);
  EXPECT_DEATH(*none, "check failed");
  EXPECT_DEATH(half.error(), "check failed");
  EXPECT_DEATH(Status().error(), "check failed");
}

TEST(FunctionRef, CallsWhatItRefersTo) {
  int sum = 0;
  const auto add = [&](int a, int b) { return sum += a * b; };
  const FunctionRef<int(int, int)> reference = add;
  const FunctionRef<int(int, int)> copy = reference;
  EXPECT_EQ(reference(2, 3), 6);
  EXPECT_EQ(copy(4, 5), 26);
  EXPECT_EQ(sum, 26);
}

}  // namespace
}  // namespace sluice
