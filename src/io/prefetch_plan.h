// What the read queue may do on a drive of which the probe has told something: how many chunks of
// guesses may be in service, enough to keep the drive busy and no more, since they stand before
// every demand read that comes. Decisions on paper, nothing else. Pure; any thread.
#pragma once

#include <cstdint>

#include "io/device_probe.h"

namespace sluice::io {

/// How many must be in service so that the drive need not wait for the next one: the one it
/// transfers, and as many as pass over the wire in the time that it takes to find one and the
/// caller to look. Between 2 and `most`, which is the answer where nothing was measured.
uint32_t plan_prefetch_depth(const DeviceProfile& profile, uint32_t chunk_bytes, uint32_t most);

/// How many of them may start while a demand read is in service: none where whoever follows a read
/// delays it, else `most`.
uint32_t plan_prefetch_beside_demand(const DeviceProfile& profile, uint32_t most);

}  // namespace sluice::io
