// Rules about words: names the glossary of STYLE.md forbids, parts of C++ and build flags that
// would break a promise of the project, and places that exist on one machine only. Tests only, one
// thread.
#pragma once

#include "tests/tidy/source_file.h"

namespace sluice::tidy {

/// Names that say nothing, or that have a better word in the glossary. (prefetch is a word of its
/// own, and the atomics' fetch_add and its kin are the standard library's.)
void check_names(const SourceFile& file, Findings& findings);

/// No exceptions, no RTTI, no std::regex, no rand(), no code chosen by the compiler's AVX macros.
void check_language(const SourceFile& file, Findings& findings);

/// No flag that lets the compiler change the value of a float expression.
void check_build_flags(const SourceFile& file, Findings& findings);

/// Nothing in the repository names folders of one machine or hosts that packages come from.
void check_places(const SourceFile& file, Findings& findings);

}  // namespace sluice::tidy
