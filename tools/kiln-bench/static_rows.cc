// Examines problems, and collects their rows: as JSON, combined with those of the other compiler, and as tables; the
// work of launches as JSON; the ratchet's file.

#include "tools/kiln-bench/static_rows.h"

#include "lowering/Backend.h"
#include "runtime/Streams.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>

namespace kiln::bench {

double StaticRow::programs() const { return programsOf(problem.launch); }

// --- Examining -----------------------------------------------------------------------------------------------------

static void examineOne(StaticRow &row, const Instruments &instruments, void *workspace, const GpuFacts &gpu) {
  if (!instruments.ptxas.empty()) {
    row.registers = registersOf(row.assembly);
    row.spillBytes = spillBytesOf(row.assembly);
    row.warned = hasWarning(row.assembly);
  }
  if (instruments.programs == 0)
    return;
  row.sample = takeSample(*instruments.device, row.problem.launch, row.assembly.ptx, instruments.memory, workspace,
                          instruments.programs);
  if (!row.assembly.sass.empty())
    row.sass = countsOf(row.assembly.sass);
  row.occupancy = occupancyOf(gpu, row.registers, row.sample);
  row.launch = launchWorkOf(row.problem.launch, row.sample, row.sass ? &*row.sass : nullptr, row.occupancy);
  for (const MachineRates &machine : machines())
    row.predictions.push_back(predict(machine, row.launch));
}

void tellWhatIsMissing(const Instruments &instruments) {
  if (instruments.ptxas.empty())
    writeResult("no ptxas: registers, spills and machine code are left out\n");
  else if (instruments.nvdisasm.empty())
    writeResult("no --nvdisasm: machine code is left out, pipes are those of the PTX\n");
}

std::vector<StaticRow> examine(const std::vector<Problem> &problems, const Instruments &instruments) {
  const GpuFacts gpu = instruments.device->target().visit(
      [](const CpuFacts &) -> GpuFacts {
        throw Error("expected a GPU, such as --device simulator:sm_80, but got a CPU");
      },
      [](const GpuFacts &facts) { return facts; });
  int64_t bytes = 1;
  for (const Problem &problem : problems)
    bytes = std::max(bytes, problem.workspaceBytes);
  void *const workspace = instruments.memory.allocate(bytes);
  std::vector<StaticRow> rows;
  std::vector<Assembly> texts; // each once
  std::map<std::string, size_t> known;
  std::vector<size_t> textsOfRows;
  for (const Problem &problem : problems) {
    StaticRow &row = rows.emplace_back(StaticRow{.problem = problem});
    textsOfRows.push_back(texts.size());
    try {
      const std::string ptx = ptxOf(codeOf(*instruments.device, problem.launch, workspace));
      const auto [at, isNew] = known.try_emplace(ptx, texts.size());
      textsOfRows.back() = at->second;
      if (isNew)
        texts.push_back({problem.name, problem.launch.config, ptx, {}, {}});
    } catch (const Error &error) {
      row.error = error.what();
    }
  }
  if (!instruments.ptxas.empty())
    assemble(texts, instruments.ptxas, architectureOf(instruments.device->backend().name()),
             instruments.device->threads(), instruments.nvdisasm);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].error.empty())
      continue;
    rows[i].assembly = texts[textsOfRows[i]];
    try {
      examineOne(rows[i], instruments, workspace, gpu);
    } catch (const Error &error) {
      rows[i].error = error.what();
    }
  }
  instruments.memory.release(workspace);
  return rows;
}

static double rounded(double value) { return std::round(value * 100) / 100; }

// --- Counts --------------------------------------------------------------------------------------------------------

static nlohmann::ordered_json jsonOf(const Work &work) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (size_t i = 0; i < classCount; ++i)
    if (work.counts.of[i] != 0)
      json[classNames[i]] = std::llround(work.counts.of[i]);
  json["total"] = std::llround(work.counts.total());
  if (const double products = work.counts[Class::mma])
    json["per_mma"] = rounded(work.counts.total() / products);
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

// --- The peer ------------------------------------------------------------------------------------------------------

nlohmann::json peerRows(const std::string &file) {
  if (file.empty())
    return nlohmann::json::array();
  std::ifstream stream(file);
  const nlohmann::json all = nlohmann::json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!all.is_object() || !all.contains("rows"))
    throw Error(fmt::format("expected '{}' to be a file that triton_static.py wrote, but it is not", file));
  return all.at("rows");
}

/// Warp instructions per 1024 elements, or per product.
static double costOf(const nlohmann::json &peer) {
  const nlohmann::json &counts = peer.contains("loop") ? peer.at("loop") : peer.at("whole");
  const double total = counts.at("total");
  if (!peer.contains("elements"))
    return total / std::max(1.0, counts.value("mma", 0.0));
  return total * peer.at("warps").get<double>() / peer.at("unrolled").get<double>() * 1024 /
         peer.at("elements").get<double>();
}

const nlohmann::json *findPeer(const nlohmann::json &peers, const Problem &problem, int architecture) {
  const std::string wanted = architecture >= 90 && architecture < 120 ? "sm_90" : "sm_80";
  const nlohmann::json *best = nullptr;
  double least = 0;
  for (const nlohmann::json &peer : peers) {
    if (problem.peer.empty() || peer.at("problem") != problem.peer || peer.at("dtype") != nameOf(problem.type) ||
        peer.at("arch") != wanted)
      continue;
    bool isSame = problem.elements == 0;
    for (const char *field : {"bm", "bn", "bk", "warps"})
      isSame &= peer.value(field, int64_t{0}) == problem.field(field);
    const double cost = isSame ? 0 : 1 + costOf(peer);
    if (!best || cost < least) {
      best = &peer;
      least = cost;
    }
  }
  return best;
}

// --- A row ---------------------------------------------------------------------------------------------------------

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

static nlohmann::ordered_json jsonOf(const Prediction &prediction) {
  nlohmann::ordered_json round = nlohmann::ordered_json::object();
  for (size_t i = 0; i < prediction.round.clocks.size(); ++i)
    round[Pipes::names[i]] = rounded(prediction.round.clocks[i]);
  const double tensor = prediction.round.clocks[Pipes::tensor], all = prediction.iteration + prediction.exposed;
  return {{"round", round},
          {"binds", prediction.binds},
          {"tensor_share", tensor > 0 ? fmt::format("{:.0f} %", 100 * tensor / all) : ""},
          {"exposed", rounded(prediction.exposed)},
          {"waves", rounded(prediction.waves)},
          {"us", rounded(prediction.seconds * 1e6)}};
}

/// The other compiler's columns of a row.
static nlohmann::ordered_json jsonOf(const nlohmann::json &peer) {
  const nlohmann::json &counts = peer.contains("loop") ? peer.at("loop") : peer.at("whole");
  nlohmann::ordered_json json{{"tiles", peer.at("tiles")},
                              {"registers", peer.at("registers")},
                              {"stack", peer.at("stack")},
                              {"total", counts.at("total")}};
  if (counts.contains("per_mma"))
    json["per_mma"] = counts.at("per_mma");
  if (peer.contains("elements")) {
    json["per_1024"] = rounded(costOf(peer));
    json["barriers"] = rounded(counts.value("bar", 0.0) / peer.at("unrolled").get<double>());
  }
  return json;
}

nlohmann::ordered_json jsonOf(const StaticRow &row, const nlohmann::json *peer) {
  const Problem &problem = row.problem;
  nlohmann::ordered_json json{{"set", problem.set},
                              {"kernel", problem.name},
                              {"dtype", nameOf(problem.type)},
                              {"config", problem.launch.config},
                              {"times", problem.times}};
  if (!row.error.empty()) {
    json["error"] = row.error;
    return json;
  }
  if (row.registers) {
    json["registers"] = *row.registers;
    json["spill_bytes"] = row.spillBytes;
    json["warned"] = row.warned;
  }
  if (row.sass)
    json["sass"] = jsonOf(*row.sass);
  if (peer)
    json["triton"] = jsonOf(*peer);
  if (row.predictions.empty())
    return json;
  const bool hasLoop = row.sample.rounds > 0;
  const Traffic &shown = hasLoop ? row.sample.ofRound : row.sample.ofProgram;
  json["shared_bytes"] = row.sample.sharedBytes;
  json["warps_per_sm"] = row.occupancy.warps;
  json["limit"] = row.occupancy.limit;
  json["rounds"] = rounded(row.sample.rounds);
  json["barriers"] = rounded(shown.barriers);
  json["kb_in_flight"] = rounded(shown.bytesInFlight / 1024);
  if (shown.idealWavefronts > 0)
    json["wavefronts_by_bytes"] = rounded(shown.wavefronts / shown.idealWavefronts);
  json["program"] = jsonOf(row.sample.ofProgram);
  if (hasLoop)
    json["round"] = jsonOf(row.sample.ofRound);
  for (size_t i = 0; i < row.predictions.size(); ++i)
    json["predicted"][machines()[i].name] = jsonOf(row.predictions[i]);
  json["launch"] = jsonOf(row.launch);
  if (row.measured)
    json["measured_us"] = rounded(*row.measured * 1e6);
  if (row.sass && problem.elements > 0) {
    const double warps = static_cast<double>(cdiv(row.sample.threads, 32));
    json["per_1024"] = rounded(instructionsOfRound(row.sample, *row.sass) * warps * 1024 / problem.elements);
    if (peer)
      json["ratio"] = json["per_1024"].get<double>() / json["triton"]["per_1024"].get<double>();
  }
  return json;
}

// --- A table -------------------------------------------------------------------------------------------------------

std::string tableOf(const std::vector<nlohmann::ordered_json> &rows, std::span<const Column> columns) {
  std::string text = fmt::format("{:<54}", "kernel");
  for (const Column &column : columns)
    text += fmt::format(" {:>{}}", column.title, column.width);
  for (const nlohmann::ordered_json &row : rows) {
    text += fmt::format("\n{:<54}",
                        fmt::format("{} {}", row.at("kernel").get<std::string>(), row.at("dtype").get<std::string>()));
    if (row.contains("error"))
      text += " " + row.at("error").get<std::string>();
    else
      for (const Column &column : columns) {
        const nlohmann::ordered_json::json_pointer path(column.path);
        const nlohmann::ordered_json value = row.contains(path) ? row.at(path) : nlohmann::ordered_json("");
        const std::string cell = value.is_string()         ? value.get<std::string>()
                                 : value.is_number_float() ? fmt::format("{:.2f}", value.get<double>())
                                                           : value.dump();
        text += fmt::format(" {:>{}}", cell, column.width);
      }
  }
  return text + "\n";
}

// --- The work of a launch -------------------------------------------------------------------------------------------

namespace {
// Each struct has one list of its fields, which both directions use.
struct Writer {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  void operator()(const char *name, const auto &value) { json[name] = value; }
};
struct Reader {
  const nlohmann::json &json;
  void operator()(const char *name, auto &value) const { json.at(name).get_to(value); }
};
} // namespace

static void visit(auto &&visitor, auto &work) {
  for (size_t i = 0; i < classCount; ++i)
    visitor(classNames[i], work.counts.of[i]);
  visitor("mma_operations", work.mmaOperations);
  visitor("group_operations", work.groupOperations);
  visitor("drained_operations", work.drainedOperations);
  visitor("drains", work.drains);
  visitor("mma_type", work.mmaType);
  visitor("wavefronts", work.wavefronts);
  visitor("bytes", work.bytes);
}

static void visitLaunch(auto &&visitor, auto &launch) {
  visitor("l2_bytes", launch.l2Bytes);
  visitor("iteration_l2_bytes", launch.roundL2Bytes);
  visitor("iterations", launch.rounds);
  visitor("iterations_ahead", launch.roundsAhead);
  visitor("loads", launch.loads);
  visitor("late_bytes", launch.lateBytes);
  visitor("warps", launch.warps);
  visitor("programs", launch.programs);
  visitor("residents", launch.residents);
  visitor("memory_bytes", launch.memoryBytes);
}

static nlohmann::ordered_json fieldsOf(const Work &work) {
  Writer writer;
  visit(writer, work);
  return writer.json;
}

nlohmann::ordered_json jsonOf(const LaunchWork &launch) {
  Writer writer;
  writer("program", fieldsOf(launch.program));
  writer("iteration", fieldsOf(launch.round));
  visitLaunch(writer, launch);
  return writer.json;
}

LaunchWork launchWorkOf(const nlohmann::json &json) {
  LaunchWork launch;
  visit(Reader{json.at("program")}, launch.program);
  visit(Reader{json.at("iteration")}, launch.round);
  visitLaunch(Reader{json}, launch);
  return launch;
}

// --- The ratchet ----------------------------------------------------------------------------------------------------

std::vector<std::pair<std::string, int64_t>> gatedCounts(const StaticRow &row) {
  const auto all = [&](double Traffic::*field) { return std::llround(row.total(field)); };
  std::vector<std::pair<std::string, int64_t>> held = {{"wavefronts", all(&Traffic::wavefronts)},
                                                       {"load_sectors", all(&Traffic::loadSectors)},
                                                       {"store_sectors", all(&Traffic::storeSectors)},
                                                       {"barriers", all(&Traffic::barriers)},
                                                       {"waits", all(&Traffic::waits)}};
  if (row.registers) {
    held.emplace_back("idle_warps", row.occupancy.maxWarps - row.occupancy.warps);
    held.emplace_back("registers", *row.registers);
    held.emplace_back("spill_bytes", row.spillBytes);
  }
  return held;
}

static std::string keyOf(const StaticRow &row) {
  return fmt::format("{} {} {}", row.problem.set, row.problem.name, nameOf(row.problem.type));
}

static void compareRow(const StaticRow &row, const nlohmann::json &was, std::string &worse,
                       std::set<std::string> &missing) {
  const auto held = gatedCounts(row);
  const int idleWarps = row.occupancy.maxWarps - row.occupancy.warps;
  const bool asManyWarps = idleWarps <= was.value("idle_warps", 0);
  for (const auto &[measure, before] : was.items()) {
    const auto at = std::find_if(held.begin(), held.end(), [&](const auto &each) { return each.first == measure; });
    if (at == held.end())
      missing.insert(measure);
    else if (at->second > before.get<int64_t>() && !(measure == "registers" && asManyWarps))
      worse += fmt::format("\n  {} ({}): {} was {}, is {}", keyOf(row), row.problem.launch.config, measure,
                           before.get<int64_t>(), at->second);
  }
}

std::string compareWith(const std::string &file, const std::vector<StaticRow> &rows, std::string &skipped) {
  std::ifstream stream(file);
  const nlohmann::json all = nlohmann::json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!all.is_object())
    throw Error(fmt::format("expected '{}' to be a file that --accept wrote, but it is not", file));
  std::string worse;
  std::set<std::string> missing, known;
  for (const StaticRow &row : rows) {
    const std::string key = keyOf(row);
    known.insert(key);
    if (!row.error.empty())
      worse += fmt::format("\n  {}: {}", key, row.error);
    else if (!all.contains(key))
      worse += fmt::format("\n  {}: '{}' does not know it", key, file);
    else
      compareRow(row, all.at(key), worse, missing);
  }
  for (const auto &[key, held] : all.items())
    if (!known.contains(key))
      worse += fmt::format("\n  {}: '{}' has it, but it was not looked at", key, file);
  for (const std::string &measure : missing)
    skipped += (skipped.empty() ? "" : ", ") + measure;
  return worse;
}

void accept(const std::string &file, const std::vector<StaticRow> &rows) {
  std::string text;
  for (const StaticRow &row : rows) {
    if (!row.error.empty())
      throw Error(fmt::format("{}: {}", keyOf(row), row.error));
    nlohmann::ordered_json held = nlohmann::ordered_json::object();
    for (const auto &[measure, value] : gatedCounts(row))
      held[measure] = value;
    text += fmt::format("{}{}: {}", text.empty() ? "" : ",\n", nlohmann::json(keyOf(row)).dump(), held.dump());
  }
  std::ofstream stream(file);
  stream << "{\n" << text << "\n}\n";
  if (!stream.flush())
    throw Error(fmt::format("expected to write '{}', but could not", file), Fault::device);
}

} // namespace kiln::bench
