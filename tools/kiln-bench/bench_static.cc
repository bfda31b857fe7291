// Static analysis of kernels without a GPU, in three tables:
//
// - `static`: the work of every kernel of a GPT-2 124M step at the config of its plan, of every kernel at its default
//   config, and of tiles used to compare compilers. The pipe model predicts the times.
// - `users`: instructions per element of users' kernels.
// - `ptxas`: the output of NVIDIA's assembler for the kernels of a step in every type and precision.
//
// --triton adds another compiler's kernels.

#include "runtime/Streams.h"
#include "tools/kiln-bench/bench.h"
#include "tools/kiln-bench/problems.h"
#include "tools/kiln-bench/static_rows.h"
#include "tools/kiln-bench/users/users.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

using namespace kiln;
using namespace kiln::bench;
using Json = nlohmann::ordered_json;

/// Sequences of 1024 tokens in a step.
static constexpr int64_t sequences = 8, context = 1024;
/// Texts in a decoding batch.
static constexpr int64_t textsAtATime[] = {1, 4};

static constexpr Column staticColumns[] = {{"per mma", "/sass/loop/per_mma", 7},
                                           {"triton", "/triton/per_mma", 7},
                                           {"regs", "/registers", 4},
                                           {"spills", "/spill_bytes", 6},
                                           {"warps", "/warps_per_sm", 5},
                                           {"wavefr/B", "/wavefronts_by_bytes", 8},
                                           {"barriers", "/barriers", 8},
                                           {"KB ahead", "/kb_in_flight", 8},
                                           {"A100", "/predicted/A100/binds", 7},
                                           {"", "/predicted/A100/tensor_share", 5},
                                           {"us", "/predicted/A100/us", 9},
                                           {"H100", "/predicted/H100/binds", 7},
                                           {"", "/predicted/H100/tensor_share", 5},
                                           {"us", "/predicted/H100/us", 9}};
static constexpr Column userColumns[] = {{"kiln", "/per_1024", 9},
                                         {"triton", "/triton/per_1024", 9},
                                         {"ratio", "/ratio", 6},
                                         {"bar", "/barriers", 6},
                                         {"triton", "/triton/barriers", 6},
                                         {"regs", "/registers", 6},
                                         {"triton", "/triton/registers", 6},
                                         {"spills", "/spill_bytes", 6},
                                         {"triton", "/triton/stack", 6},
                                         {"triton's config", "/triton/tiles", 40}};
static constexpr Column ptxasColumns[] = {{"regs", "/registers", 4}, {"spills", "/spill_bytes", 6}};

/// 80 of sm_80; 0 of a CPU.
static int numberOfGpu(const Setting &setting) {
  return setting.device->target().visit([](const CpuFacts &) { return 0; },
                                        [](const GpuFacts &gpu) { return gpu.architecture; });
}

/// Rows as JSON, printed as a table and added to the report.
static std::vector<Json> showRows(Setting &setting, const std::string &title, const std::vector<StaticRow> &rows,
                                  std::span<const Column> columns, const nlohmann::json &peers = {}) {
  std::vector<Json> shown;
  for (const StaticRow &row : rows) {
    shown.push_back(jsonOf(row, findPeer(peers, row.problem, numberOfGpu(setting))));
    setting.report.addObject(shown.back().dump());
  }
  writeResult(fmt::format("\n{}\n{}", title, tableOf(shown, columns)));
  return shown;
}

// --- A step, a token -----------------------------------------------------------------------------------------------

static std::string textsOf(int64_t texts) {
  return texts == 1 ? "1 text" : fmt::format("{} texts side by side", texts);
}

/// The total time of all launches of `what`, per token, and compared with `bytes` over the memory bandwidth.
static void printWhole(const std::vector<StaticRow> &rows, const std::string &what, int64_t tokens,
                       const std::optional<double> &bytes = {}) {
  for (size_t machine = 0; machine < machines().size(); ++machine) {
    std::vector<std::pair<double, const StaticRow *>> parts;
    double all = 0;
    for (const StaticRow &row : rows)
      if (row.error.empty()) {
        parts.emplace_back(row.predictions[machine].seconds * static_cast<double>(row.problem.times), &row);
        all += parts.back().first;
      }
    std::sort(parts.begin(), parts.end(), [](const auto &a, const auto &b) { return a.first > b.first; });
    std::string text = fmt::format("\n{}, predicted for {}: {:.3f} ms, {:.0f} tokens/s\n", what,
                                   machines()[machine].name, all * 1e3, static_cast<double>(tokens) / all);
    if (bytes)
      text += fmt::format("  {:.2f} times what {:.0f} MB of weights and cache take, {:.3f} ms\n",
                          all * machines()[machine].memoryRate / *bytes, *bytes / 1e6,
                          *bytes / machines()[machine].memoryRate * 1e3);
    for (const auto &[seconds, row] : parts)
      text += fmt::format("  {:8.3f} ms {:5.1f} %  {:4} x {:9.1f} us  {}\n", seconds * 1e3, 100 * seconds / all,
                          row->problem.times, row->predictions[machine].seconds * 1e6, row->problem.name);
    writeResult(text);
  }
}

// --- A real GPU ----------------------------------------------------------------------------------------------------

static bool isReal(const Device &device) { return device.name().starts_with("cuda"); }

/// Times each launch on the device, with its own memory.
static void measureRows(Setting &setting, const Gpt2Config &model, std::vector<StaticRow> &rows) {
  std::vector<std::unique_ptr<Tensor>> held;
  const Space space = makeSpace(setting, held, /*zeroed=*/false);
  const std::vector<Problem> problems = stepProblems(setting.target(), model, sequences, space);
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i].error.empty())
      rows[i].measured =
          setting.measure({Runner(setting, {{problems[i].launch}, problems[i].workspaceBytes})}, 0.01)[0];
}

/// Predicted and measured times, and their rank correlation.
static void printMeasured(const std::vector<StaticRow> &rows, size_t machine) {
  std::vector<double> predicted, measured;
  std::string text = fmt::format("\n{:<54} {:>12} {:>12} {:>7}\n", "kernel", "predicted us", "measured us", "ratio");
  for (const StaticRow &row : rows)
    if (row.measured) {
      predicted.push_back(row.predictions[machine].seconds);
      measured.push_back(*row.measured);
      text += fmt::format("{:<54} {:>12.1f} {:>12.1f} {:>7.2f}\n", row.problem.name, predicted.back() * 1e6,
                          measured.back() * 1e6, predicted.back() / measured.back());
    }
  writeResult(text + fmt::format("rank correlation of {} kernels with the prediction for {}: {:.3f}\n", measured.size(),
                                 machines()[machine].name, rankCorrelation(predicted, measured)));
}

// --- static --------------------------------------------------------------------------------------------------------

static void readOne(const std::string &file) {
  std::ifstream stream(file);
  if (!stream)
    throw Error(fmt::format("expected to read '{}', but could not", file));
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  writeResult(jsonOf(countsOf(text)).dump() + "\n");
}

/// Updates the ratchet's file, or throws Error if a number is worse than there.
static void holdRows(const Setting &setting, const std::vector<StaticRow> &rows) {
  if (setting.accepts)
    return accept(setting.ratchet, rows);
  std::string skipped;
  const std::string worse = compareWith(setting.ratchet, rows, skipped);
  if (!worse.empty())
    throw Error(fmt::format("expected kernels to be no worse than in '{}' (--accept writes it anew), but got{}",
                            setting.ratchet, worse));
  writeResult(fmt::format("{} kernels are no worse than in '{}'{}\n", rows.size(), setting.ratchet,
                          skipped.empty() ? "" : "; not looked at: " + skipped));
}

void bench::benchStatic(Setting &setting) {
  if (!setting.read.empty())
    return readOne(setting.read);
  const Target target = setting.target();
  simulator::Memory memory;
  const Space space = Space::of(memory);
  Operands make(space);
  const Instruments instruments{setting.device, memory, findPtxas(), setting.nvdisasm};
  tellWhatIsMissing(instruments);
  const nlohmann::json peers = peerRows(setting.triton);
  const Gpt2Config model = setting.quick ? tinyModel(setting.type) : config124M(setting.type);
  std::vector<std::pair<std::string, std::vector<StaticRow>>> sets = {
      {"a training step, as its plans pick", examine(stepProblems(target, model, sequences, space), instruments)}};
  const auto add = [&](const std::string &title, const std::vector<Problem> &problems) {
    sets.emplace_back(title, examine(problems, instruments));
  };
  if (!setting.quick) {
    add("other forms of attention, as plans pick", formProblems(target, setting.type, make));
    for (const int64_t texts : textsAtATime)
      add(fmt::format("one more token of {}, as plans pick", textsOf(texts)),
          tokenProblems(target, model, texts, make));
  }
  if (!setting.ratchet.empty()) {
    std::vector<StaticRow> all;
    for (const auto &[title, rows] : sets)
      all.insert(all.end(), rows.begin(), rows.end());
    return holdRows(setting, all);
  }
  if (isReal(*setting.device))
    measureRows(setting, model, sets.front().second);
  if (!setting.quick) {
    add("every kernel at its default config", defaultProblems(target, setting.type, make));
    add("tiles that compilers are compared by", tileProblems(target, make));
  }
  for (const auto &[title, rows] : sets)
    showRows(setting, title, rows, staticColumns, peers);
  if (!setting.quick) {
    const std::string which = fmt::format("GPT-2 124M in {}", nameOf(setting.type));
    printWhole(sets[0].second, fmt::format("A step of {} on {} x {} tokens", which, sequences, context),
               sequences * context);
    for (size_t i = 0; i < std::size(textsAtATime); ++i)
      printWhole(sets[2 + i].second,
                 fmt::format("A token of {} after {} positions, {}", which, context, textsOf(textsAtATime[i])),
                 textsAtATime[i], bytesOfToken(model, textsAtATime[i]));
  }
  if (isReal(*setting.device))
    printMeasured(sets.front().second, numberOfGpu(setting) >= 90 ? 1 : 0);
}

// --- users ---------------------------------------------------------------------------------------------------------

void bench::benchUsers(Setting &setting) {
  simulator::Memory memory;
  Operands make(Space::of(memory));
  const Instruments instruments{setting.device, memory, findPtxas(), setting.nvdisasm};
  tellWhatIsMissing(instruments);
  const std::vector<Json> rows = showRows(
      setting, "warp instructions for 1024 elements, per iteration of the main loop, or per program without a loop",
      examine(userProblems(make), instruments), userColumns, peerRows(setting.triton));
  std::vector<double> ratios;
  for (const Json &row : rows)
    if (row.contains("ratio"))
      ratios.push_back(row.at("ratio"));
  if (!ratios.empty())
    writeResult(
        fmt::format("geometric mean of the ratios of {} kernels: {:.3f}\n", ratios.size(), geometricMean(ratios)));
}

// --- ptxas ---------------------------------------------------------------------------------------------------------

/// The errors of the problems' kernels, one per line, without repetition.
static std::string assembleAll(Setting &setting, const Instruments &instruments, const std::string &title,
                               const std::vector<Problem> &problems) {
  std::string complaints;
  std::set<std::string> known;
  std::vector<StaticRow> rows = examine(problems, instruments);
  std::erase_if(rows,
                [&](const StaticRow &row) { return row.error.empty() && !known.insert(row.assembly.ptx).second; });
  for (const StaticRow &row : rows)
    if (const std::string complaint = row.error.empty() ? findProblem(row.assembly) : row.error; !complaint.empty())
      complaints += fmt::format("\n  {}: {} ({}): {}", title, row.problem.name, row.problem.launch.config, complaint);
  showRows(setting, title, rows, ptxasColumns);
  return complaints;
}

void bench::benchPtxas(Setting &setting) {
  setting.device->target().visit(
      [](const CpuFacts &) { throw Error("expected a GPU, such as --device simulator:sm_80, but got a CPU"); },
      [](const GpuFacts &) {});
  simulator::Memory memory; // not accessed
  const Instruments instruments{setting.device, memory, expectPtxas(), {}, 0};
  std::string complaints, ofDefaults;
  for (const Type type : {f32, bf16, f16})
    for (const Precision precision : {Precision::ieee, Precision::tf32, Precision::tf32x3, Precision::bf16x3}) {
      if (type != f32 ? precision != Precision() || setting.precision
                      : precision != setting.precision.value_or(precision))
        continue;
      Target target = setting.device->target();
      target.precision = precision;
      const std::string which = type == f32 ? precisionNames[static_cast<size_t>(precision)] + " f32" : nameOf(type);
      Operands make(Space::imagined());
      for (const bool tiny : {true, false}) {
        if (setting.quick && !tiny)
          continue;
        const Gpt2Config config = tiny ? tinyModel(type) : config124M(type, 1);
        const char *const name = tiny ? "tiny" : "124M";
        complaints += assembleAll(setting, instruments, fmt::format("{} GPT-2 in {}", name, which),
                                  problemsOf("step", stepPlans(target, Network(config), tiny ? 2 : 4), type));
        Plan tokens;
        for (const int64_t texts : {1, 4, 8})
          tokens += tokenPlan(target, config, texts, make);
        if (!setting.quick)
          complaints += assembleAll(setting, instruments, fmt::format("a token of {} GPT-2 in {}", name, which),
                                    problemsOf("token", tokens, type));
      }
      if (setting.quick)
        continue;
      complaints +=
          assembleAll(setting, instruments, "forms of attention in " + which, formProblems(target, type, make));
      ofDefaults +=
          assembleAll(setting, instruments, "default configs in " + which, defaultProblems(target, type, make));
    }
  if (!ofDefaults.empty())
    writeResult("\nat default configs, which no plan launches:" + ofDefaults + "\n");
  if (!complaints.empty())
    throw Error("expected kernels without spills, warnings and open roundings, but got" + complaints);
}
