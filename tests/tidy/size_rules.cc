#include "tests/tidy/size_rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::tidy {
namespace {

/// Files whose lines people edit by hand. Data (JSON cases, templates, texts) is as it is.
bool is_hand_written(const SourceFile& file) {
  constexpr std::string_view kEndings[] = {".md", ".py", ".sh", "Makefile", ".ci/run"};
  return is_cpp(file) || is_cmake(file) ||
         std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](std::string_view ending) { return file.path.ends_with(ending); });
}

size_t code_points(std::string_view line) {
  return static_cast<size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u;
  }));
}

}  // namespace

void check_lengths(const SourceFile& file, Findings& findings) {
  if (!is_cpp(file)) return;
  const size_t lines = file.lines.size();
  if (lines > kFileLinesMax && !file.path.ends_with("_tables.cc"))
    findings.push_back({file.path, 0,
                        fmt::format("{} lines, more than {}; split it by ideas (a data table goes "
                                    "into a *_tables.cc)",
                                    lines, kFileLinesMax),
                        "file", lines});
  for (const Function& function : find_functions(file))
    if (function.length > kFunctionLinesMax)
      findings.push_back({file.path, function.line,
                          fmt::format("{} has {} lines, more than {}; give its steps names of "
                                      "their own",
                                      function.name, function.length, kFunctionLinesMax),
                          function.name, function.length});
}

void check_lines(const SourceFile& file, Findings& findings) {
  if (!is_hand_written(file)) return;
  const bool tabs_allowed = file_name_of(file.path) == "Makefile";
  const bool prose = file.path.ends_with(".md");
  for (size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    const size_t columns = code_points(line);
    if (columns > kColumnsMax && !prose)
      findings.push_back(
          {file.path, i + 1,
           fmt::format("{} columns, more than {}; break the line", columns, kColumnsMax)});
    if (!tabs_allowed && line.find('\t') != std::string::npos)
      findings.push_back({file.path, i + 1, "a tab; indent with spaces"});
    if (line.ends_with(' ') || line.ends_with('\t') || line.ends_with('\r'))
      findings.push_back({file.path, i + 1, "space at the end of the line; delete it"});
  }
  if (!file.text.ends_with('\n') || file.text.ends_with("\n\n"))
    findings.push_back({file.path, file.lines.size(), "end the file with exactly one newline"});
}

void check_header(const SourceFile& file, Findings& findings) {
  if (!is_header(file)) return;
  size_t line = 0;
  while (line < file.lines.size() && file.lines[line].starts_with("//")) ++line;
  if (line == 0)
    findings.push_back({file.path, 1,
                        "open the header with a paragraph of // lines: what it is for, the idea, "
                        "who may call it from which thread"});
  if (line >= file.lines.size() || file.lines[line] != "#pragma once")
    findings.push_back({file.path, line + 1, "put #pragma once right below the first paragraph"});
}

Findings apply_exceptions(const Findings& findings, std::span<const LengthException> exceptions) {
  const auto covers = [](const LengthException& exception, const Finding& finding) {
    return exception.path == finding.path && exception.subject == finding.subject;
  };
  Findings left;
  for (const Finding& finding : findings)
    if (std::none_of(exceptions.begin(), exceptions.end(), [&](const LengthException& exception) {
          return covers(exception, finding) && exception.measure >= finding.measure;
        }))
      left.push_back(finding);
  for (const LengthException& exception : exceptions) {
    size_t measured = 0;
    for (const Finding& finding : findings)
      if (covers(exception, finding)) measured = std::max(measured, finding.measure);
    if (measured >= exception.measure) continue;
    left.push_back({std::string(exception.path), 0,
                    measured == 0
                        ? fmt::format("the exception for {} is no longer needed; delete it from "
                                      "kLengthExceptions",
                                      exception.subject)
                        : fmt::format("{} is down to {} lines; lower its exception from {}",
                                      exception.subject, measured, exception.measure)});
  }
  return left;
}

}  // namespace sluice::tidy
