// The bytes of a census file; docs/census.md is their description.
#include <xxhash.h>

#include <cstring>

#include "base/byte_reader.h"
#include "experts/census.h"

namespace sluice {
namespace {

constexpr std::string_view kMagic = "SLUICENS";
constexpr uint32_t kVersion = 1;
constexpr uint64_t kHeaderBytes = 40;
constexpr uint64_t kChecksumBytes = sizeof(uint64_t);

uint64_t hash_of(std::string_view bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

template <typename T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace

bool looks_like_census(std::string_view bytes) {
  return bytes.starts_with(kMagic);
}

uint64_t census_bytes(const CensusIdentity& identity) {
  return kHeaderBytes + uint64_t{identity.layer_count} * identity.expert_count * sizeof(uint32_t) +
         kChecksumBytes;
}

std::string write_census(const CensusIdentity& identity, std::span<const uint32_t> counts) {
  CHECK(counts.size() == size_t{identity.layer_count} * identity.expert_count);
  std::string bytes(kMagic);
  append(bytes, kVersion);
  append(bytes, identity.layer_count);
  append(bytes, identity.expert_count);
  append(bytes, uint32_t{0});
  append(bytes, identity.model_bytes);
  append(bytes, hash_of(identity.model_name));
  CHECK(bytes.size() == kHeaderBytes);
  bytes.append(reinterpret_cast<const char*>(counts.data()), counts.size_bytes());
  append(bytes, hash_of(bytes));
  return bytes;
}

Result<std::vector<uint32_t>> read_census(std::string_view bytes, const CensusIdentity& identity) {
  if (!looks_like_census(bytes)) return make_error(ErrorKind::corrupt, "not a census");
  ByteReader reader(std::as_bytes(std::span(bytes)));
  reader.take(kMagic.size());
  const auto version = reader.read<uint32_t>();
  if (reader.ok() && version != kVersion)
    return make_error(ErrorKind::unsupported, "a census of version {}; this program knows {}",
                      version, kVersion);
  CensusIdentity found{.layer_count = reader.read<uint32_t>(),
                       .expert_count = reader.read<uint32_t>(),
                       .model_bytes = 0,
                       .model_name = identity.model_name};
  reader.take(sizeof(uint32_t));
  found.model_bytes = reader.read<uint64_t>();
  const auto name_hash = reader.read<uint64_t>();
  if (!reader.ok()) return make_error(ErrorKind::corrupt, "a census that is cut short");
  const uint64_t body_bytes = bytes.size() - std::min(bytes.size(), kChecksumBytes);
  uint64_t checksum = 0;
  std::memcpy(&checksum, bytes.data() + body_bytes, kChecksumBytes);
  if (hash_of(bytes.substr(0, body_bytes)) != checksum)
    return make_error(ErrorKind::corrupt, "a damaged census: its checksum is wrong");
  if (found != identity || name_hash != hash_of(identity.model_name))
    return make_error(ErrorKind::corrupt, "the census of another model");
  // The first question keeps the second from overflowing.
  const uint64_t place_count = uint64_t{identity.layer_count} * identity.expert_count;
  if (place_count > bytes.size() || bytes.size() != census_bytes(identity))
    return make_error(ErrorKind::corrupt, "a census of the wrong length");
  std::vector<uint32_t> counts(place_count);
  const auto raw = reader.take(counts.size() * sizeof(uint32_t));
  if (!counts.empty()) std::memcpy(counts.data(), raw.data(), raw.size());
  return counts;
}

}  // namespace sluice
