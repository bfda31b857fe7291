// Collects the data of the page.

#include "tools/kilnc/report/Report.h"

#include "dialect/simt/layout/Picture.h"
#include "runtime/simulator/Report.h"
#include "tools/files/Files.h"
#include "tools/kiln-bench/sample.h"
#include "tools/kilnc/UserFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

#include <cmath>

namespace kiln::tools {

using Json = nlohmann::ordered_json;

static Json linesOf(llvm::StringRef text) {
  text.consume_back("\n");
  Json lines = Json::array();
  for (const llvm::StringRef line : llvm::split(text, '\n'))
    lines.push_back(line.str());
  return lines;
}

Report::Report(const Head &head) : isBuiltIn(head.isBuiltIn) {
  data = {{"kernel", head.kernel}, {"target", head.target},  {"config", head.config},    {"arguments", head.arguments},
          {"grid", head.grid},     {"files", Json::array()}, {"layouts", Json::object()}};
}

// --- Sources ---------------------------------------------------------------------------------------------------------

/// The lines of a source file; null if it cannot be read, as for a built-in kernel of an installed kilnc.
static Json sourceOf(const std::string &name, bool isBuiltIn) {
  constexpr int64_t most = 4 << 20;
  try {
    return linesOf(readInput(isBuiltIn ? std::string(builtHeaders) + "/" + name : name, most));
  } catch (const Error &) {
    return nullptr;
  }
}

/// The index of a file in data["files"], where it is added if it is missing, and a line: `[0, 17]`.
Json Report::placeOf(const std::string &file, int64_t line) {
  Json &files = data["files"];
  size_t number = 0;
  while (number < files.size() && files[number]["name"] != file)
    ++number;
  if (number == files.size())
    files.push_back({{"name", file}, {"lines", sourceOf(file, isBuiltIn)}});
  return {number, line};
}

/// As above, for the text `file:line`; null for other texts.
Json Report::placeOf(const std::string &source) {
  const auto [file, number] = llvm::StringRef(source).rsplit(':');
  int64_t line = 0;
  return file.empty() || number.getAsInteger(10, line) ? Json() : placeOf(file.str(), line);
}

// --- The compilation -------------------------------------------------------------------------------------------------

/// Adds a layout with, for each element in row-major order, `thread · values of a thread + stored index`, the pair that
/// --picture shows as `thread:index`. The entry stays null for a layout that is too large to draw.
void Report::addLayout(const std::string &text) {
  constexpr size_t maxElements = 1 << 16; // larger layouts are not drawn
  Json &layout = data["layouts"][text];
  const auto parsed = simt::TileLayout::parse(text, [](const llvm::Twine &) {});
  if (llvm::failed(parsed))
    return;
  const simt::LayoutCells all = simt::cellsOf(*parsed);
  if (all.cells.empty() || all.cells.size() > maxElements)
    return;
  int64_t rows = 0, columns = 0;
  for (const auto &cell : all.cells) {
    rows = std::max(rows, cell.row + 1);
    columns = std::max(columns, cell.column + 1);
  }
  std::vector<int64_t> holders(static_cast<size_t>(rows * columns), -1);
  for (const auto &cell : all.cells)
    holders[static_cast<size_t>(cell.row * columns + cell.column)] =
        int64_t{cell.warp * simt::numLanes + cell.lane} * parsed->numStored() + cell.stored;
  layout = {
      {"rows", rows},          {"columns", columns}, {"warps", parsed->numWarps()}, {"stored", parsed->numStored()},
      {"copies", all.holders}, {"holders", holders}};
}

void Report::add(const lowering::CompilationRecord &record) {
  data["stages"] = Json::array();
  for (const auto &[name, text] : record.stages) {
    Json sources = Json::array();
    for (const std::string &source : text.sources)
      sources.push_back(placeOf(source));
    data["stages"].push_back({{"name", name}, {"lines", linesOf(text.text)}, {"sources", sources}});
  }
  Json lines = Json::array();
  for (const auto &[file, number, texts] : record.explanation.byLine())
    for (const std::string &text : texts) {
      const auto [what, layout] = llvm::StringRef(text).rsplit("; "); // a layout comes last
      const bool hasLayout = llvm::succeeded(simt::TileLayout::parse(layout, [](const llvm::Twine &) {}));
      Json entry = {{"at", number ? placeOf(file, number) : Json()}, {"text", hasLayout ? what.str() : text}};
      if (hasLayout) {
        entry["layout"] = layout.str();
        if (!data["layouts"].contains(layout.str()))
          addLayout(layout.str());
      }
      lines.push_back(std::move(entry));
    }
  data["explanation"] = {{"kernel", record.explanation.wholeKernel()}, {"lines", lines}};
}

// --- The launch ------------------------------------------------------------------------------------------------------

/// The prediction for one machine: clocks of each pipe, the limit, the time, and the machine's rates for the roofline.
/// Clocks are those of an iteration of the main loop, or of a program without a loop.
static Json predicted(const bench::MachineRates &machine, const bench::LaunchWork &work) {
  using bench::Pipes;
  const bench::Prediction prediction = bench::predict(machine, work);
  const Pipes whole = bench::pipesOf(machine, work.program, work.l2Bytes);
  const bool hasLoop = work.rounds > 0;
  const Pipes &shown = hasLoop ? prediction.round : whole;
  Json pipes = Json::object();
  for (size_t i = 0; i < shown.clocks.size(); ++i)
    pipes[Pipes::names[i]] = shown.clocks[i];
  const double all = machine.clock * machine.sms, tensorClocks = whole.clocks[Pipes::tensor];
  return {{"name", machine.name},
          {"pipes", pipes},
          {"binding", prediction.binds},
          {"exposed", prediction.exposed},
          {"waves", prediction.waves},
          {"us", prediction.seconds * 1e6},
          {"memory_rate", machine.memoryRate},
          {"peak", tensorClocks > 0 ? work.program.mmaOperations / tensorClocks * all : machine.fp * all},
          {"reached", work.programs / prediction.seconds}};
}

/// The pipe model's prediction of the launch, on all machines.
static Json predictionOf(const Launch &launch, const Signature &signature, const LaunchRecord &record,
                         const GpuFacts &gpu) {
  const bench::Sample sample =
      bench::takeSample(signature, *record.program, *record.metrics, record.sharedBytes, bench::programsOf(launch));
  // The registers of a thread, which ptxas chooses, are not known here: between one and the most that it may have.
  const bench::Occupancy occupancy = bench::occupancyOf(gpu, std::nullopt, sample);
  const bench::Occupancy atBest = bench::occupancyOf(gpu, 1, sample);
  const bench::LaunchWork work = bench::launchWorkOf(launch, sample, nullptr, occupancy);
  const bool hasProducts = work.program.mmaOperations > 0;
  const double floats = simulator::lanesOfWarp * work.program.counts[bench::Class::fp];
  Json machines = Json::array();
  for (const bench::MachineRates &machine : bench::machines())
    machines.push_back(predicted(machine, work));
  return {{"threads", sample.threads},
          {"shared_bytes", sample.sharedBytes},
          {"programs", work.programs},
          {"iterations", work.rounds},
          {"programs_per_sm", occupancy.programs},
          {"programs_at_best", atBest.programs},
          {"warps_per_sm", occupancy.warps},
          {"warps_at_best", atBest.warps},
          {"most_warps", occupancy.maxWarps},
          {"limit_at_best", atBest.limit}, // of what is known without the registers
          {"unit", hasProducts ? "tensor" : "float"},
          {"operations", hasProducts ? work.program.mmaOperations : floats}, // per program
          {"memory_bytes", work.memoryBytes},
          {"machines", machines}};
}

void Report::add(const Launch &launch, const Signature &signature, const LaunchRecord &record, const GpuFacts &gpu) {
  const std::vector<std::string_view> &files = record.program->module->files;
  const auto at = [&](const ptx::Place &place) {
    const auto file = static_cast<size_t>(place.file);
    return place.file > 0 && file < files.size() ? placeOf(std::string(files[file]), place.sourceLine) : Json();
  };
  Json instructions = Json::array(), findings = Json::array();
  for (const auto &[place, name, kind, total] : simulator::countsByInstruction(*record.program, *record.metrics))
    instructions.push_back({{"at", at(place)},
                            {"ptx", place.line},
                            {"name", name},
                            {"class", simulator::instructionClasses[static_cast<size_t>(kind)]},
                            {"executed", total.instructions},
                            {"sectors", total.sectors},
                            {"ideal_sectors", total.idealSectors},
                            {"wavefronts", total.wavefronts},
                            {"ideal_wavefronts", total.idealWavefronts},
                            {"local_sectors", total.localSectors},
                            {"bulk_bytes", total.bulkBytes},
                            {"operand_bytes", total.operandBytes}});
  for (const simulator::Finding &finding : record.findings)
    findings.push_back({{"at", at(finding.place)},
                        {"ptx", finding.place.line},
                        {"check", simulator::nameOf(finding.check)},
                        {"text", finding.text},
                        {"count", finding.count}});
  data["launch"] = {{"instructions", instructions},
                    {"findings", findings},
                    {"prediction", predictionOf(launch, signature, record, gpu)}};
}

// --- The page --------------------------------------------------------------------------------------------------------

/// JSON as the content of a <script>. `<` is escaped, because it could begin the end tag; only strings contain it.
static std::string embedded(const Json &data) {
  std::string safe;
  for (const char c : data.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace))
    safe += c == '<' ? "\\u003c" : std::string(1, c);
  return safe;
}

std::string Report::page() const {
  const auto [before, after] = llvm::StringRef(pageText).split("{{DATA}}");
  return before.str() + embedded(data) + after.str();
}

} // namespace kiln::tools
