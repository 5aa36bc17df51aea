#include "os/cpu_topology.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <vector>

namespace sluice::os {
namespace {

constexpr int kFullCapacity = 1024;  // the kernel's unit: that of the machine's fastest core

std::string cpu_folder(const std::string& root, int cpu) {
  return root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
}

/// The first number of a file, or `otherwise`.
int read_number(const std::string& path, int otherwise) {
  std::ifstream file(path);
  int number = otherwise;
  return file >> number ? number : otherwise;
}

/// Whether a list like "0-7,16,18-19" has the number. A missing file has none.
bool list_has(const std::string& path, int wanted) {
  std::ifstream file(path);
  for (int first = 0; file >> first;) {
    int last = first;
    if (file.peek() == '-') {
      file.ignore();
      file >> last;
    }
    if (first <= wanted && wanted <= last) return true;
    if (file.peek() == ',') file.ignore();
  }
  return false;
}

/// Hybrid x86 processors name their efficiency cores; newer kernels give every CPU a capacity.
int capacity_of(const std::string& root, int cpu) {
  const bool is_efficiency_core = list_has(root + "/sys/devices/cpu_atom/cpus", cpu);
  return read_number(cpu_folder(root, cpu) + "/cpu_capacity",
                     is_efficiency_core ? kFullCapacity / 2 : kFullCapacity);
}

/// A physical core is known by the first CPU that shares it.
int core_of(const std::string& root, int cpu) {
  return read_number(cpu_folder(root, cpu) + "/topology/thread_siblings_list", cpu);
}

}  // namespace

size_t performance_core_count(const std::string& root, std::span<const int> cpus) {
  std::vector<int> capacities;
  for (const int cpu : cpus) capacities.push_back(capacity_of(root, cpu));
  const int fastest =
      capacities.empty() ? 0 : *std::max_element(capacities.begin(), capacities.end());
  std::set<int> cores;
  for (size_t i = 0; i < cpus.size(); ++i)
    if (4 * capacities[i] > 3 * fastest) cores.insert(core_of(root, cpus[i]));
  return std::max<size_t>(cores.size(), 1);
}

}  // namespace sluice::os
