#include "os/cgroup.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "os/file.h"

namespace sluice::os {
namespace {

enum class Version { v1, v2 };

/// A mounted hierarchy of groups: its folder `group_root` is what one sees at `mount_point`.
struct Hierarchy {
  std::string mount_point;
  std::string group_root;
};

/// A group that rules the process, as a folder.
struct Group {
  Version version;
  std::string folder;
};

std::string read_or_empty(const std::string& path) {
  constexpr uint64_t kBytesMax = 4 * kMiB;  // mountinfo of a busy container host is the longest
  auto text = read_text_file(path, kBytesMax);
  return text.ok() ? std::move(text).value() : std::string();
}

/// The pieces between separators; empty pieces are kept.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  while (true) {
    const size_t end = text.find(separator);
    pieces.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

bool contains(const std::vector<std::string_view>& pieces, std::string_view wanted) {
  return std::find(pieces.begin(), pieces.end(), wanted) != pieces.end();
}

/// A number at the start of the text; empty for "max" and for anything else.
std::optional<int64_t> parse_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status == std::errc::result_out_of_range) return INT64_MAX;
  if (status != std::errc{}) return std::nullopt;
  return value;
}

std::optional<uint64_t> read_bytes(const std::string& path) {
  const auto value = parse_number(read_or_empty(path));
  if (!value || *value < 0) return std::nullopt;
  return static_cast<uint64_t>(*value);
}

/// The value of the line "name value"; 0 where there is none.
uint64_t stat_value(std::string_view text, std::string_view name) {
  for (const std::string_view line : split(text, '\n')) {
    const auto words = split(line, ' ');
    if (words.size() == 2 && words[0] == name)
      return static_cast<uint64_t>(std::max<int64_t>(parse_number(words[1]).value_or(0), 0));
  }
  return 0;
}

/// mountinfo writes a blank as \040, and tab, newline and backslash likewise.
std::string unescape(std::string_view text) {
  const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && is_octal(text[i + 1]) && is_octal(text[i + 2]) &&
        is_octal(text[i + 3])) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                 (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

/// The mounts that show the controller in this version. A line of mountinfo:
/// "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory"
/// with any number of fields like "shared:9" before the dash.
std::vector<Hierarchy> find_hierarchies(const std::string& root, Version version,
                                        std::string_view controller) {
  constexpr size_t kGroupRoot = 3, kMountPoint = 4;  // fields from the line's start
  constexpr size_t kKind = 1, kSuperOptions = 3;     // fields from the dash
  std::vector<Hierarchy> found;
  const std::string text = read_or_empty(root + "/proc/self/mountinfo");
  for (const std::string_view line : split(text, '\n')) {
    const auto fields = split(line, ' ');
    const auto dash_at = std::find(fields.begin(), fields.end(), "-");
    const auto dash = static_cast<size_t>(dash_at - fields.begin());
    if (dash <= kMountPoint || dash + kSuperOptions >= fields.size()) continue;
    const std::string_view kind = fields[dash + kKind];
    const bool matches =
        version == Version::v2
            ? kind == "cgroup2"
            : kind == "cgroup" && contains(split(fields[dash + kSuperOptions], ','), controller);
    if (matches) found.push_back({unescape(fields[kMountPoint]), unescape(fields[kGroupRoot])});
  }
  return found;
}

/// The process's group in the hierarchy of the controller (v1) or in the one hierarchy of v2. Lines
/// of /proc/self/cgroup: "4:memory,hugetlb:/a/b" and "0::/a/b".
std::optional<std::string> own_group(const std::string& root, Version version,
                                     std::string_view controller) {
  const std::string text = read_or_empty(root + "/proc/self/cgroup");
  for (const std::string_view line : split(text, '\n')) {
    const size_t first = line.find(':');
    if (first == std::string_view::npos) continue;
    const size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool matches = version == Version::v2 ? line.substr(0, second) == "0:"
                                                : contains(split(controllers, ','), controller);
    if (matches) return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

/// What is left of `group` below `group_root`: "/a/b" below "/a" is "/b". Empty when it lies
/// elsewhere.
std::optional<std::string> path_below(const std::string& group, const std::string& group_root) {
  const std::string prefix = group_root == "/" ? "" : group_root;
  if (group.compare(0, prefix.size(), prefix) != 0) return std::nullopt;
  const std::string rest = group.substr(prefix.size());
  if (rest == "/") return std::string();
  if (!rest.empty() && rest.front() != '/') return std::nullopt;
  return rest;
}

/// Adds the groups that rule the process in one version of the interface: its own and all above,
/// up to the mount point. The host of containers may have mounts that show other groups only; they
/// count for nothing. But when no mount shows our group (a container with a view from outside),
/// the top of the first is the best there is.
void add_ruling_groups(const std::string& root, Version version, std::string_view controller,
                       std::vector<Group>& groups) {
  const auto own = own_group(root, version, controller);
  const auto hierarchies = find_hierarchies(root, version, controller);
  if (!own || hierarchies.empty()) return;
  bool shown = false;
  for (const Hierarchy& hierarchy : hierarchies) {
    auto below = path_below(*own, hierarchy.group_root);
    if (!below) continue;
    shown = true;
    const std::string top = root + hierarchy.mount_point;
    for (; !below->empty(); below->erase(below->rfind('/')))
      groups.push_back({version, top + *below});
    groups.push_back({version, top});
  }
  if (!shown) groups.push_back({version, root + hierarchies.front().mount_point});
}

std::vector<Group> ruling_groups(const std::string& root, std::string_view controller) {
  std::vector<Group> groups;
  add_ruling_groups(root, Version::v1, controller, groups);
  add_ruling_groups(root, Version::v2, controller, groups);
  return groups;
}

/// Limit, usage and what can be reclaimed of one group. (v1 counts slabs apart and names no share
/// of them; they are taken for used.)
struct GroupMemory {
  std::optional<uint64_t> limit, usage;
  uint64_t reclaimable = 0;
};

GroupMemory read_group_memory(const Group& group) {
  GroupMemory memory;
  const std::string stat = read_or_empty(group.folder + "/memory.stat");
  if (group.version == Version::v2) {
    memory.limit = read_bytes(group.folder + "/memory.max");
    // Past memory.high a group is not killed but slowed to a crawl, which is no better.
    const auto high = read_bytes(group.folder + "/memory.high");
    if (high) memory.limit = std::min(*high, memory.limit.value_or(*high));
    memory.usage = read_bytes(group.folder + "/memory.current");
    // "file" would be wrong here: it counts files on tmpfs, which cannot go anywhere.
    memory.reclaimable = stat_value(stat, "active_file") + stat_value(stat, "inactive_file") +
                         stat_value(stat, "slab_reclaimable");
  } else {
    memory.limit = read_bytes(group.folder + "/memory.limit_in_bytes");
    // The smallest limit of all ancestors, even of those a container cannot see.
    const uint64_t inherited = stat_value(stat, "hierarchical_memory_limit");
    if (memory.limit && inherited > 0) memory.limit = std::min(*memory.limit, inherited);
    // v1 writes "no limit" as a number close to 2^63.
    constexpr uint64_t kUnlimited = uint64_t{1} << 60;
    if (memory.limit && *memory.limit >= kUnlimited) memory.limit.reset();
    memory.usage = read_bytes(group.folder + "/memory.usage_in_bytes");
    memory.reclaimable =
        stat_value(stat, "total_active_file") + stat_value(stat, "total_inactive_file");
  }
  return memory;
}

/// CPU time allowed per period, as "quota period" in microseconds; −1 or "max" means no limit.
std::optional<size_t> read_group_cores(const Group& group) {
  std::optional<int64_t> quota, period;
  if (group.version == Version::v2) {
    const std::string text = read_or_empty(group.folder + "/cpu.max");
    const auto words = split(text, ' ');
    if (words.size() == 2) {
      quota = parse_number(words[0]);
      period = parse_number(words[1]);
    }
  } else {
    quota = parse_number(read_or_empty(group.folder + "/cpu.cfs_quota_us"));
    period = parse_number(read_or_empty(group.folder + "/cpu.cfs_period_us"));
  }
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<size_t>((*quota - 1) / *period + 1);
}

template <typename T>
void keep_smaller(std::optional<T>& smallest, T value) {
  if (!smallest || value < *smallest) smallest = value;
}

}  // namespace

CgroupMemory cgroup_memory(const std::string& root) {
  CgroupMemory total;
  for (const Group& group : ruling_groups(root, "memory")) {
    const GroupMemory memory = read_group_memory(group);
    if (!memory.limit) continue;
    const uint64_t usage = memory.usage.value_or(0);
    const uint64_t used = usage - std::min(usage, memory.reclaimable);
    keep_smaller(total.limit_bytes, *memory.limit);
    keep_smaller(total.left_bytes, *memory.limit - std::min(*memory.limit, used));
  }
  return total;
}

std::optional<std::string> cgroup_v2_folder(const std::string& root) {
  std::vector<Group> groups;  // the process's own first
  add_ruling_groups(root, Version::v2, {}, groups);
  return groups.empty() ? std::nullopt : std::optional(groups.front().folder);
}

std::optional<size_t> cgroup_core_limit(const std::string& root) {
  std::optional<size_t> smallest;
  for (const Group& group : ruling_groups(root, "cpu")) {
    if (const auto cores = read_group_cores(group)) keep_smaller(smallest, *cores);
  }
  return smallest;
}

}  // namespace sluice::os
