// Parses the value of one key: scalars, texts and arrays of any declared type. Used by the header
// parser only; a pure function of the bytes.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "gguf/gguf_file.h"
#include "gguf/head_reader.h"

namespace sluice::gguf {

/// Reads a value whose type id has just been read. When the reader has failed afterwards, the
/// value means nothing. Errors say what is wrong but not where: the caller knows the key.
Result<Value> parse_value(HeadReader& reader, uint32_t type_id);

}  // namespace sluice::gguf
