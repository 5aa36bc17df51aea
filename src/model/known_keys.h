// Which keys of a file may be there: those that are read, those that change nothing, and those that
// would change the arithmetic in ways that this version does not know. Any thread.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "gguf/gguf_file.h"
#include "model/architecture.h"

namespace sluice {

/// A key of this family that we know to change the arithmetic and do not implement stops the load
/// (unless its value switches it off); one that we have never heard of is logged.
Status check_keys(const gguf::GgufFile& file, const Architecture& architecture, const Log& log);

}  // namespace sluice
