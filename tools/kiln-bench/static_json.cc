// Rows as JSON, and those of the other compiler, which are a part of the program.

#include "tools/kiln-bench/static_rows.h"

#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kiln::bench {

/// tools/kiln-bench/triton_static.json, put here by the build.
extern const char *const tritonStatic;

// --- Counts --------------------------------------------------------------------------------------------------------

static nlohmann::ordered_json jsonOf(const Work &work) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (size_t i = 0; i < classCount; ++i)
    if (work.counts.of[i] != 0)
      json[classNames[i]] = std::llround(work.counts.of[i]);
  json["total"] = std::llround(work.counts.total());
  if (work.mmaOperations > 0) {
    json["operations"] = std::llround(work.mmaOperations);
    if (work.groupOperations > 0)
      json["by_groups"] = std::llround(work.groupOperations);
    json["type"] = work.mmaType;
  }
  json["wavefronts"] = std::llround(work.wavefronts);
  json["bytes"] = std::llround(work.bytes);
  return json;
}

nlohmann::ordered_json jsonOf(const SassCounts &counts) {
  nlohmann::ordered_json json{{"whole", jsonOf(counts.whole)}};
  if (counts.loop.counts.total() > 0)
    json["loop"] = jsonOf(counts.loop);
  return json;
}

static Work workFrom(const nlohmann::json &json) {
  Work work;
  for (size_t i = 0; i < classCount; ++i)
    work.counts.of[i] = json.value(classNames[i], 0.0);
  work.mmaOperations = json.value("operations", 0.0);
  work.groupOperations = json.value("by_groups", 0.0);
  work.mmaType = json.value("type", "");
  work.wavefronts = json.value("wavefronts", 0.0);
  work.bytes = json.value("bytes", 0.0);
  return work;
}

// --- The peer ------------------------------------------------------------------------------------------------------

std::vector<PeerRow> peerRows() {
  std::vector<PeerRow> rows;
  const nlohmann::json all = nlohmann::json::parse(tritonStatic);
  for (const nlohmann::json &json : all.at("rows")) {
    PeerRow row;
    row.problem = json.at("problem");
    row.dtype = json.at("dtype");
    row.architecture = json.at("arch");
    for (const auto &[name, place] :
         {std::pair("bm", &row.bm), {"bn", &row.bn}, {"bk", &row.bk}, {"warps", &row.warps}})
      *place = json.value(name, int64_t{0});
    for (const char *name : {"bm", "bn", "bk", "block", "rows", "warps", "stages"})
      if (json.contains(name))
        row.tiles += fmt::format("{}{}={}", row.tiles.empty() ? "" : " ", name, json.at(name).get<int64_t>());
    row.registers = json.at("registers");
    row.stack = json.at("stack");
    row.shared = json.at("shared");
    row.sass.whole = workFrom(json.at("whole"));
    if (json.contains("loop"))
      row.sass.loop = workFrom(json.at("loop"));
    rows.push_back(std::move(row));
  }
  return rows;
}

/// How far a peer's tile is from the problem's: 0 when they are the same, then by instructions a product.
static double distanceOf(const PeerRow &row, const Problem &problem) {
  const bool isSame = row.bm == problem.field("bm") && row.bn == problem.field("bn") && row.bk == problem.field("bk") &&
                      row.warps == problem.field("warps");
  const Counts &counts = row.sass.loop.counts;
  return isSame ? 0 : 1 + counts.total() / std::max(1.0, counts[Class::mma]);
}

const PeerRow *peerOf(const std::vector<PeerRow> &peers, const Problem &problem, int architecture) {
  const std::string wanted = architecture >= 90 && architecture < 120 ? "sm_90" : "sm_80";
  const PeerRow *best = nullptr;
  for (const PeerRow &row : peers) {
    if (problem.peer.empty() || row.problem != problem.peer || row.dtype != nameOf(problem.type) ||
        row.architecture != wanted)
      continue;
    if (!best || distanceOf(row, problem) < distanceOf(*best, problem))
      best = &row;
  }
  return best;
}

// --- A row ---------------------------------------------------------------------------------------------------------

static double rounded(double value) { return std::round(value * 100) / 100; }

static nlohmann::ordered_json jsonOf(const Traffic &traffic) {
  return {{"wavefronts", rounded(traffic.wavefronts)},
          {"conflict_free_wavefronts", rounded(traffic.conflictFreeWavefronts)},
          {"ideal_wavefronts", rounded(traffic.idealWavefronts)},
          {"load_sectors", rounded(traffic.loadSectors)},
          {"ideal_load_sectors", rounded(traffic.idealLoadSectors)},
          {"store_sectors", rounded(traffic.storeSectors)},
          {"ideal_store_sectors", rounded(traffic.idealStoreSectors)},
          {"bytes_of_lane", rounded(traffic.bytesOfLane())},
          {"barriers", rounded(traffic.barriers)},
          {"waits", rounded(traffic.waits)},
          {"bytes_in_flight", rounded(traffic.bytesInFlight)}};
}

static nlohmann::ordered_json jsonOf(const MachineRates &machine, const Prediction &prediction) {
  nlohmann::ordered_json round = nlohmann::ordered_json::object();
  for (size_t i = 0; i < prediction.round.clocks.size(); ++i)
    round[Pipes::names[i]] = rounded(prediction.round.clocks[i]);
  return {{"machine", machine.name},
          {"round", round},
          {"binds", Pipes::names[prediction.round.binding()]},
          {"exposed", rounded(prediction.exposed)},
          {"waves", rounded(prediction.waves)},
          {"memory_bound", prediction.isMemoryBound},
          {"predicted_us", rounded(prediction.seconds * 1e6)}};
}

nlohmann::ordered_json jsonOf(const StaticRow &row, const PeerRow *peer) {
  nlohmann::ordered_json json{{"set", row.problem.set},
                              {"kernel", row.problem.name},
                              {"dtype", nameOf(row.problem.type)},
                              {"config", row.problem.launch.config},
                              {"times", row.problem.times}};
  if (!row.error.empty()) {
    json["error"] = row.error;
    return json;
  }
  if (row.registers) {
    json["registers"] = *row.registers;
    json["spill_bytes"] = row.spillBytes;
    json["warned"] = row.warned;
  }
  json["shared_bytes"] = row.sample.sharedBytes;
  json["warps_per_sm"] = row.occupancy.warps;
  json["limit"] = row.occupancy.limit;
  if (row.sass)
    json["sass"] = jsonOf(*row.sass);
  json["rounds"] = rounded(row.sample.rounds);
  json["program"] = jsonOf(row.sample.ofProgram);
  if (row.sample.rounds > 0)
    json["round"] = jsonOf(row.sample.ofRound);
  json["predicted"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < row.predictions.size(); ++i)
    json["predicted"].push_back(jsonOf(machines()[i], row.predictions[i]));
  if (row.measured)
    json["measured_us"] = rounded(*row.measured * 1e6);
  if (peer) {
    const Counts &counts = (peer->sass.loop.counts.total() > 0 ? peer->sass.loop : peer->sass.whole).counts;
    json["triton"] = {{"tiles", peer->tiles}, {"registers", peer->registers}, {"total", std::llround(counts.total())}};
    if (const double products = counts[Class::mma])
      json["triton"]["per_mma"] = rounded(counts.total() / products);
  }
  return json;
}

} // namespace kiln::bench
