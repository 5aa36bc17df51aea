// The filters, in tables by what they are about; find_filter looks through all of them. Data;
// any thread.
#pragma once

#include <span>

#include "jinja/function.h"

namespace sluice::jinja {

std::span<const Builtin> text_filters();
std::span<const Builtin> sequence_filters();
std::span<const Builtin> choice_filters();
std::span<const Builtin> value_filters();

}  // namespace sluice::jinja
