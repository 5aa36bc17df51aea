// What sluice trace prints, for people and for scripts (docs/cli.md lists the fields). Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/trace_replay.h"

namespace sluice::cli {

nlohmann::ordered_json trace_info_json(const TraceFacts& trace);
std::string trace_info_text(const TraceFacts& trace);
nlohmann::ordered_json replay_json(const ReplayReport& report);
std::string replay_text(const ReplayReport& report);

}  // namespace sluice::cli
