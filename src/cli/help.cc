#include "cli/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace sluice::cli {
namespace {

constexpr size_t kPageWidth = 80;
constexpr size_t kIndent = 2;
constexpr size_t kTextColumn = 27;  ///< where explanations begin

/// "  -n, --tokens-max N       tokens to generate (default: 128)", wrapped. A left side that is too
/// long gets a line of its own.
std::string two_columns(const std::string& left, const std::string& right) {
  const std::vector<std::string> lines = wrap_text(right, kPageWidth - kTextColumn);
  std::string text = fmt::format("{:{}}{}", "", kIndent, left);
  if (lines.empty()) return text + "\n";
  if (kIndent + left.size() + 2 > kTextColumn)
    text += fmt::format("\n{:{}}", "", kTextColumn);
  else
    text += std::string(kTextColumn - kIndent - left.size(), ' ');
  text += lines.front() + "\n";
  for (size_t i = 1; i < lines.size(); ++i)
    text += fmt::format("{:{}}{}\n", "", kTextColumn, lines[i]);
  return text;
}

/// "-n, --tokens-max N"; long names stand below each other whether or not there is a short one. An
/// argument without a dash is shown by its name, or by the one word that it may be.
std::string option_names(const CLI::Option& option) {
  const bool any_text = option.get_type_name() == "TEXT";  // what CLI11 calls a std::string
  if (!option.nonpositional()) return any_text ? option.get_name(true) : option.get_type_name();
  std::string names;
  for (const std::string& name : option.get_snames()) names += fmt::format("-{}, ", name);
  if (names.empty()) names = "    ";
  for (const std::string& name : option.get_lnames()) names += fmt::format("--{}, ", name);
  names.resize(names.size() - 2);
  if (option.get_type_size_max() > 0) names += fmt::format(" {}", option.get_type_name());
  return names;
}

std::string option_text(const CLI::Option& option) {
  std::string text = option.get_description();
  if (!option.get_default_str().empty())
    text += fmt::format(" (default: {})", option.get_default_str());
  return text;
}

class Formatter final : public CLI::FormatterBase {
 public:
  explicit Formatter(HelpPage page) : page_(std::move(page)) {}

  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
    const bool top = app->get_parent() == nullptr;
    const std::string name = command_path(*app);
    std::string text =
        fmt::format("{}{} {}\n\nUsage:\n", name, top ? "" : ":", app->get_description());
    text += fmt::format("  {} {}\n", name, page_.arguments);
    text += commands(*app) + options(*app);
    for (const std::string& note : page_.notes) {
      text += "\n";
      for (const std::string& line : wrap_text(note, kPageWidth)) text += line + "\n";
    }
    if (!page_.examples.empty()) text += "\nExamples:\n";
    for (const std::string& example : page_.examples) text += fmt::format("  {}\n", example);
    return text;
  }

 private:
  static std::string commands(const CLI::App& app) {
    std::string text;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
      text += two_columns(command->get_name(), command->get_description());
    return text.empty() ? text : "\nCommands:\n" + text;
  }

  /// Groups in the order in which they were declared, the nameless one ("Options") last.
  static std::string options(const CLI::App& app) {
    std::vector<std::string> groups = app.get_groups();
    std::stable_partition(groups.begin(), groups.end(),
                          [](const std::string& name) { return name != "Options"; });
    std::string text;
    for (const std::string& group : groups) {
      const auto members =
          app.get_options([&](const CLI::Option* option) { return option->get_group() == group; });
      if (members.empty()) continue;
      text += fmt::format("\n{}:\n", group);
      for (const CLI::Option* option : members)
        text += two_columns(option_names(*option), option_text(*option));
    }
    return text;
  }

  const HelpPage page_;
};

}  // namespace

void set_help(CLI::App& command, HelpPage page) {
  command.formatter(std::make_shared<Formatter>(std::move(page)));
  const std::vector<std::string> groups = command.get_groups();
  const bool has_output = std::ranges::find(groups, "Output") != groups.end();
  command.set_help_flag("-h,--help", "this page")->group(has_output ? "Output" : "Options");
}

std::string command_path(const CLI::App& command) {
  if (command.get_parent() == nullptr) return "sluice";
  return command_path(*command.get_parent()) + " " + command.get_name();
}

std::vector<std::string> wrap_text(std::string_view text, size_t width) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    if (lines.empty() || lines.back().size() + 1 + word.size() > width)
      lines.emplace_back(word);
    else
      lines.back() += fmt::format(" {}", word);
  }
  return lines;
}

}  // namespace sluice::cli
