// Errors of the outside world as values. Whatever touches a file, a device, the memory or the user
// returns Result<T> (or Status where there is no value), and the caller must look at it. A message
// is one line for the user: what failed, on which file or option, what to do. Nothing here throws;
// values may pass between threads like any other value.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "base/check.h"

namespace sluice {

/// What kind of failure it is; decides the exit code (usage: 2, interrupted: 130, all others: 1).
enum class ErrorKind {
  io,           ///< a read failed or a file is missing
  corrupt,      ///< a file contradicts itself or is cut short
  unsupported,  ///< well-formed, but not something we implement
  usage,        ///< the user asked for something impossible; also a prompt beyond the context
  memory,       ///< an allocation failed or cannot fit
  interrupted,  ///< the user stopped it
};

struct Error {
  ErrorKind kind;
  std::string message;  ///< one line, no trailing newline, no "error:" in front

  /// The same error with the place in front: "model.gguf: tensor 'x': …".
  Error at(std::string_view place) const { return {kind, fmt::format("{}: {}", place, message)}; }
};

/// make_error(ErrorKind::io, "{}: cannot open: {}", path, reason)
template <typename... Args>
Error make_error(ErrorKind kind, fmt::format_string<Args...> text, Args&&... args) {
  return {kind, fmt::format(text, std::forward<Args>(args)...)};
}

/// A T or the Error that prevented it.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }

  /// REQUIRES: ok()
  T& value() & {
    CHECK(ok());
    return *value_;
  }
  const T& value() const& {
    CHECK(ok());
    return *value_;
  }
  T&& value() && {
    CHECK(ok());
    return std::move(*value_);
  }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }

  /// REQUIRES: !ok()
  const Error& error() const {
    CHECK(!ok());
    return error_;
  }

 private:
  std::optional<T> value_;
  Error error_{ErrorKind::io, {}};
};

/// Success, or the Error that prevented it.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    CHECK(!ok());
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace sluice
