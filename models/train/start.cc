// Sets up memory, data, ranks and weights of a run, in order.

#include "models/train/start.h"
#include "models/data/json.h"
#include "models/train/memory.h"

#include <fmt/format.h>

namespace kiln {

std::vector<BatchShape> listShapes(const Run &run) {
  const std::vector<BatchShape> several = run.data.shapes();
  return several.empty() ? std::vector{run.model.shape(run.state.settings.batch)} : several;
}

const TrainSettings &fitToMemory(Run &run, const Device &device) {
  RunState &state = run.state;
  Collective &ranks = run.folder.ranks();
  if (run.options.memory) {
    if (const size_t shapes = listShapes(run).size(); shapes > 1)
      throw Error(fmt::format("--memory requires micro-batches of one shape, but these have {} shapes", shapes));
    const FittedSettings fit = fitToMemory(device, run.model, state.settings, *run.options.memory, ranks.size(), ranks);
    state.settings = fit.settings;
    run.notes.push_back(fit.note);
  }
  return state.settings;
}

void expectStepsWithin(const Run &run) {
  const RunState &state = run.state;
  if (state.step > state.settings.steps)
    throw Error(fmt::format("expected '--steps' to be at least {}, the steps that the run has taken, but got {}",
                            state.step, state.settings.steps));
}

void expectSameData(Run &run) {
  RunState &state = run.state;
  const DataIdentity data = run.data.identity();
  const bool hasSeenData = run.folder.checkpoint() && !state.data.path.empty();
  if (hasSeenData && !data.sameContent(state.data))
    throw Error(
        fmt::format("expected the data that the checkpoint was trained on ('{}', {} bytes, hash {:016x}), but got "
                    "'{}', {} bytes, hash {:016x}",
                    state.data.path, state.data.bytes, state.data.hash, data.path, data.bytes, data.hash));
  state.data = data;
}

void expectAgreement(const Run &run) {
  const RunState &state = run.state;
  Collective &ranks = run.folder.ranks();
  if (ranks.isAlone())
    return;
  ranks.expectSame("model", textOf(run.model.configJson(f32)));
  ranks.expectSame("settings", textOf(settingsJson(state.settings)));
  ranks.expectSame("data", fmt::format("{} bytes, hash {:016x}", state.data.bytes, state.data.hash));
  ranks.expectSame("place in the run", fmt::format("step {}, update {}, sequence {}, stopped after {}", state.step,
                                                   state.updates, state.sequences, run.options.stopAfter));
}

void restore(Run &run, Trainer &trainer, Saves &saves) {
  RunState &state = run.state;
  const std::optional<std::string> &from = run.folder.checkpoint();
  if (from) {
    run.folder.read([&](const std::string &path) { readBuffers(path, run.model, trainer.keptType(), trainer.sink()); });
    trainer.setLossScale(state.lossScale);
    trainer.setOutlierWindow(state.outliers);
    state.outliers = trainer.outlierWindow(); // empty if outliers are no longer skipped
    saves.isSaved();
  } else {
    run.begin(trainer);
  }
  run.folder.ranks().barrier(); // all ranks have read it
  if (!run.folder.isHeld())
    return;
  if (!from)
    return removeCheckpoints(run.folder.path());
  removeCheckpointsAfter(*from);
  linkNewest(run.folder.path()); // a killed run may not have done it
}

std::vector<std::string> introduction(const Run &run, const Device &device, const Trainer &trainer, const Peak &peak) {
  const RunState &state = run.state;
  const TrainSettings &s = state.settings;
  const Collective &ranks = run.folder.ranks();
  std::vector<std::string> lines;
  const int64_t sequences = run.data.perBatch(s.batch) * s.accumulate;
  const std::string tokens =
      run.data.shapes().empty()
          ? std::to_string(run.model.shape(sequences).targets())
          : fmt::format("about {}", run.data.trainingTargets(state.sequences, sequences)); // of the next step
  int64_t parameters = 0;
  for (const Parameter &p : run.model.parameters().all())
    parameters += p.count();
  const std::string each = ranks.isAlone() ? "" : fmt::format("{} ranks, each ", ranks.size());
  lines.push_back(fmt::format(
      "{}: {} parameters; {} steps of {} tokens on {}{} ({} threads, {:.0f} GFLOP/s peak of {})", run.model.text(),
      parameters, s.steps, tokens, each, device.name(), device.threads(), peak.best() / 1e9, peak.what()));
  if (trainer.precision() != Precision::ieee)
    lines.push_back(fmt::format("fp32 matmuls run in {}; --precision ieee disables it",
                                precisionNames.at(static_cast<size_t>(trainer.precision()))));
  if (run.model.type() != f32)
    lines.push_back(
        fmt::format("weights and activations in {}; {}", dtypeName(run.model.type()),
                    s.master ? "AdamW updates fp32 master weights"
                             : fmt::format("updates round to {}", roundingNames.at(static_cast<size_t>(s.rounding)))));
  if (run.folder.checkpoint())
    lines.push_back(fmt::format("resuming from '{}'", *run.folder.checkpoint()));
  lines.insert(lines.end(), run.notes.begin(), run.notes.end());
  return lines;
}

} // namespace kiln
