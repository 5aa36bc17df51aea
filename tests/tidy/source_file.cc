#include "tests/tidy/source_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace sluice::tidy {
namespace {

constexpr size_t kTextBytesMax = size_t{4} << 20;

bool is_word_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Walks over C++ text once and copies each character to the view it belongs to, a space to the
/// other. It knows comments, quotes, raw strings and digit separators; that is all the C++ the
/// rules need.
class Splitter {
 public:
  explicit Splitter(std::string_view text)
      : text_(text), code_(text.size(), ' '), comments_(text.size(), ' ') {
    for (size_t i = 0; i < text.size(); ++i)
      if (text[i] == '\n') code_[i] = comments_[i] = '\n';
    while (at_ < text_.size()) step();
  }

  const std::string& code() const { return code_; }
  const std::string& comments() const { return comments_; }

 private:
  bool follows(std::string_view what) const { return text_.substr(at_, what.size()) == what; }

  void step() {
    const char c = text_[at_];
    const char before = at_ > 0 ? text_[at_ - 1] : ' ';
    if (follows("//")) {
      take_comment(std::min(text_.find('\n', at_), text_.size()));
    } else if (follows("/*")) {
      const size_t end = text_.find("*/", at_ + 2);
      take_comment(end == std::string_view::npos ? text_.size() : end + 2);
    } else if (c == '"' && before == 'R') {
      take_raw_string();
    } else if (c == '"' || (c == '\'' && !is_word_char(before))) {
      take_literal(c);
    } else {
      code_[at_] = c;
      ++at_;
    }
  }

  void take_comment(size_t end) {
    for (; at_ < end; ++at_)
      if (text_[at_] != '\n' && text_[at_] != '/') comments_[at_] = text_[at_];
  }

  /// A quote that is still open at the end of the line ends there: the file is not valid C++, but
  /// the lines after it are still worth checking.
  void take_literal(char quote) {
    code_[at_++] = quote;
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n')
      at_ += text_[at_] == '\\' ? 2 : 1;
    if (at_ < text_.size() && text_[at_] == quote) code_[at_++] = quote;
  }

  void take_raw_string() {
    code_[at_] = '"';
    const size_t open = std::min(text_.find('(', at_), text_.size());
    const std::string close = fmt::format("){}\"", text_.substr(at_ + 1, open - at_ - 1));
    const size_t end = text_.find(close, open);
    at_ = end == std::string_view::npos ? text_.size() : end + close.size();
    code_[at_ - 1] = '"';
  }

  std::string_view text_;
  std::string code_;
  std::string comments_;
  size_t at_ = 0;
};

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool is_skipped_folder(const std::string& name) {
  return name == ".git" || name == ".cache" || name.starts_with("build");
}

}  // namespace

std::string Finding::text() const {
  if (line == 0) return fmt::format("{}: {}", path, message);
  return fmt::format("{}:{}: {}", path, line, message);
}

SourceFile parse_source(std::string path, std::string text) {
  SourceFile file{
      .path = std::move(path), .text = std::move(text), .lines = {}, .code = {}, .comments = {}};
  file.lines = split_lines(file.text);
  if (!is_cpp(file)) return file;
  const Splitter views(file.text);
  file.code = split_lines(views.code());
  file.comments = split_lines(views.comments());
  return file;
}

std::vector<SourceFile> read_tree(const std::string& root) {
  namespace fs = std::filesystem;
  std::vector<SourceFile> files;
  for (auto entry = fs::recursive_directory_iterator(root); entry != fs::end(entry); ++entry) {
    if (entry->is_directory() && is_skipped_folder(entry->path().filename().string()))
      entry.disable_recursion_pending();
    if (!entry->is_regular_file() || entry->is_symlink() || entry->file_size() > kTextBytesMax)
      continue;
    std::ifstream in(entry->path(), std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(in)), {});
    if (entry->path().filename() == ".git" || text.find('\0') != std::string::npos) continue;
    files.push_back(
        parse_source(fs::relative(entry->path(), root).generic_string(), std::move(text)));
  }
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

bool is_header(const SourceFile& file) {
  return file.path.ends_with(".h");
}
bool is_cpp(const SourceFile& file) {
  return is_header(file) || file.path.ends_with(".cc");
}
bool is_cmake(const SourceFile& file) {
  return file.path.ends_with(".cmake") || file_name_of(file.path) == "CMakeLists.txt";
}

std::string_view folder_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
}

std::string_view file_name_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::vector<Word> words_of(std::string_view line) {
  std::vector<Word> words;
  for (size_t i = 0; i < line.size(); ++i) {
    if (!is_word_char(line[i])) continue;
    const size_t start = i;
    while (i < line.size() && is_word_char(line[i])) ++i;
    words.push_back({line.substr(start, i - start), start});
  }
  return words;
}

std::string_view trimmed(std::string_view text) {
  const size_t start = text.find_first_not_of(" \t\n");
  if (start == std::string_view::npos) return {};
  return text.substr(start, text.find_last_not_of(" \t\n") + 1 - start);
}

Include include_of(const SourceFile& file, size_t line_index) {
  constexpr std::string_view kDirective = "#include";
  if (!trimmed(file.code[line_index]).starts_with(kDirective)) return {};
  const std::string_view rest = trimmed(trimmed(file.lines[line_index]).substr(kDirective.size()));
  if (rest.empty() || (rest[0] != '"' && rest[0] != '<')) return {};
  const bool quoted = rest[0] == '"';
  const size_t end = std::min(rest.find(quoted ? '"' : '>', 1), rest.size());
  return {rest.substr(1, end - 1), quoted};
}

}  // namespace sluice::tidy
