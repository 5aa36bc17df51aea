#include "engine/engine.h"

#include <algorithm>

#include "base/units.h"
#include "engine/engine_impl.h"
#include "os/clock.h"
#include "os/interrupt.h"
#include "os/standard_streams.h"

namespace sluice {

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

/// What this run has learned of the model's use is kept for the next.
Engine::~Engine() {
  impl_->idle_fill.reset();
  if (const auto line = impl_->census_file->save(*impl_->census)) impl_->log.info("{}", *line);
  if (impl_->trace == nullptr) return;
  if (const Status closed = impl_->trace->close(); !closed)
    impl_->log.info("{}", closed.error().message);
}

Result<std::unique_ptr<Engine>> Engine::open(const std::string& path, const EngineOptions& options,
                                             const Log& log, const std::atomic<bool>* stop) {
  auto impl = std::make_unique<Impl>(options, log, stop);
  if (Status opened = open_engine(path, *impl); !opened) return opened.error();
  return std::unique_ptr<Engine>(new Engine(std::move(impl)));
}

const ModelFacts& Engine::facts() const {
  return impl_->facts;
}
const RunMode& Engine::mode() const {
  return impl_->mode;
}
const text::Tokenizer& Engine::tokenizer() const {
  return impl_->model->tokenizer();
}
const Ledger& Engine::ledger() const {
  return impl_->ledger;
}

/// The plan keeps memory for one session; a further one must find its own within the budget.
Status Engine::check_room_for_session() const {
  if (impl_->ledger.bytes(MemoryUse::kv) == 0) return {};
  const uint64_t bytes = SequenceState::bytes_for(impl_->model->config(), impl_->sequence_limits());
  if (impl_->ledger.total_bytes() + bytes <= impl_->mode.budget_bytes) return {};
  return make_error(ErrorKind::memory,
                    "another session needs {} for its KV cache and the budget of {} is used; "
                    "give a smaller --ctx or --moe-stream-cache",
                    format_bytes(bytes), format_bytes(impl_->mode.budget_bytes));
}

Result<std::unique_ptr<Session>> Engine::new_session() {
  if (Status room = check_room_for_session(); !room) return room.error();
  auto sequence =
      SequenceState::allocate(impl_->model->config(), impl_->sequence_limits(), impl_->ledger);
  if (!sequence) {
    const size_t fit = impl_->context_tokens_fit;
    if (fit == 0 || fit >= impl_->mode.context_tokens) return sequence.error();
    return make_error(sequence.error().kind, "{}; --ctx {} is the longest context that fits",
                      sequence.error().message, fit);
  }
  auto state = std::make_unique<SessionState>(*impl_, std::move(*sequence));
  return std::unique_ptr<Session>(new Session(std::move(state)));
}

void Engine::forget_experts() {
  const IdleFill::Request request(*impl_->idle_fill);
  if (impl_->mode.mode != "resident") impl_->store->forget_all();
}

Result<std::unique_ptr<text::Tokenizer>> open_tokenizer(const std::string& path) {
  auto file = gguf::GgufFile::open(path);
  if (!file) return file.error();
  auto vocabulary = read_vocabulary(*file);
  if (!vocabulary) return vocabulary.error().at(path);
  auto tokenizer = text::Tokenizer::make(std::move(*vocabulary));
  if (!tokenizer) return tokenizer.error().at(path);
  return tokenizer;
}

std::string usable_isa_names() {
  std::string names;
  for (const kernels::Isa isa : kernels::usable_isas())
    names += fmt::format("{}{}", names.empty() ? "" : " ", kernels::isa_name(isa));
  return names;
}

uint64_t process_peak_bytes() {
  return os::resident_peak_bytes();
}

Result<std::string> read_text(const std::string& path) {
  constexpr uint64_t kBytesMax = uint64_t{1} << 30;
  if (path == "-") return os::read_standard_input(kBytesMax, stop_on_interrupt());
  return os::read_text_file(path, kBytesMax);
}

void guard_standard_streams() {
  os::guard_standard_streams();
}

const std::atomic<bool>& stop_on_interrupt() {
  return os::interrupt_flag();
}

}  // namespace sluice
