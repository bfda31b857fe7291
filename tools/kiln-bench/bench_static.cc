// Kernels judged without a GPU: what a machine would have to do for them, beside what it would for Triton's kernels for
// the same problems. Every kernel of a GPT-2 124M step at the config that its plan picks, every kernel at its default
// config, and tiles that compilers are compared by. Times are predictions of the pipe model.

#include "runtime/Streams.h"
#include "tools/kiln-bench/bench.h"
#include "tools/kiln-bench/ratchet.h"
#include "tools/kiln-bench/step_plans.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>

using namespace kiln;
using namespace kiln::bench;

/// Sequences of 1024 tokens in a step.
static constexpr int64_t sequences = 8, context = 1024;
/// Texts that grow side by side by a token each.
static constexpr int64_t textsAtATime[] = {1, 4};

/// The model of a quick look.
static Gpt2Config tinyModel(Type type) { return {.layers = 1, .heads = 2, .width = 64, .context = 32, .type = type}; }

// --- A kernel ------------------------------------------------------------------------------------------------------

static std::string headLine() {
  std::string text = fmt::format("{:8}", "");
  for (const char *name : classNames)
    text += fmt::format(" {:>6.6}", name);
  return text + fmt::format(" {:>7} {:>7}\n", "total", "per mma");
}

static std::string countsLine(const char *who, const Counts &counts) {
  std::string text = fmt::format("{:8}", who);
  for (const double count : counts.of)
    text += count == 0 ? fmt::format(" {:>6}", ".") : fmt::format(" {:>6.0f}", count);
  text += fmt::format(" {:>7.0f}", counts.total());
  if (const double products = counts[Class::mma])
    text += fmt::format(" {:>7.2f}", counts.total() / products);
  return text + "\n";
}

/// Of the main loop, or of the whole kernel where there is none.
static const Work &shownOf(const SassCounts &counts) {
  return counts.loop.counts.total() > 0 ? counts.loop : counts.whole;
}

static std::string over(double count, double ideal) {
  return ideal > 0 ? fmt::format("{:.6g} of {:.6g} ({:.2f})", count, ideal, count / ideal)
                   : fmt::format("{:.6g}", count);
}

static std::string trafficLine(const StaticRow &row) {
  const bool hasLoop = row.sample.rounds > 0;
  const Traffic &t = hasLoop ? row.sample.ofRound : row.sample.ofProgram;
  return fmt::format("  a {}: {:.6g} wavefronts ({:.6g} without conflicts, {:.6g} by bytes), loads {}, stores {} "
                     "sectors, {:.1f} bytes a lane; {:.4g} barriers, {:.4g} "
                     "waits, {:.1f} KB in flight\n",
                     hasLoop ? fmt::format("round of {:.4g}", row.sample.rounds) : "program", t.wavefronts,
                     t.conflictFreeWavefronts, t.idealWavefronts, over(t.loadSectors, t.idealLoadSectors),
                     over(t.storeSectors, t.idealStoreSectors), t.bytesOfLane(), t.barriers, t.waits,
                     t.bytesInFlight / 1024);
}

static std::string placeLine(const StaticRow &row, const PeerRow *peer) {
  std::string text = "  ";
  if (row.registers)
    text += fmt::format("{} registers, {} bytes of spills{}, ", *row.registers, row.spillBytes,
                        row.warned ? ", WARNINGS" : "");
  text += fmt::format("{:.1f} KB shared, {} warps an SM ({}), {:.2f} waves",
                      static_cast<double>(row.sample.sharedBytes) / 1024, row.occupancy.warps, row.occupancy.limit,
                      row.predictions.front().waves);
  if (peer)
    text += fmt::format("; triton {} registers, {} bytes of stack, {:.1f} KB shared", peer->registers, peer->stack,
                        peer->shared / 1024.0);
  return text + "\n";
}

/// The share of the tensor cores' rate that a loop may reach, for one program on an SM.
static std::string ceilingOf(const Pipes &round, double exposed) {
  const double tensor = round.clocks[Pipes::tensor];
  return tensor > 0 ? fmt::format(", at most {:.0f} % of the tensor cores", 100 * tensor / (round.most() + exposed))
                    : "";
}

static std::string pipeLine(const StaticRow &row, size_t machine, const PeerRow *peer) {
  const MachineRates &rates = machines()[machine];
  const Prediction &prediction = row.predictions[machine];
  std::string text = fmt::format("  {}:", rates.name);
  if (row.sample.rounds > 0) {
    for (size_t i = 0; i < prediction.round.clocks.size(); ++i)
      text += fmt::format(" {} {:.0f}", Pipes::names[i], prediction.round.clocks[i]);
    text += fmt::format(" + {:.0f} exposed: {} binds{};", prediction.exposed, Pipes::names[prediction.round.binding()],
                        ceilingOf(prediction.round, prediction.exposed));
  }
  text += fmt::format(" predicted {:.1f} us{}", prediction.seconds * 1e6, prediction.isMemoryBound ? " (memory)" : "");
  if (peer && peer->sass.loop.mmaOperations > 0) {
    Work round;
    round.add(peer->sass.loop, static_cast<double>(peer->warps));
    const Pipes pipes = pipesOf(rates, round, peer->sass.loop.bytes * static_cast<double>(peer->warps));
    text += fmt::format("; triton's loop: {} binds{}", Pipes::names[pipes.binding()], ceilingOf(pipes, 0));
  }
  return text + "\n";
}

static void printRow(const StaticRow &row, const PeerRow *peer) {
  const Problem &problem = row.problem;
  std::string text =
      fmt::format("\n{} in {}{}: {}\n", problem.name, nameOf(problem.type),
                  problem.times > 1 ? fmt::format(", {} times", problem.times) : "", problem.launch.config);
  if (!row.error.empty()) {
    writeResult(text + "  " + row.error + "\n");
    return;
  }
  if (row.sass)
    text += countsLine("kiln", shownOf(*row.sass).counts);
  if (peer && row.sass)
    text += countsLine("triton", shownOf(peer->sass).counts);
  if (peer)
    text += fmt::format("  triton: {}\n", peer->tiles);
  text += trafficLine(row) + placeLine(row, peer);
  for (size_t machine = 0; machine < row.predictions.size(); ++machine)
    text += pipeLine(row, machine, peer);
  writeResult(text);
}

/// Instructions a product, of the main loop.
static std::string perProduct(const SassCounts *counts) {
  const double products = counts ? counts->loop.counts[Class::mma] : 0;
  return products > 0 ? fmt::format("{:.2f}", counts->loop.counts.total() / products) : "";
}

/// A line for each kernel.
static void printSummary(const std::vector<StaticRow> &rows, const std::vector<const PeerRow *> &peers) {
  std::string text = fmt::format("\n{:<54} {:>7} {:>7} {:>4} {:>6} {:>5} {:>9} {:>7} {:>8}", "kernel", "per mma",
                                 "triton", "regs", "spills", "warps", "wavefr/B", "barriers", "in flight");
  for (const MachineRates &machine : machines())
    text += fmt::format(" {:>8} {:>6} {:>9}", machine.name, "", "us");
  text += "\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    const StaticRow &row = rows[i];
    if (!row.error.empty())
      continue;
    const Traffic &t = row.sample.rounds > 0 ? row.sample.ofRound : row.sample.ofProgram;
    text += fmt::format("{:<54} {:>7} {:>7} {:>4} {:>6} {:>5} {:>9} {:>7.4g} {:>8.1f}K",
                        fmt::format("{} {}", row.problem.name, nameOf(row.problem.type)),
                        perProduct(row.sass ? &*row.sass : nullptr), perProduct(peers[i] ? &peers[i]->sass : nullptr),
                        row.registers ? std::to_string(*row.registers) : "", row.spillBytes, row.occupancy.warps,
                        t.idealWavefronts > 0 ? fmt::format("{:.2f}", t.wavefronts / t.idealWavefronts) : "",
                        t.barriers, t.bytesInFlight / 1024);
    for (const Prediction &prediction : row.predictions) {
      const double tensor = prediction.round.clocks[Pipes::tensor];
      text += fmt::format(
          " {:>8} {:>6} {:>9.1f}",
          prediction.isMemoryBound ? "memory"
          : row.sample.rounds > 0  ? Pipes::names[prediction.round.binding()]
                                   : "",
          tensor > 0 ? fmt::format("{:.0f} %", 100 * tensor / (prediction.round.most() + prediction.exposed)) : "",
          prediction.seconds * 1e6);
    }
    text += "\n";
  }
  writeResult(text);
}

// --- A step, a token -----------------------------------------------------------------------------------------------

static std::string textsOf(int64_t texts) {
  return texts == 1 ? "1 text" : fmt::format("{} texts side by side", texts);
}

/// What all launches of `what` take together, for each of `tokens`, and beside `bytes` over the rate of memory.
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

/// Bytes that are numbers in (−1, 1) as bf16 and as f32; as f16 they are finite.
static std::vector<uint16_t> someNumbers(int64_t bytes) {
  std::vector<uint16_t> numbers(static_cast<size_t>(cdiv(bytes, 2)));
  std::minstd_rand random(1);
  for (uint16_t &number : numbers) {
    const auto bits = static_cast<uint32_t>(random());
    number = static_cast<uint16_t>((bits & 0x8000) | (0x3a00 + (bits >> 16) % 0x580)); // of 2⁻¹¹ and more
  }
  return numbers;
}

/// Times each launch on the device, on memory of its own. What is large holds numbers, for a GPU multiplies zeros
/// faster; tokens and records are zeros.
static void measureRows(Setting &setting, const Gpt2Config &model, std::vector<StaticRow> &rows) {
  Device &device = *setting.device;
  constexpr int64_t large = 1 << 20;
  const std::vector<uint16_t> numbers = someNumbers(large);
  std::vector<std::unique_ptr<Tensor>> tensors;
  const Space space = {[&](int64_t bytes) {
                         tensors.push_back(
                             std::make_unique<Tensor>(setting.device, i8, Shape{std::max<int64_t>(1, bytes)}));
                         char *const data = static_cast<char *>(tensors.back()->data());
                         for (int64_t at = 0; bytes >= large && at < bytes; at += large)
                           device.upload(data + at, numbers.data(), std::min(large, bytes - at));
                         return tensors.back()->data();
                       },
                       [&](void *to, const void *from, int64_t bytes) { device.upload(to, from, bytes); }};
  const std::vector<Problem> problems = stepProblems(setting.target(), model, sequences, space);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].error.empty())
      continue;
    const Runner runner(setting, {{problems[i].launch}, problems[i].workspaceBytes});
    rows[i].measured = setting.measure({runner}, 0.01)[0];
  }
}

/// Predicted beside measured times, and how alike they order the kernels.
static void printMeasured(const std::vector<StaticRow> &rows, int architecture) {
  const size_t machine = architecture >= 90 ? 1 : 0;
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

// --- The benchmark -------------------------------------------------------------------------------------------------

static void readOne(const std::string &file) {
  std::ifstream stream(file);
  if (!stream)
    throw Error(fmt::format("expected to read '{}', but could not", file));
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  writeResult(jsonOf(countsOf(text)).dump() + "\n");
}

static void showRows(Setting &setting, const std::string &title, const std::vector<StaticRow> &rows, int architecture,
                     const std::vector<PeerRow> &peers) {
  writeResult(fmt::format("\n{}\n{}", title, headLine()));
  std::vector<const PeerRow *> beside;
  for (const StaticRow &row : rows) {
    beside.push_back(peerOf(peers, row.problem, architecture));
    printRow(row, beside.back());
    setting.report.addObject(jsonOf(row, beside.back()).dump());
  }
  printSummary(rows, beside);
}

void bench::benchStatic(Setting &setting) {
  if (!setting.read.empty())
    return readOne(setting.read);
  const Target target = setting.target();
  const int architecture = target.visit(
      [](const CpuFacts &) -> int { throw Error("expected a GPU, such as --device simulator:sm_80, but got a CPU"); },
      [](const GpuFacts &gpu) { return gpu.architecture; });
  simulator::Memory memory;
  const Space space = Space::of(memory);
  Operands make(space);
  const Instruments instruments{setting.device, memory, findPtxas(), setting.nvdisasm};
  tellWhatIsMissing(instruments);
  const std::vector<PeerRow> peers = peerRows();
  const Gpt2Config model = setting.quick ? tinyModel(setting.type) : config124M(setting.type);
  std::vector<StaticRow> step = examine(stepProblems(target, model, sequences, space), instruments);
  std::vector<StaticRow> forms;
  std::vector<std::vector<StaticRow>> tokens;
  if (!setting.quick) {
    forms = examine(formProblems(target, setting.type, make), instruments);
    for (const int64_t texts : textsAtATime)
      tokens.push_back(examine(tokenProblems(target, model, texts, make), instruments));
  }
  if (!setting.ratchet.empty()) {
    step.insert(step.end(), forms.begin(), forms.end());
    for (const std::vector<StaticRow> &token : tokens)
      step.insert(step.end(), token.begin(), token.end());
    if (setting.accepts)
      return accept(setting.ratchet, step);
    std::string skipped;
    const std::string worse = compareWith(setting.ratchet, step, skipped);
    if (!worse.empty())
      throw Error(fmt::format("expected kernels to be no worse than in '{}' (--accept writes it anew), but got{}",
                              setting.ratchet, worse));
    writeResult(fmt::format("{} kernels are no worse than in '{}'{}\n", step.size(), setting.ratchet,
                            skipped.empty() ? "" : "; not looked at: " + skipped));
    return;
  }
  if (isReal(*setting.device))
    measureRows(setting, model, step);
  showRows(setting, "a training step, as its plans pick", step, architecture, peers);
  if (!setting.quick) {
    showRows(setting, "other forms of attention, as plans pick", forms, architecture, peers);
    for (size_t i = 0; i < tokens.size(); ++i)
      showRows(setting, fmt::format("one more token of {}, as plans pick", textsOf(textsAtATime[i])), tokens[i],
               architecture, peers);
    showRows(setting, "every kernel at its default config",
             examine(defaultProblems(target, setting.type, make), instruments), architecture, peers);
    showRows(setting, "tiles that compilers are compared by", examine(tileProblems(target, make), instruments),
             architecture, peers);
  }
  if (!setting.quick) {
    const std::string which = fmt::format("GPT-2 124M in {}", nameOf(setting.type));
    printWhole(step, fmt::format("A step of {} on {} x {} tokens", which, sequences, context), sequences * context);
    for (size_t i = 0; i < tokens.size(); ++i)
      printWhole(tokens[i], fmt::format("A token of {} behind {} places, {}", which, context, textsOf(textsAtATime[i])),
                 textsAtATime[i], bytesOfToken(model, textsAtATime[i]));
  }
  if (isReal(*setting.device))
    printMeasured(step, architecture);
}
