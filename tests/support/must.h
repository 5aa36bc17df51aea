// What a test or its tools cannot go on without: where it fails the program ends, and says why. Any
// thread.
#pragma once

#include <fmt/format.h>

#include "base/check.h"
#include "base/result.h"

namespace sluice {

inline void must(const Status& status) {
  if (!status.ok()) fmt::print(stderr, "error: {}\n", status.error().message);
  CHECK(status.ok());
}

template <typename T>
T must(Result<T> result) {
  if (!result.ok()) must(Status(result.error()));
  return std::move(*result);
}

}  // namespace sluice
