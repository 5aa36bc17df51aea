#include "tests/tidy/layer_rules.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice::tidy {
namespace {

/// What check_includes finds in a file at `path` that has one include.
Findings include_findings(const std::string& path, const std::string& included) {
  static const std::set<std::string> files = {
      "src/base/a.h",        "src/os/a.h",      "src/os/a_linux.h", "src/text/a.h",
      "src/gguf/a.h",        "src/io/a.h",      "src/testing/a.h",  "src/engine/a.h",
      "src/forward/a.h",     "src/kernels/a.h", "src/model/a.h",    "src/sampling/a.h",
      "src/backend/cpu/a.h", "tests/tidy/a.h",  "bench/a.h",        "src/experts/a.h"};
  Findings findings;
  check_includes(
      parse_source(path, "#include \"" + included + "\"\n"),
      [](const std::string& file) { return files.contains(file); }, findings);
  return findings;
}

bool allowed(const std::string& path, const std::string& included) {
  return include_findings(path, included).empty();
}

TEST(TidyLayers, IncludesPointDown) {
  EXPECT_TRUE(allowed("src/os/a.cc", "os/a.h"));
  EXPECT_TRUE(allowed("src/os/a.cc", "base/a.h"));
  EXPECT_TRUE(allowed("src/backend/cpu/a.cc", "backend/cpu/a.h"));
  EXPECT_TRUE(allowed("src/kernels/avx2/a.cc", "kernels/a.h"));
  EXPECT_FALSE(allowed("src/base/a.h", "os/a.h"));
  EXPECT_FALSE(allowed("src/gguf/a.h", "io/a.h")) << "one rank, two folders";
  EXPECT_FALSE(allowed("src/kernels/avx2/a.cc", "model/a.h"));
  EXPECT_FALSE(allowed("src/experts/a.cc", "backend/cpu/a.h"));
  EXPECT_EQ(include_findings("src/base/a.h", "os/a.h")[0].text(),
            "src/base/a.h:1: base/ (rank 0) must not include os/ (rank 1); includes point down: "
            "move the shared part to a lower folder or pass it in");
}

TEST(TidyLayers, TheFrontEndsSeeTheEngineOnly) {
  EXPECT_TRUE(allowed("src/cli/a.cc", "engine/a.h"));
  EXPECT_TRUE(allowed("src/cli/a.cc", "text/a.h"));
  EXPECT_FALSE(allowed("src/cli/a.cc", "forward/a.h"));
  EXPECT_FALSE(allowed("src/server/a.cc", "sampling/a.h"));
}

TEST(TidyLayers, TestingIsForTests) {
  EXPECT_TRUE(allowed("src/os/a_test.cc", "testing/a.h"));
  EXPECT_TRUE(allowed("src/os/a_test.h", "testing/a.h"));
  EXPECT_TRUE(allowed("src/gguf/a_fuzz.cc", "testing/a.h"));
  EXPECT_TRUE(allowed("src/testing/a.cc", "gguf/a.h"));
  EXPECT_TRUE(allowed("tests/a_test.cc", "testing/a.h"));
  EXPECT_TRUE(allowed("bench/a.cc", "testing/a.h"));
  EXPECT_FALSE(allowed("src/os/a.cc", "testing/a.h"));
  EXPECT_FALSE(allowed("src/engine/a.cc", "testing/a.h"));
  EXPECT_FALSE(allowed("src/testing/a.cc", "model/a.h"));
}

TEST(TidyLayers, HeadersOfOneSystemStayInOs) {
  EXPECT_TRUE(allowed("src/os/a.cc", "os/a_linux.h"));
  EXPECT_FALSE(allowed("src/io/a.cc", "os/a_linux.h"));
  EXPECT_FALSE(allowed("tests/a_test.cc", "os/a_linux.h"));
}

TEST(TidyLayers, OneIncludeRoot) {
  EXPECT_TRUE(allowed("tests/tidy_test.cc", "tests/tidy/a.h"));
  EXPECT_FALSE(allowed("src/os/b.cc", "a.h")) << "relative to its own folder";
  EXPECT_FALSE(allowed("src/os/b.cc", "src/os/a.h"));
  EXPECT_FALSE(allowed("src/os/b.cc", "os/missing.h"));
  EXPECT_FALSE(allowed("src/os/b.cc", "tests/tidy/a.h"));
  EXPECT_FALSE(allowed("bench/b.cc", "tests/tidy/a.h"));
}

TEST(TidyLayers, FoldersAreInTheTable) {
  const auto count = [](std::string_view path) {
    Findings findings;
    check_folder(path, findings);
    return findings.size();
  };
  EXPECT_EQ(count("src/os/a.cc"), 0u);
  EXPECT_EQ(count("src/kernels/avx2/a.cc"), 0u);
  EXPECT_EQ(count("README.md"), 0u);
  EXPECT_EQ(count("src/a.cc"), 1u);
  EXPECT_EQ(count("src/misplaced/a.cc"), 1u);
  EXPECT_EQ(count("src/os/util/a.cc"), 1u);
  EXPECT_EQ(count("tests/common/a.cc"), 1u);
  EXPECT_EQ(count("tools/helpers/a.py"), 1u);
}

size_t platform_count(const std::string& path, const std::string& text) {
  Findings findings;
  check_platform(parse_source(path, text), findings);
  return findings.size();
}

TEST(TidyLayers, SystemHeadersStayInOs) {
  for (const char* header : {"unistd.h", "sys/stat.h", "linux/io_uring.h", "pthread.h", "sched.h",
                             "liburing.h", "windows.h", "cpuid.h"}) {
    const std::string text = std::string("#include <") + header + ">\n";
    EXPECT_EQ(platform_count("src/os/file_linux.cc", text), 0u) << header;
    EXPECT_EQ(platform_count("src/os/descriptor_linux.h", text), 0u) << header;
    EXPECT_EQ(platform_count("src/os/file.h", text), 1u) << header;
    EXPECT_EQ(platform_count("src/io/queue.cc", text), 1u) << header;
    EXPECT_EQ(platform_count("bench/drive.cc", text), 1u) << header;
  }
  EXPECT_EQ(platform_count("tests/process.cc", "#include <sys/wait.h>\n"), 0u);
}

TEST(TidyLayers, ConditionsOnTheSystemStayInOs) {
  EXPECT_EQ(platform_count("src/os/cpu.cc", "#if defined(__x86_64__)\n"), 0u);
  EXPECT_EQ(platform_count("src/os/cpu.h", "#ifdef __linux__\n"), 1u);
  EXPECT_EQ(platform_count("src/io/a.cc", "#if defined(_WIN32)\n"), 1u);
  EXPECT_EQ(platform_count("src/io/a.cc", "#ifdef NDEBUG\n// not __linux__\n"), 0u);
}

TEST(TidyLayers, IntrinsicsStayInIsaFolders) {
  EXPECT_EQ(platform_count("src/kernels/avx2/a.cc", "#include <immintrin.h>\n"), 0u);
  EXPECT_EQ(platform_count("src/kernels/select.cc", "#include <immintrin.h>\n"), 1u);
  EXPECT_EQ(platform_count("src/os/cpu.cc", "#include <immintrin.h>\n"), 1u);
  EXPECT_EQ(platform_count("tests/a.cc", "#include <arm_neon.h>\n"), 1u);
}

TEST(TidyLayers, IsaFoldersBringNoLibraryCode) {
  const auto count = [](const std::string& path, const std::string& text) {
    Findings findings;
    check_isa_folder(parse_source(path, text), findings);
    return findings.size();
  };
  EXPECT_EQ(count("src/kernels/avx2/a.cc", "#include <immintrin.h>\n#include <cstddef>\n"), 0u);
  EXPECT_EQ(count("src/kernels/avx2/a.cc", "#include \"kernels/kernels.h\"\n"), 0u);
  EXPECT_EQ(count("src/kernels/avx2/a.cc", "#include \"kernels/avx2/dot.h\"\n"), 0u);
  EXPECT_EQ(count("src/kernels/avx512/a.cc", "#include \"kernels/avx2/dot.h\"\n"), 1u);
  for (const char* header : {"vector", "string", "algorithm", "array", "span", "memory"})
    EXPECT_EQ(count("src/kernels/ref/a.cc", std::string("#include <") + header + ">\n"), 1u);
  EXPECT_EQ(count("src/kernels/select.cc", "#include <vector>\n"), 0u);
}

}  // namespace
}  // namespace sluice::tidy
