// What the system has been told about huge pages.
#pragma once

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

namespace sluice {

/// Bytes of this process's mappings that may have no huge pages (madvise, MADV_NOHUGEPAGE). 0 where
/// the system knows nothing of huge pages.
inline uint64_t bytes_without_huge_pages() {
  std::ifstream maps("/proc/self/smaps");
  uint64_t bytes = 0, begin = 0, end = 0;
  for (std::string line; std::getline(maps, line);) {
    unsigned long first = 0, last = 0;
    char flags[5] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &first, &last, flags) == 3)
      begin = first, end = last;
    if (line.starts_with("VmFlags:") && line.find(" nh") != std::string::npos) bytes += end - begin;
  }
  return bytes;
}

}  // namespace sluice
