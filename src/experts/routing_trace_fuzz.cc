// The libFuzzer target of the trace reader; docs/fuzzing.md tells how to run it. Whatever the
// bytes: every id is in range, every step has tokens, and memory stays within a multiple of the
// bytes.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "experts/routing_trace_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice;
  auto reader = RoutingTraceReader::parse(std::as_bytes(std::span(data, size)), "fuzz");
  if (!reader) return 0;
  TraceStep step;
  while (true) {
    const auto more = reader->next(step);
    if (!more || !*more) break;
    CHECK(step.token_count > 0 && step.ids.size() <= size);
    for (const auto* records : {&step.routings, &step.predictions})
      for (const TraceStep::Ids& record : *records)
        for (const uint16_t id : step.ids_of(record))
          CHECK(id < reader->header().expert_counts[record.layer]);
  }
  return 0;
}
