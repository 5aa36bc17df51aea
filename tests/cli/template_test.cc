// sluice template: the prompt byte for byte, and errors that say where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "testing/temp_folder.h"
#include "tests/cli/program.h"

namespace sluice::cli_test {
namespace {

using nlohmann::ordered_json;
using ::testing::HasSubstr;

class TemplateCommand : public ::testing::Test {
 protected:
  Outcome render(const std::string& source, const std::string& json) {
    const std::string path = folder_.write("t.jinja", source);
    return run({"template", path, "--messages", folder_.write("m.json", json)});
  }
  const TempFolder folder_;
};

TEST_F(TemplateCommand, PrintsThePromptAndNothingElse) {
  const Outcome outcome =
      render("{{ bos_token }}{{ messages[0].content }}|{{ x }}|{{ strftime_now('%Y %j') }}",
             R"({"messages": [{"content": "é<|im_end|>"}], "kwargs": {"x": true},
                 "bos_token": "<s>", "now": "2025-06-15T12:34:56"})");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, "<s>é<|im_end|>|True|2025 166");
  EXPECT_EQ(outcome.err, "");
}

TEST_F(TemplateCommand, TakesTheTemplateOfAModel) {
  const std::string messages = folder_.write("m.json",
                                             R"({"messages": [{"role": "user", "content": "Hi"}],
          "kwargs": {"add_generation_prompt": true}})");
  EXPECT_EQ(run({"template", model_path(), "--messages", messages}).out,
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
}

TEST_F(TemplateCommand, ErrorsNameTheLine) {
  const Outcome raised = render("a\n{{ raise_exception('No way') }}", R"({"messages": []})");
  EXPECT_EQ(raised.exit_code, 2);
  EXPECT_THAT(raised.err, HasSubstr("t.jinja: template, line 2: No way\n"));
  EXPECT_EQ(raised.out, "");
  const Outcome broken = render("\n{% if %}", R"({"messages": []})");
  EXPECT_NE(broken.exit_code, 0);
  EXPECT_THAT(broken.err, HasSubstr("t.jinja: template, line 2: "));
  const Outcome bad = render("x", "{}");
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_THAT(bad.err, HasSubstr("m.json: 'messages' must be a list of messages\n"));
  EXPECT_EQ(run({"template", "no.jinja", "--messages", "-"}).exit_code, 1);
  EXPECT_EQ(run({"template", model_path()}).exit_code, 2);
}

/// Some of the bulk data, through the program; test_chat_template_cases has all.
TEST_F(TemplateCommand, PrintsWhatPythonDoes) {
  const char* cases = std::getenv("SLUICE_CASES");
  if (cases == nullptr) GTEST_SKIP() << "SLUICE_CASES names no folder of bulk data";
  for (const std::string name : {"chatml", "gpt-oss", "qwen3", "mistral-nemo"}) {
    const std::string base = std::string(cases) + "/templates/" + name;
    const auto file = ordered_json::parse(file_bytes(base + ".cases.json"));
    for (const auto& test_case : file["cases"]) {
      const ordered_json messages{
          {"messages", test_case["messages"]}, {"tools", test_case["tools"]},
          {"kwargs", test_case["kwargs"]},     {"bos_token", file["bos_token"]},
          {"eos_token", file["eos_token"]},    {"now", file["now"]}};
      const Outcome outcome =
          run({"template", base + ".jinja", "--messages", "-"}, {.input = messages.dump()});
      SCOPED_TRACE(name + ": " + test_case["name"].get<std::string>());
      EXPECT_EQ(outcome.exit_code == 0, !test_case.contains("raises")) << outcome.err;
      if (outcome.exit_code != 0) continue;
      EXPECT_EQ(outcome.out, test_case["expected"].get<std::string>());
    }
  }
}

}  // namespace
}  // namespace sluice::cli_test
