// The training loop and what surrounds it.

#include "models/train/loop.h"
#include "models/train/peak.h"
#include "models/train/progress.h"
#include "models/train/stop_signals.h"

#include <cmath>
#include <fmt/format.h>
#include <unistd.h>

namespace kiln {

using Clock = std::chrono::steady_clock;

static double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

namespace {

/// A run in progress.
class Training {
public:
  explicit Training(Run given);
  void steps();

private:
  void restore();
  std::optional<StepRow> step();
  std::optional<double> validate();
  bool canBeSkipped(const StepResult &result) const;
  void introduce(Progress &progress) const;
  void record(const StepRow &row);
  std::string rescue();
  void save();
  void saveOnTheWay(Progress &progress);

  Run run;
  RunState &state = run.state;
  std::shared_ptr<Device> device;
  Trainer trainer;
  Peak peak;
  std::optional<StopSignals> signals; // while there are steps to lose
  std::optional<RunLog> log;
  int64_t saved = -1; // step of the last checkpoint
  Clock::time_point start = Clock::now();
};

} // namespace

Training::Training(Run given)
    : run(std::move(given)), device(openDevice(run.options.machine)), trainer(device, run.model, state.settings),
      peak(peakSampler(*device)) {
  const DataIdentity data = run.data.identity();
  if (run.folder.checkpoint() && !data.sameContent(state.data))
    throw Error(
        fmt::format("expected the data that the checkpoint was trained on ('{}', {} bytes, hash {:016x}), but got "
                    "'{}', {} bytes, hash {:016x}",
                    state.data.path, state.data.bytes, state.data.hash, data.path, data.bytes, data.hash));
  state.data = data;
  restore();
  state.lossScale = trainer.lossScale();
  trainer.prepare();
}

void Training::restore() {
  if (run.folder.checkpoint()) {
    trainer.upload(
        run.folder.read([&](const std::string &path) { return readBuffers(path, run.model, trainer.keptType()); }));
    trainer.setLossScale(state.lossScale);
    removeCheckpointsAfter(*run.folder.checkpoint());
    saved = state.step;
    linkNewest(run.folder.path()); // to which a run that was killed may not have come
    return;
  }
  run.begin(trainer);
  removeCheckpoints(run.folder.path());
}

/// Whether a step that was not applied is one to leave out and go on: its loss is sound, and with a smaller scale its
/// gradient may fit.
bool Training::canBeSkipped(const StepResult &result) const {
  return trainer.scalesLoss() && std::isfinite(result.loss) && result.lossScale > leastLossScale;
}

/// Nothing when the run was asked to stop before the step was done; then it is where it was before.
std::optional<StepRow> Training::step() {
  const TrainSettings &s = state.settings;
  const Clock::time_point begin = Clock::now();
  const int64_t sequences = s.batch * s.accumulate;
  StepRow row;
  row.step = state.step + 1;
  row.rate = learningRate(s, state.step);
  row.type = run.model.type();
  trainer.beginStep(row.rate, state.updates + 1, run.data.trainingTargets(state.sequences, sequences));
  for (int64_t micro = 0; micro < s.accumulate; ++micro) {
    if (signals->asked())
      return {};
    trainer.addGradient(run.data.training(state.sequences + micro * s.batch, s.batch), micro);
  }
  const StepResult result = trainer.update();
  const double seconds = secondsSince(begin);
  row.loss = result.loss;
  row.gradientNorm = result.gradientNorm;
  row.skipped = !result.applied;
  const bool taken = result.applied || canBeSkipped(result);
  if (taken) {
    state.sequences += sequences;
    state.step = row.step;
    state.updates += result.applied;
    state.lossScale = trainer.lossScale();
  }
  if (trainer.scalesLoss())
    row.lossScale = result.lossScale;
  if (!taken || !std::isfinite(row.loss))
    throw Error(
        fmt::format("expected a finite loss and gradient at step {}, but got {} and {}{}; a lower --lr may help; {}",
                    row.step, row.loss, row.gradientNorm,
                    row.lossScale ? fmt::format(" with a loss scale of {}", *row.lossScale) : "", rescue()));
  row.tokensPerSecond = static_cast<double>(run.model.targets(sequences)) / seconds;
  row.peakShare = peak.shareOf(run.model.flops(sequences) / seconds);
  const bool due = s.evaluateEvery > 0 && row.step % s.evaluateEvery == 0;
  if (due || row.step == s.steps)
    row.validationLoss = validate();
  row.seconds = secondsSince(start);
  return row;
}

/// Mean loss over every target to validate on; nothing when the run was asked to stop before it was known.
std::optional<double> Training::validate() {
  const int64_t batch = state.settings.batch, sequences = run.data.validationSequences();
  double sum = 0;
  for (int64_t first = 0; first < sequences; first += batch) {
    if (signals->asked())
      return {};
    sum += trainer.lossSum(run.data.validation(first, batch));
  }
  return sum / static_cast<double>(run.data.validationTargets());
}

void Training::save() {
  if (saved == state.step || state.step == 0)
    return;
  saveCheckpoint(run.folder.path(), run.options.keep, state, run.model, trainer.download());
  saved = state.step;
}

/// A save on the way: when it fails (a full disk, say) the run goes on, and the next save is the next chance.
void Training::saveOnTheWay(Progress &progress) {
  try {
    save();
  } catch (const Error &error) {
    if (error.fault != Fault::device)
      throw;
    progress.note(
        fmt::format("warning: step {} is not saved: {}; the run goes on to the next save", state.step, error.what()));
  }
}

/// Writes the row to the log. When that cannot be done, or the folder went away, the run ends, but not without its
/// steps, nor without the row where there is a place for it.
void Training::record(const StepRow &row) {
  try {
    if (!run.folder.holds())
      throw Error(fmt::format("expected '{}' to stay in place while a run writes to it, but it was removed or renamed",
                              run.folder.path()));
    log->write(row);
  } catch (const Error &error) {
    const std::string saved = rescue();
    log->leave(row);
    throw Error(fmt::format("{}; {}", error.what(), saved), Fault::device);
  }
}

/// Saves what can be saved, in a folder made anew if need be, and says what came of it.
std::string Training::rescue() {
  const int64_t kept = std::max<int64_t>(saved, 0);
  if (state.step == 0)
    return "there is no step to save";
  try {
    if (!run.folder.holds())
      run.folder.takeAgain(saved);
    save();
    return fmt::format("step {} is saved in '{}', and --resume goes on from it", state.step, run.folder.path());
  } catch (const Error &error) {
    return fmt::format("and the steps after {} are lost: {}", kept, error.what());
  }
}

/// The lines before the first step.
void Training::introduce(Progress &progress) const {
  const TrainSettings &s = state.settings;
  int64_t parameters = 0;
  for (const Parameter &p : run.model.parameters().all())
    parameters += p.count();
  progress.note(fmt::format("{}: {} parameters; {} steps of {} tokens on {} ({} threads, {:.0f} GFLOP/s measured peak)",
                            run.model.text(), parameters, s.steps, run.model.targets(s.batch * s.accumulate),
                            device->name(), device->threads(), peak.best() / 1e9));
  if (trainer.precision() != Precision::ieee)
    progress.note(fmt::format("products of f32 in {}; --precision ieee rounds no operand",
                              precisionNames.at(static_cast<size_t>(trainer.precision()))));
  if (run.model.type() != f32)
    progress.note(
        fmt::format("weights and activations in {}; {}", dtypeOf(run.model.type()),
                    s.master ? "updates change f32 masters"
                             : fmt::format("updates round to {}", roundingNames.at(static_cast<size_t>(s.rounding)))));
  if (run.folder.checkpoint())
    progress.note(fmt::format("going on from '{}'", *run.folder.checkpoint()));
  for (const std::string &line : run.notes)
    progress.note(line);
}

void Training::steps() {
  const TrainSettings &s = state.settings;
  log.emplace(run.folder.path() + "/log.jsonl", state.step);
  signals.emplace();
  Progress progress(state.step, s.steps, isatty(STDOUT_FILENO));
  introduce(progress);
  while (state.step < s.steps) {
    const std::optional<StepRow> row = step();
    if (row) {
      record(*row);
      if (row->skipped)
        progress.note(fmt::format("step {} is skipped: its gradient overflows with the loss times {}; {} is next",
                                  row->step, *row->lossScale, state.lossScale.scale));
      progress.show(*row);
    }
    const bool stop = signals->asked() || state.step == run.options.stopAfter;
    if (stop || state.step == s.steps)
      save();
    else if (run.options.saveEvery > 0 && state.step % run.options.saveEvery == 0)
      saveOnTheWay(progress);
    if (stop && state.step < s.steps) {
      progress.note(state.step == 0 ? "stopped before the first step"
                                    : fmt::format("stopped after step {}; --resume goes on", state.step));
      return;
    }
  }
  progress.note(fmt::format("done in {}; weights in '{}'", clockText(secondsSince(start)),
                            newestCheckpoint(run.folder.path()).value_or(run.folder.path())));
}

void train(Run run) { Training(std::move(run)).steps(); }

} // namespace kiln
