// Names and their values while a template runs. A scope is opened by each pass of a loop, each call
// of a macro and each `with`; what it does not know it asks the scope around it. A macro keeps the
// scope in which it was defined, so such scopes, and those around them, stay until the run ends;
// all others are used again. One thread.
#pragma once

#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/value.h"

namespace sluice::jinja {

struct Scope {
  Scope* around = nullptr;
  std::vector<std::pair<std::string_view, Value>> names = {};  ///< few: searched in order
  bool is_kept = false;                                        ///< a macro refers to it

  /// Null when neither it nor a scope around it has the name.
  const Value* find(std::string_view name) const;
  /// The name must live as long as the run: it is the syntax tree's.
  void set(std::string_view name, Value value);
  /// It and those around it will be needed later.
  void keep();
};

class Scopes {
 public:
  Scope* open(Scope* around);
  /// REQUIRES: opened last of those that are open
  void close(Scope* scope);

 private:
  std::deque<Scope> all_;
  std::vector<Scope*> free_;
};

}  // namespace sluice::jinja
