#include "engine/model_files.h"

#include <algorithm>
#include <filesystem>

#include "io/window.h"
#include "os/clock.h"

namespace sluice {
namespace {

os::DirectMode direct_mode(DirectReads reads) {
  switch (reads) {
    case DirectReads::on:
      return os::DirectMode::on;
    case DirectReads::off:
      return os::DirectMode::off;
    case DirectReads::automatic:
      break;
  }
  return os::DirectMode::auto_detect;
}

os::ReaderOptions reader_options(const EngineOptions& options) {
  os::ReaderOptions wanted;
  if (options.io == ReadBackend::uring) wanted.kind = os::ReaderKind::uring;
  if (options.io == ReadBackend::threads) wanted.kind = os::ReaderKind::threads;
  wanted.thread_count = options.io_threads;
  return wanted;
}

}  // namespace

std::string display_name_of(const gguf::GgufFile& file) {
  return std::filesystem::path(file.paths().front()).filename().string();
}

Result<std::unique_ptr<ModelFiles>> ModelFiles::open(const std::string& path,
                                                     const EngineOptions& options, const Log& log) {
  auto file = gguf::GgufFile::open(path);
  if (!file) return file.error();
  std::unique_ptr<ModelFiles> model(new ModelFiles);
  model->display_name_ = display_name_of(*file);
  model->paths_ = file->paths();
  auto config = read_config(*file, log);
  if (!config) return config.error().at(path);
  model->config_ = std::move(*config);
  auto weights = plan_weights(*file, model->config_);
  if (!weights) return weights.error().at(path);
  model->weights_ = std::move(*weights);
  auto vocabulary = read_vocabulary(*file);
  if (!vocabulary) return vocabulary.error().at(path);
  auto tokenizer = text::Tokenizer::make(std::move(*vocabulary));
  if (!tokenizer) return tokenizer.error().at(path);
  model->tokenizer_ = std::move(*tokenizer);
  // The embedding may have rows to spare, never too few.
  if (model->tokenizer_->token_count() > model->config_.vocabulary_size)
    return make_error(ErrorKind::corrupt, "{}: the vocabulary has {} tokens, the embedding {} rows",
                      path, model->tokenizer_->token_count(), model->config_.vocabulary_size);
  if (Status opened = model->open_shards(*file, options, log); !opened) return opened.error();
  return model;
}

Status ModelFiles::open_shards(const gguf::GgufFile& file, const EngineOptions& options,
                               const Log& log) {
  std::vector<const os::File*> pointers;
  std::vector<io::FileFacts> facts;
  for (const std::string& path : file.paths()) {
    auto shard = os::File::open(path, direct_mode(options.direct));
    if (!shard) return shard.error();
    if (!shard->is_direct() && options.direct != DirectReads::off)
      log.info("{}: the file system refuses direct reads; reading through the page cache", path);
    direct_ &= shard->is_direct();
    shards_.push_back(std::make_unique<os::File>(std::move(*shard)));
    pointers.push_back(shards_.back().get());
    facts.push_back({path, shards_.back()->alignment()});
  }
  std::string uring_refusal;
  auto reader = os::make_async_reader(pointers, reader_options(options), &uring_refusal);
  if (!reader) return reader.error();
  reader_ = std::move(*reader);
  if (!uring_refusal.empty())
    log.info("io_uring is not to be had ({}); reading with {} threads", uring_refusal,
             options.io_threads);
  queue_ = std::make_unique<io::ReadQueue>(
      *reader_, std::move(facts),
      io::ReadQueueOptions{
          .prefetch_chunk_bytes = static_cast<uint32_t>(options.prefetch_chunk_bytes),
          .prefetch_in_service_max = options.prefetch_cap,
          .prefetch_in_service_beside_demand_max = options.prefetch_cap_demand});
  return {};
}

ModelFiles::~ModelFiles() {
  queue_.reset();
  if (ledger_ != nullptr) ledger_->remove(MemoryUse::weights, dense_arena_.bytes());
}

uint32_t ModelFiles::expert_alignment(size_t layer) const {
  uint32_t most = 0;
  for (const ExpertPart& part : weights_->experts[layer].parts())
    most = std::max(most, queue_->alignment(part.first_expert.file));
  return most;
}

uint64_t ModelFiles::file_bytes() const {
  uint64_t sum = 0;
  for (const auto& shard : shards_) sum += shard->bytes();
  return sum;
}

uint64_t ModelFiles::dense_arena_bytes() const {
  uint64_t bytes = 0;
  for (const DenseTensor& tensor : weights_->dense_tensors) {
    const uint32_t alignment = queue_->alignment(tensor.extent.file);
    bytes = round_up(bytes, alignment) + io::window_bytes_max(tensor.extent.bytes, alignment);
  }
  return round_up(bytes, 64) + weights_->transposed_bytes();
}

Status ModelFiles::load_dense(Ledger& ledger, const std::atomic<bool>* stop) {
  auto arena = os::Arena::allocate(dense_arena_bytes(), "the dense weights");
  if (!arena) return arena.error();
  dense_arena_ = std::move(*arena);
  ledger_ = &ledger;
  ledger.add(MemoryUse::weights, dense_arena_.bytes());

  std::optional<Error> failure;
  const io::ReadSink sink{[](void* context, uint64_t, const Error* error) {
                            auto& first = *static_cast<std::optional<Error>*>(context);
                            if (error != nullptr && !first) first = *error;
                          },
                          &failure};
  uint64_t used_bytes = 0;
  for (const DenseTensor& tensor : weights_->dense_tensors) {
    const uint32_t alignment = queue_->alignment(tensor.extent.file);
    used_bytes = round_up(used_bytes, alignment);
    std::byte* const place = dense_arena_.begin() + used_bytes;
    while (!queue_->has_room()) queue_->wait();
    queue_->push({.wanted = tensor.extent,
                  .buffer = place,
                  .read_class = io::ReadClass::load,
                  .tag = 0,
                  .sink = sink});
    tensor.matrix->data = place + io::window_of(tensor.extent, alignment).head;
    used_bytes += io::window_bytes_max(tensor.extent.bytes, alignment);
  }
  while (queue_->request_count() > 0) {
    queue_->wait();
    if (failure) return *failure;
    // What has not started is dropped with the queue, which calls nobody then.
    if (stop != nullptr && stop->load(std::memory_order_relaxed))
      return make_error(ErrorKind::interrupted, "interrupted");
  }
  weights_->transpose_weights(dense_arena_.begin() + round_up(used_bytes, 64));
  return {};
}

std::vector<std::span<const std::byte>> ModelFiles::dense_pieces() const {
  std::vector<std::span<const std::byte>> pieces;
  for (const DenseTensor& tensor : weights_->dense_tensors)
    pieces.emplace_back(tensor.matrix->data, tensor.matrix->bytes());
  return pieces;
}

io::DeviceProfile ModelFiles::probe_drive(uint64_t read_bytes, uint64_t memory_bytes) {
  const auto largest =
      std::ranges::max_element(shards_, {}, [](const auto& shard) { return shard->bytes(); });
  const auto index = static_cast<uint32_t>(largest - shards_.begin());
  return io::probe_device(
      *reader_, index, **largest,
      {.read_bytes = read_bytes, .bytes_max = memory_bytes, .seed = os::now_ns()});
}

}  // namespace sluice
