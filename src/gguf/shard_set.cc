#include "gguf/shard_set.h"

#include <algorithm>
#include <span>

#include "gguf/format.h"
#include "gguf/model_path.h"
#include "gguf/quoted.h"
#include "gguf/value_lookup.h"
#include "os/file.h"

namespace sluice::gguf {
namespace {

/// How many files the set has, by the word of one of them; 1 for a file that is no shard.
Result<uint64_t> split_count(const Shard& shard) {
  const auto count = find_uint(shard.header.values, kKeySplitCount);
  if (!count.ok()) return count.error().at(shard.path);
  return std::max<uint64_t>(count->value_or(1), 1);
}

Error unlike_set(const Shard& shard, uint64_t count) {
  return make_error(ErrorKind::corrupt,
                    "{}: does not belong to this set of {} files: its split.count or split.no is "
                    "missing or disagrees",
                    shard.path, count);
}

/// Puts each shard at the place that its split.no gives it, whatever its name says.
Status sort_shards(std::vector<Shard>& shards) {
  std::vector<Shard> sorted(shards.size());
  for (Shard& shard : shards) {
    const auto count = find_uint(shard.header.values, kKeySplitCount);
    if (!count.ok()) return count.error().at(shard.path);
    const auto number = find_uint(shard.header.values, kKeySplitNumber);
    if (!number.ok()) return number.error().at(shard.path);
    if (*count != shards.size() || !*number || **number >= shards.size())
      return unlike_set(shard, shards.size());
    Shard& place = sorted[static_cast<size_t>(**number)];
    if (!place.path.empty())
      return make_error(ErrorKind::corrupt, "{}: is shard {} of the set, but so is {}", shard.path,
                        **number + 1, place.path);
    place = std::move(shard);
  }
  shards = std::move(sorted);
  return {};
}

/// A shard may repeat keys of the first one, never contradict them.
Status check_agreement(const Shard& first, const Shard& shard) {
  for (const auto& [key, value] : shard.header.values) {
    if (key == kKeySplitNumber) continue;
    const auto expected = first.header.values.find(key);
    if (expected != first.header.values.end() && expected->second != value)
      return make_error(ErrorKind::corrupt,
                        "{}: does not belong to {}: they disagree about the key {}", shard.path,
                        first.path, quoted(key));
  }
  return {};
}

/// The number of tensors is the one thing that an exchanged or half-written shard gives away.
Status check_total(const GgufFile& file) {
  const auto total = find_uint(file.values(), kKeySplitTensors);
  if (!total.ok()) return total.error().at(file.paths().front());
  if (*total && **total != file.tensors().size())
    return make_error(ErrorKind::corrupt, "{}: the set should hold {} tensors, but holds {}",
                      file.paths().front(), **total, file.tensors().size());
  return {};
}

/// All files of the set of which `opened` is one.
Result<std::vector<Shard>> read_siblings(Shard opened, uint64_t count) {
  const auto name = parse_shard_name(opened.path);
  if (!name || name->count != count)
    return make_error(ErrorKind::corrupt,
                      "{}: is one of {} files, so its name should end in -0000N-of-{:05}.gguf: the "
                      "others are looked for under such names beside it",
                      opened.path, count, count);
  std::vector<Shard> shards;
  for (uint32_t number = 1; number <= name->count; ++number) {
    if (number == name->number) {
      shards.push_back(std::move(opened));
      continue;
    }
    auto sibling = read_shard(ShardName{name->prefix, number, name->count}.path());
    if (!sibling.ok())
      return make_error(sibling.error().kind, "{} (one of the {} files of this model)",
                        sibling.error().message, count);
    shards.push_back(std::move(*sibling));
  }
  return shards;
}

}  // namespace

Result<Shard> read_shard(const std::string& path) {
  constexpr uint64_t kFirstReadBytes = 1 * kMiB;  // most headers; a vocabulary takes 5 to 15 MiB
  const auto file = os::File::open(path, os::DirectMode::off);
  if (!file.ok()) return file.error();

  // Parsing starts again after each doubling: all passes together cost at most twice the last, and
  // the parser stays a pure function.
  std::vector<std::byte> head;
  for (uint64_t wanted = kFirstReadBytes;; wanted *= 2) {
    const size_t had = head.size();
    head.resize(static_cast<size_t>(std::min(wanted, file->bytes())));
    const size_t more = head.size() - had;
    const auto read = file->read_at(had, head.data() + had, more, more);
    if (!read.ok()) return read.error();
    auto header = parse_header(head, file->bytes());
    if (!header.ok()) return header.error().at(path);
    if (*header) return Shard{path, file->bytes(), std::move(**header)};
    CHECK(head.size() < file->bytes());  // with the whole file in hand nothing can be missing
  }
}

Result<GgufFile> SetReader::open(const std::string& path) {
  auto shard = read_shard(path);
  if (!shard.ok()) return shard.error();
  const auto count = split_count(*shard);
  if (!count.ok()) return count.error();
  std::vector<Shard> shards;
  if (*count == 1) {
    shards.push_back(std::move(*shard));
  } else {
    auto all = read_siblings(std::move(*shard), *count);
    if (!all.ok()) return all.error();
    shards = std::move(*all);
  }
  return join(std::move(shards));
}

Result<GgufFile> SetReader::join(std::vector<Shard> shards) {
  CHECK(!shards.empty());
  if (shards.size() > 1)
    if (Status sorted = sort_shards(shards); !sorted.ok()) return sorted.error();
  for (const Shard& shard : std::span(shards).subspan(1))
    if (Status agrees = check_agreement(shards.front(), shard); !agrees.ok()) return agrees.error();
  GgufFile file;
  for (Shard& shard : shards) {
    file.paths_.push_back(shard.path);
    file.file_bytes_.push_back(shard.file_bytes);
    if (Status added = add_tensors(file, std::move(shard.header.tensors)); !added.ok())
      return added.error();
  }
  file.version_ = shards.front().header.version;
  file.values_ = std::move(shards.front().header.values);
  if (Status total = check_total(file); !total.ok()) return total.error();
  return file;
}

Status SetReader::add_tensors(GgufFile& file, std::vector<Tensor> tensors) {
  const auto shard_index = static_cast<uint32_t>(file.paths_.size() - 1);
  for (Tensor& tensor : tensors) {
    const auto [known, is_new] = file.tensor_index_.emplace(tensor.name, file.tensors_.size());
    if (!is_new)
      return make_error(ErrorKind::corrupt, "{}: tensor {} is there twice, first in {}",
                        file.paths_.back(), quoted(tensor.name),
                        file.paths_[file.tensors_[known->second].extent.file]);
    tensor.extent.file = shard_index;
    file.tensors_.push_back(std::move(tensor));
  }
  return {};
}

}  // namespace sluice::gguf
