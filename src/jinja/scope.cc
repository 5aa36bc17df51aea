#include "jinja/scope.h"

#include <algorithm>

namespace sluice::jinja {

const Value* Scope::find(std::string_view name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->around)
    for (const auto& [known, value] : scope->names)
      if (known == name) return &value;
  return nullptr;
}

void Scope::set(std::string_view name, Value value) {
  for (auto& [known, held] : names) {
    if (known != name) continue;
    held = std::move(value);
    return;
  }
  names.emplace_back(name, std::move(value));
}

void Scope::keep() {
  for (Scope* scope = this; scope != nullptr && !scope->is_kept; scope = scope->around)
    scope->is_kept = true;
}

Scope* Scopes::open(Scope* around) {
  if (free_.empty()) free_.push_back(&all_.emplace_back());
  Scope* scope = free_.back();
  free_.pop_back();
  scope->around = around;
  return scope;
}

void Scopes::close(Scope* scope) {
  if (scope->is_kept) return;
  scope->names.clear();
  free_.push_back(scope);
}

}  // namespace sluice::jinja
