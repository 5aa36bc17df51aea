// The interface of what a template can call: filters, tests, methods and functions are all one kind
// of C++ function that takes a Call and gives a value. Arguments are taken in order, each by the
// name under which a template may also pass it; what is left at the end is an error that the caller
// of the function reports. The tables are found by name. A Call lives for one call, on one thread.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/run.h"
#include "jinja/syntax.h"

namespace sluice::jinja {

/// What a call, filter or test was given.
struct Arguments {
  std::vector<Value> by_place;
  std::vector<std::pair<std::string_view, Value>> by_name;
};

class Call {
 public:
  Call(Run& given_run, std::string_view name, Value given_subject, Arguments arguments)
      : run(given_run),
        subject(std::move(given_subject)),
        name_(name),
        arguments_(std::move(arguments)) {}

  Run& run;
  const Value subject;  ///< what stands before the bar, the dot or `is`; undefined for functions

  std::string_view name() const { return name_; }

  /// The next argument; nothing when it was not given.
  std::optional<Value> take(std::string_view name);
  Value take(std::string_view name, Value fallback);
  /// One that can only be given by name.
  std::optional<Value> take_named(std::string_view name);
  /// Fails the run when it is missing or of another kind, and then gives an empty one.
  Value take_required(std::string_view name);
  Text take_text(std::string_view name, std::string_view fallback);
  int64_t take_integer(std::string_view name, int64_t fallback);
  bool take_bool(std::string_view name, bool fallback);
  /// All that is left, to be passed on.
  Arguments take_rest();

  /// The subject as text; fails the run when it is none.
  const Text& subject_text();
  /// What iterating over the subject gives.
  std::vector<Value> subject_items();

  /// Fails the run if an argument is left over.
  void finish();

 private:
  std::string_view name_;
  Arguments arguments_;
  size_t next_ = 0;
};

using Apply = Value (*)(Call& call);

struct Builtin {
  std::string_view name;
  Apply apply;
};

struct Scope;

/// What a macro is once its definition was passed: parameters and body, and the names around it.
/// A function without statement is one of ours; without both it only stands for a method.
struct Function {
  std::string_view name;
  const Statement* macro = nullptr;
  Scope* scope = nullptr;
  Apply builtin = nullptr;
};

/// Null when there is none of the name.
Apply find_filter(std::string_view name);
Apply find_test(std::string_view name);
Apply find_method(const Value& receiver, std::string_view name);
const Function* find_function(std::string_view name);

/// Applies by name; an unknown name fails the run.
Value apply_filter(Run& run, std::string_view name, Value subject, Arguments arguments);
bool apply_test(Run& run, std::string_view name, Value subject, Arguments arguments);

/// Stands for a method that is looked at but not called.
extern const Function kMethod;

}  // namespace sluice::jinja
