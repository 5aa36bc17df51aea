// One rendering under way: how much of its limits is used up, on which line of the template it is,
// and the first error. An error does not travel through return values: `fail` keeps it and every
// evaluation after it gives undefined at once, so that hundreds of small operations stay readable.
// Whoever loops over something long looks at `failed()`. Belongs to one thread.
#pragma once

#include <fmt/format.h>

#include <ctime>
#include <deque>
#include <optional>

#include "base/result.h"
#include "jinja/value.h"

namespace sluice::jinja {

struct Limits {
  /// One for each node evaluated and each 64 bytes or item copied.
  size_t steps_max = 20'000'000;
  size_t output_bytes_max = size_t{64} << 20;  ///< also of any text on the way
};

inline constexpr uint32_t kValueDepthMax = 128;      ///< of lists and dictionaries in each other
inline constexpr uint32_t kSyntaxDepthMax = 256;     ///< of expressions and blocks in each other
inline constexpr uint32_t kEvaluateDepthMax = 1200;  ///< with the macros that call each other

class Run {
 public:
  Run(const Limits& limits, const std::tm& now) : limits_(limits), now_(now) {}

  const std::tm& now() const { return now_; }
  void set_line(size_t line) { line_ = line; }

  bool failed() const { return error_.has_value(); }
  const std::optional<Error>& error() const { return error_; }
  /// Keeps the first error, with the line in front; gives undefined for the caller to return.
  template <typename... Args>
  Value fail(fmt::format_string<Args...> text, Args&&... args) {
    return fail_with(fmt::format(text, std::forward<Args>(args)...));
  }
  Value fail_undefined(const Value& undefined) { return fail("{} is undefined", undefined.what()); }

  /// Pays for work on `bytes`, or for `bytes` / 64 items; false when that ends the run.
  bool charge(size_t bytes = 0);
  bool charge_items(size_t count) { return charge(count * 64); }

  /// Values within the limits, or undefined after an error.
  Value text(Text text);
  Value message(std::string_view bytes) { return text(Text(bytes, Origin::message)); }
  Value list(std::vector<Value> items, bool is_tuple = false);
  Value dict(Dict dict);
  Namespace* new_space() { return &spaces_.emplace_back(); }
  /// Whether a text may be so long; asked before it is made.
  bool fits(size_t bytes);
  /// The same, and pays for making it.
  bool may_make(size_t bytes) { return fits(bytes) && charge(bytes); }

  /// Held by every function that may call itself; false when that is too deep.
  class Depth {
   public:
    explicit Depth(Run& run) : run_(run) { ++run_.depth_; }
    ~Depth() { --run_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    bool ok() const;

   private:
    Run& run_;
  };

 private:
  Value fail_with(std::string message);

  Limits limits_;
  std::tm now_;
  size_t steps_ = 0;
  size_t line_ = 1;
  uint32_t depth_ = 0;
  std::optional<Error> error_;
  std::deque<Namespace> spaces_;
};

}  // namespace sluice::jinja
