// Keeps a program's standard streams from surprising it. Call once, at the start of main, before
// any file is opened.
#pragma once

namespace sluice::os {

/// A stream that the parent closed gets its descriptor back, one that refuses to be used, so that
/// no model or output file takes its number and swallows what is printed. And writing to a pipe
/// that nobody reads any more becomes an error (EPIPE) instead of a signal that kills.
void guard_standard_streams();

}  // namespace sluice::os
