// Examines problems, and collects their rows.

#include "tools/kiln-bench/static_rows.h"

#include "lowering/Backend.h"
#include "runtime/Streams.h"

#include <algorithm>
#include <map>

namespace kiln::bench {

double StaticRow::programs() const { return programsOf(problem.launch); }

// --- Examining -----------------------------------------------------------------------------------------------------

static void examineOne(StaticRow &row, const Instruments &instruments, void *workspace, const GpuFacts &gpu) {
  if (!instruments.ptxas.empty()) {
    row.registers = registersOf(row.assembly);
    row.spillBytes = spillBytesOf(row.assembly);
    row.warned = isWarnedOf(row.assembly);
  }
  if (instruments.programs == 0)
    return;
  row.sample = sampleOf(*instruments.device, row.problem.launch, row.assembly.ptx, instruments.memory, workspace,
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

} // namespace kiln::bench
