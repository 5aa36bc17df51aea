// The libFuzzer target of the census reader; docs/fuzzing.md tells how to run it. The bytes choose
// the model, too; and since no fuzzer guesses a checksum, each input is also read with its own put
// right.
#include <xxhash.h>

#include <cstring>

#include "base/check.h"
#include "experts/census.h"

namespace {

void read_one(const std::string& bytes, const sluice::CensusIdentity& identity) {
  const auto counts = sluice::read_census(bytes, identity);
  if (!counts) return;
  CHECK(counts->size() == size_t{identity.layer_count} * identity.expert_count);
  CHECK(bytes.size() == sluice::census_bytes(identity));
  CHECK(counts->empty() ||
        std::memcmp(counts->data(), bytes.data() + 40, counts->size() * sizeof(uint32_t)) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  sluice::CensusIdentity identity{
      .layer_count = 2, .expert_count = 3, .model_bytes = 0, .model_name = "m"};
  read_one(bytes, identity);
  if (size < 48) return 0;
  std::memcpy(&identity.layer_count, data + 12, 4);
  std::memcpy(&identity.expert_count, data + 16, 4);
  std::memcpy(&identity.model_bytes, data + 24, 8);
  const uint64_t name = XXH3_64bits("m", 1);
  std::memcpy(bytes.data() + 32, &name, sizeof(name));
  const uint64_t checksum = XXH3_64bits(bytes.data(), size - 8);
  std::memcpy(bytes.data() + size - 8, &checksum, sizeof(checksum));
  read_one(bytes, identity);
  return 0;
}
