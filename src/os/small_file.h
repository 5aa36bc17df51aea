// Small files of our own: what a run leaves behind for the next one, and where such things may lie.
// A file is replaced as a whole or not at all, whatever happens in between, and two processes that
// update it at the same time do not lose each other's part. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/function_ref.h"
#include "base/result.h"

namespace sluice::os {

/// What the file shall hold next, from what it holds now (nothing, when there is no such file).
using NextContent = FunctionRef<Result<std::string>(const std::string& present)>;

/// Replaces the content of a file: written under another name in the same folder, synced, renamed.
/// Others who update a file in that folder wait until this is done. A present file of more than
/// `bytes_max` is an error and stays as it is, and so do folders, devices and pipes, and whatever
/// is there when `next` gives an error.
Status update_file(const std::string& path, uint64_t bytes_max, NextContent next);

/// Whether new files may be made in the folder that holds (or would hold) `path`.
bool may_create(const std::string& path);

/// Makes the folder that shall hold `path`, with those above it, for this user alone.
Status make_folder_of(const std::string& path);

bool file_exists(const std::string& path);

/// The same place from anywhere: absolute and without symbolic links, as far as it exists.
std::string absolute_path(const std::string& path);

/// Where this user's programs keep what can be made anew: XDG_CACHE_HOME, else ~/.cache. Empty
/// when neither is known.
std::optional<std::string> user_cache_folder();

}  // namespace sluice::os
