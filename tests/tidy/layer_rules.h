// Rules about who may see whom: folders are layers, includes point down, there is one include root,
// the operating system is met in os/ only and vector instructions in kernels/<isa>/ only. The table
// of ranks is in layer_rules.cc. Tests only, one thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "tests/tidy/source_file.h"

namespace sluice::tidy {

/// Answers whether a path (from the root of the repository) is a file of the tree.
using HasFile = std::function<bool(const std::string& path)>;

/// Includes point to the own folder or to a lower rank, and resolve from src/ (in tests/, bench/
/// and tools/ also from the root, to their own folder).
void check_includes(const SourceFile& file, const HasFile& has_file, Findings& findings);

/// Every file of src/ lies in a folder of the table; no folder is a drawer for leftovers.
void check_folder(std::string_view path, Findings& findings);

/// System headers and #if on the system stay in src/os/*.cc and src/os/*_<system>.h (tests/ may
/// start processes);
/// intrinsics stay in src/kernels/<isa>/.
void check_platform(const SourceFile& file, Findings& findings);

/// Files of src/kernels/<isa>/ use plain pointers: only headers that bring no containers, strings
/// or algorithms, and nothing of another ISA.
void check_isa_folder(const SourceFile& file, Findings& findings);

}  // namespace sluice::tidy
