// Python's two ways to put values into a text: "%s of %d" % values and "{} of {}".format(values),
// with the conversions that templates use; anything else is an error that names it. One thread per
// Run.
#pragma once

#include "jinja/function.h"

namespace sluice::jinja {

/// REQUIRES: pattern is a text
Value format_percent(Run& run, const Value& pattern, const Value& values);
Value format_braces(Run& run, const Text& pattern, const Arguments& values);
/// The time as strftime writes it, in English.
Value format_time(Run& run, const Text& pattern);

}  // namespace sluice::jinja
