#include "tests/tidy/layer_rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::tidy {
namespace {

/// The order of the house. A folder sees itself and lower ranks; `sees`, where given, narrows that.
struct Layer {
  std::string_view folder;
  int rank;
  std::string_view sees = {};
};
constexpr Layer kLayers[] = {
    {"base", 0},
    {"os", 1},
    {"quant", 1},
    {"text", 1},
    {"sampling", 1},
    {"jinja", 2, "text base"},
    {"parallel", 2},
    {"gguf", 2},
    {"io", 2},
    {"chat", 3, "jinja text base"},
    {"kernels", 3},
    {"model", 3},
    {"testing", 3},  // seen by tests only, of any rank
    {"backend", 4},
    {"experts", 4},
    {"lookahead", 5},
    {"forward", 6},
    {"engine", 7},
    {"cli", 8, "engine chat jinja text base"},
    {"server", 8, "engine chat jinja text base"},
};

constexpr std::string_view kDrawers[] = {"util", "utils", "common", "helper", "helpers", "misc"};

/// Ends with '/': everything below it.
constexpr std::string_view kSystemHeaders[] = {
    "sys/",     "linux/",   "asm/",      "mach/",     "net/",       "netinet/",
    "arpa/",    "unistd.h", "fcntl.h",   "pthread.h", "sched.h",    "signal.h",
    "dirent.h", "poll.h",   "dlfcn.h",   "syscall.h", "liburing.h", "numa.h",
    "spawn.h",  "cpuid.h",  "windows.h", "Windows.h", "io.h",       "winternl.h",
};
constexpr std::string_view kSystemMacros[] = {
    "__linux__",   "__unix__",    "__APPLE__",   "__MACH__",   "_WIN32",     "_WIN64",
    "__FreeBSD__", "__ANDROID__", "__MINGW32__", "__CYGWIN__", "__x86_64__", "__aarch64__",
};
constexpr std::string_view kIntrinsicsHeaders[] = {
    "immintrin.h", "x86intrin.h", "xmmintrin.h",    "emmintrin.h", "tmmintrin.h",
    "smmintrin.h", "nmmintrin.h", "avx2intrin.h",   "intrin.h",    "arm_neon.h",
    "arm_sve.h",   "arm_acle.h",  "riscv_vector.h",
};
constexpr std::string_view kPlainHeaders[] = {
    "bit", "cfloat", "cmath", "cstddef", "cstdint", "cstring", "limits", "type_traits",
};

template <typename List>
bool contains(const List& list, std::string_view what) {
  return std::find(std::begin(list), std::end(list), what) != std::end(list);
}

const Layer* find_layer(std::string_view folder) {
  const auto* row = std::find_if(std::begin(kLayers), std::end(kLayers),
                                 [&](const Layer& layer) { return layer.folder == folder; });
  return row == std::end(kLayers) ? nullptr : row;
}

std::string_view first_part(std::string_view path) {
  return path.substr(0, path.find('/'));
}

/// "os" of "src/os/file.cc"; "" for files outside src/.
std::string_view layer_name_of(std::string_view path) {
  if (!path.starts_with("src/")) return {};
  return first_part(path.substr(4));
}

/// "avx2" of "kernels/avx2/attention.h", as includes are written; "" elsewhere.
std::string_view isa_of_include(std::string_view path) {
  constexpr std::string_view kFolder = "kernels/";
  if (!path.starts_with(kFolder)) return {};
  path.remove_prefix(kFolder.size());
  return path.find('/') == std::string_view::npos ? std::string_view{} : first_part(path);
}

/// "avx2" of "src/kernels/avx2/attention.cc"; "" elsewhere.
std::string_view isa_of(std::string_view path) {
  return path.starts_with("src/") ? isa_of_include(path.substr(4)) : std::string_view{};
}

/// "x_test.h" is what several tests of a folder share.
bool is_test(std::string_view path) {
  return path.ends_with("_test.cc") || path.ends_with("_test.h") || path.ends_with("_fuzz.cc");
}

/// "os/descriptor_linux.h": shared by the .cc files of one system, and theirs alone.
bool is_of_one_system(std::string_view header) {
  constexpr std::string_view kEndings[] = {"_linux.h", "_posix.h", "_macos.h", "_windows.h"};
  return folder_of(header).ends_with("os") &&
         std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](std::string_view ending) { return header.ends_with(ending); });
}

bool may_see(const Layer& from, const Layer& to) {
  if (from.folder == to.folder) return true;
  if (to.rank >= from.rank || to.folder == "testing") return false;
  if (from.sees.empty()) return true;
  const auto seen = words_of(from.sees);
  return std::any_of(seen.begin(), seen.end(),
                     [&](const Word& word) { return word.text == to.folder; });
}

void check_direction(const SourceFile& file, size_t line, std::string_view included,
                     Findings& findings) {
  if (is_of_one_system(included) && folder_of(file.path) != "src/os")
    findings.push_back({file.path, line,
                        fmt::format("{} exists on one system; include a service of os/ that every "
                                    "system has",
                                    included)});
  const Layer* from = find_layer(layer_name_of(file.path));
  const Layer* to = find_layer(first_part(included));
  if (from == nullptr || to == nullptr) return;  // check_folder reports the folder
  if (to->folder == "testing" && is_test(file.path)) return;
  if (may_see(*from, *to)) return;
  if (to->folder == "testing") {
    findings.push_back({file.path, line, "testing/ is for tests; move what the program needs out"});
    return;
  }
  findings.push_back(
      {file.path, line,
       fmt::format("{}/ (rank {}) must not include {}/ (rank {}); includes point down{}: move the "
                   "shared part to a lower folder or pass it in",
                   from->folder, from->rank, to->folder, to->rank,
                   from->sees.empty() ? "" : fmt::format(" and here only to {}", from->sees))});
}

}  // namespace

void check_includes(const SourceFile& file, const HasFile& has_file, Findings& findings) {
  const std::string_view top = first_part(file.path);
  for (size_t i = 0; i < file.lines.size(); ++i) {
    const Include include = include_of(file, i);
    if (!include.quoted) continue;
    if (has_file(fmt::format("src/{}", include.path))) {
      check_direction(file, i + 1, include.path, findings);
      continue;
    }
    const bool own = top != "src" && first_part(include.path) == top;
    if (own && has_file(std::string(include.path))) continue;
    findings.push_back({file.path, i + 1,
                        fmt::format("\"{}\" is no file below src/, the one include root; write the "
                                    "whole path from there, or <…> for a library",
                                    include.path)});
  }
}

void check_folder(std::string_view path, Findings& findings) {
  for (std::string_view rest = folder_of(path); !rest.empty();) {
    const std::string_view part = first_part(rest);
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    if (contains(kDrawers, part))
      findings.push_back({std::string(path), 0,
                          fmt::format("a folder called {}/ gathers what belongs elsewhere; name it "
                                      "for what it holds",
                                      part)});
  }
  if (!path.starts_with("src/") || path == "src/CMakeLists.txt") return;
  if (find_layer(layer_name_of(path)) == nullptr || folder_of(path) == "src")
    findings.push_back({std::string(path), 0,
                        "not in a folder of the table of ranks; move it, or add the folder to "
                        "kLayers in tests/tidy/layer_rules.cc and to ARCHITECTURE.md"});
}

void check_platform(const SourceFile& file, Findings& findings) {
  const bool in_os =
      folder_of(file.path) == "src/os" && (!is_header(file) || is_of_one_system(file.path));
  const bool in_tests = file.path.starts_with("tests/");
  const bool in_isa = !isa_of(file.path).empty();
  for (size_t i = 0; i < file.lines.size(); ++i) {
    const std::string_view name = include_of(file, i).path;
    const auto matches = [&](std::string_view header) {
      return header.ends_with('/') ? name.starts_with(header) : name == header;
    };
    if (!in_os && !in_tests &&
        std::any_of(std::begin(kSystemHeaders), std::end(kSystemHeaders), matches))
      findings.push_back(
          {file.path, i + 1,
           fmt::format("<{}> belongs to src/os/*.cc; use or extend a service of os/", name)});
    if (!in_isa && contains(kIntrinsicsHeaders, name))
      findings.push_back({file.path, i + 1,
                          fmt::format("<{}> belongs to src/kernels/<isa>/; call a kernel", name)});
    if (in_os || !trimmed(file.code[i]).starts_with("#")) continue;
    for (const Word& word : words_of(file.code[i]))
      if (contains(kSystemMacros, word.text))
        findings.push_back({file.path, i + 1,
                            fmt::format("#if on {} belongs to src/os/*.cc; make it a service of "
                                        "os/",
                                        word.text)});
  }
}

void check_isa_folder(const SourceFile& file, Findings& findings) {
  const std::string_view isa = isa_of(file.path);
  if (isa.empty() || !is_cpp(file)) return;
  for (size_t i = 0; i < file.lines.size(); ++i) {
    const Include include = include_of(file, i);
    if (include.path.empty()) continue;
    const std::string_view other = isa_of_include(include.path);
    if (include.quoted && !other.empty() && other != isa)
      findings.push_back({file.path, i + 1,
                          fmt::format("includes {}, of another ISA; what it compiles to would "
                                      "depend on this folder's flags: restate it here",
                                      include.path)});
    if (!include.quoted && !contains(kPlainHeaders, include.path) &&
        !contains(kIntrinsicsHeaders, include.path))
      findings.push_back({file.path, i + 1,
                          fmt::format("<{}> in an ISA folder; kernels use plain pointers, because "
                                      "library code compiled with these flags may become the "
                                      "program's only copy",
                                      include.path)});
  }
}

}  // namespace sluice::tidy
