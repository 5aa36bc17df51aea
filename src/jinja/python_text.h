// Values as text, spelled as Python spells them: str(), repr() and json.dumps(). Templates were
// written against Python, and a model has seen its True and its single quotes. Punctuation and
// numbers count as message text. One thread per Run.
#pragma once

#include "jinja/run.h"

namespace sluice::jinja {

/// str(): what {{ }} writes. Undefined gives nothing.
Text to_text(Run& run, const Value& value);
/// repr()
Text to_repr(Run& run, const Value& value);
/// repr() of a float: the shortest digits that read back as the same number.
std::string real_text(double number);

struct JsonStyle {
  bool ascii_only = false;
  std::optional<std::string> indent = {};  ///< of one level; none: all on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sorts_keys = false;
};

Text to_json(Run& run, const Value& value, const JsonStyle& style);

}  // namespace sluice::jinja
