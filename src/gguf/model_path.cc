#include "gguf/model_path.h"

#include <charconv>
#include <filesystem>
#include <map>
#include <system_error>

namespace sluice::gguf {
namespace {

constexpr std::string_view kSuffix = ".gguf";
constexpr std::string_view kOf = "-of-";
constexpr size_t kDigits = 5;

/// Takes a number of exactly five digits off the end of `text`.
std::optional<uint32_t> take_number(std::string_view& text) {
  if (text.size() < kDigits) return {};
  const std::string_view digits = text.substr(text.size() - kDigits);
  uint32_t number = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + kDigits, number);
  if (status != std::errc{} || end != digits.data() + kDigits) return {};
  text.remove_suffix(kDigits);
  return number;
}

bool take_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

/// The models in a folder: what each is called in messages, and a path that opens it. The shards
/// of a set are one model.
Result<std::map<std::string, std::string>> list_models(const std::string& folder) {
  std::map<std::string, std::string> models;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    std::error_code ignored;  // a broken link counts as a file: opening it will name it
    if (entry->is_directory(ignored)) continue;
    const std::string name = entry->path().filename().string();
    if (!name.ends_with(kSuffix)) continue;
    const auto shard = parse_shard_name(name);
    models.emplace(shard ? ShardName{shard->prefix, 1, shard->count}.path() : name,
                   entry->path().string());
  }
  if (error)
    return make_error(ErrorKind::io, "{}: cannot list the folder: {}", folder, error.message());
  return models;
}

}  // namespace

std::string ShardName::path() const {
  return fmt::format("{}-{:05}{}{:05}{}", prefix, number, kOf, count, kSuffix);
}

std::optional<ShardName> parse_shard_name(std::string_view path) {
  if (!take_suffix(path, kSuffix)) return {};
  const auto count = take_number(path);
  if (!count || !take_suffix(path, kOf)) return {};
  const auto number = take_number(path);
  if (!number || !take_suffix(path, "-")) return {};
  if (*number < 1 || *number > *count) return {};
  return ShardName{std::string(path), *number, *count};
}

Result<std::string> find_model(const std::string& folder) {
  const auto models = list_models(folder);
  if (!models.ok()) return models.error();
  if (models->empty()) return make_error(ErrorKind::usage, "{}: no .gguf file in here", folder);
  if (models->size() == 1) return models->begin()->second;

  constexpr size_t kListedMax = 10;
  std::string list;
  size_t listed = 0;
  for (const auto& [name, path] : *models) {
    if (listed++ == kListedMax) break;
    list += fmt::format("{}{}", list.empty() ? "" : ", ", name);
  }
  return make_error(ErrorKind::usage, "{}: {} models in here, name one: {}{}", folder,
                    models->size(), list, models->size() > kListedMax ? ", …" : "");
}

}  // namespace sluice::gguf
