// Checks for our own mistakes. A failed CHECK means the program is wrong, not the world: it prints
// the condition and the place, then stops the process. Anything that a file, a device, the memory
// or the user can cause is a Result (base/result.h), never a CHECK. Any thread may call these.
#pragma once

namespace sluice {

/// Prints "file:line: check failed: condition" to stderr and aborts. (std::source_location would
/// be the place's type, but clang 14 does not have it.)
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace sluice

/// Always on. The expression must have no side effect.
#define CHECK(condition)                                        \
  do {                                                          \
    if (!(condition)) [[unlikely]]                              \
      ::sluice::check_failed(#condition, __FILE__, __LINE__);   \
  } while (false)

/// For hot loops: checked in debug builds only.
#ifdef NDEBUG
#define DCHECK(condition) \
  do {                    \
  } while (false)
#else
#define DCHECK(condition) CHECK(condition)
#endif
