// The training loop: steps and what they report, evaluations among them, until the last one or a stop.

#include "models/train/loop.h"
#include "kernels/outliers.h"
#include "models/observe/profiled_steps.h"
#include "models/train/group_norms.h"
#include "models/train/peak.h"
#include "models/train/progress.h"
#include "models/train/saves.h"
#include "models/train/start.h"
#include "models/train/step_log.h"
#include "models/train/stop_signals.h"
#include "models/train/validation.h"

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
  void prepare();
  std::optional<StepRow> step();
  std::optional<StepRow> stepOrRescue();
  std::optional<StepResult> compute(int64_t targets, Profiler *profiler, double &operations);
  std::string whySkipped(const StepRow &row) const;
  void evaluate(StepRow &row);
  void setGroupNorms(StepRow &row);
  bool canBeSkipped(const StepResult &result) const;
  int64_t sequencesOf(int64_t micro) const;

  Run run;
  RunState &state = run.state;
  Collective &ranks = run.folder.ranks();
  std::shared_ptr<Device> device;
  Trainer trainer;
  Peak peak;
  std::optional<StopSignals> signals; // while there are steps to lose
  std::optional<StepLog> log;
  std::optional<ProfiledSteps> profile;
  std::optional<GroupNorms> groups;
  Saves saves;
  bool isUpdating = false; // the weights are neither those before the step nor those after it
  bool isBadLoss = false;  // the loss or the gradient is not finite, on all ranks
  int64_t made = 0;        // specialisations, before the first step
  Clock::time_point start = Clock::now();
};

} // namespace

Training::Training(Run given)
    : run(std::move(given)), device(openDevice(run.options.machine, ranks)),
      trainer(device, run.model, fitToMemory(run, *device), shapesOf(run), run.folder.sharedRanks()),
      peak(peakSampler(*device, run.model.type(), state.settings.precision)),
      saves(run.folder, run.options, run.model, state, trainer) {
  expectSameData(run);
  expectAgreement(run);
  restore(run, trainer, saves);
  state.lossScale = trainer.lossScale();
  prepare();
}

/// Makes the steps ready; of batches of several shapes it is told what that took.
void Training::prepare() {
  const CompileStatistics before = compileStatistics();
  const Clock::time_point begin = Clock::now();
  trainer.prepare();
  const CompileStatistics after = compileStatistics();
  const int64_t compiled = after.compiled - before.compiled, read = after.fromDisk - before.fromDisk;
  made = after.compiled + after.fromDisk;
  if (const size_t shapes = run.data.shapes().size(); shapes > 1)
    run.notes.push_back(fmt::format("{} specialisations for batches of {} shapes are ready after {:.2f} s, {} of them "
                                    "compiled; no step compiles",
                                    compiled + read, shapes, secondsSince(begin), compiled));
}

/// The sequences of a micro-batch of the step that is next.
int64_t Training::sequencesOf(int64_t micro) const {
  const int64_t batch = run.data.perBatch(state.settings.batch);
  return run.data.shapes().empty() ? run.model.shape(batch).sequences
                                   : run.data.training(state.sequences + micro * batch, batch).shape->sequences;
}

/// Whether a step that was not applied is one to leave out and go on: its loss is sound, and with a smaller scale its
/// gradient may fit.
bool Training::canBeSkipped(const StepResult &result) const {
  return trainer.scalesLoss() && std::isfinite(result.loss) && result.lossScale > leastLossScale;
}

/// The gradient of a step's micro-batches and its update; nothing when the run was asked to stop between them. Adds
/// the operations that it takes.
std::optional<StepResult> Training::compute(int64_t targets, Profiler *profiler, double &operations) {
  const TrainSettings &s = state.settings;
  const int64_t batch = run.data.perBatch(s.batch);
  trainer.beginStep(learningRate(s, state.step), state.updates + 1, targets, state.step + 1);
  for (int64_t micro = 0; micro < s.accumulate; ++micro) {
    if (micro % ranks.size() != ranks.rank()) {
      trainer.leaveOut(sequencesOf(micro));
      continue;
    }
    // With the last one ranks may begin to exchange: all do, or none. Each asks the others once in a step.
    const bool isLast = micro + ranks.size() >= s.accumulate, isAsked = signals->asked();
    if (isAsked || isLast)
      if (ranks.any(isAsked))
        return {};
    const HostBatch inputs = noted(profiler, Track::data, "batch",
                                   [&] { return run.data.training(state.sequences + micro * batch, batch); });
    operations += run.model.flops(inputs.shape.value_or(run.model.shape(s.batch)));
    noted(profiler, Track::host, "gradient", [&] { trainer.addGradient(inputs, micro); });
  }
  isUpdating = true;
  const StepResult result = noted(profiler, Track::host, "update", [&] { return trainer.update(); });
  isUpdating = false;
  return result;
}

/// Nothing when the run was asked to stop before the step was done; then it is where it was before.
std::optional<StepRow> Training::step() {
  const TrainSettings &s = state.settings;
  StepRow row;
  row.step = state.step + 1;
  Profiler *const profiler = profile ? profile->at(row.step) : nullptr;
  const Clock::time_point begin = Clock::now();
  const int64_t sequences = run.data.perBatch(s.batch) * s.accumulate;
  const int64_t targets = run.data.trainingTargets(state.sequences, sequences);
  const double rate = learningRate(s, state.step);
  double operations = 0;
  const std::optional<StepResult> computed = noted(profiler, Track::host, fmt::format("step {}", row.step),
                                                   [&] { return compute(targets, profiler, operations); });
  if (!computed)
    return {};
  const StepResult &result = *computed;
  const double seconds = secondsSince(begin);
  const bool taken = result.applied || result.isOutlier || canBeSkipped(result);
  if (taken) {
    state.sequences += sequences;
    state.step = row.step;
    state.updates += result.applied;
    state.lossScale = trainer.lossScale();
    if (s.leavesOutliers() && std::isfinite(result.loss))
      state.outliers = trainer.outlierWindow();
  }
  const bool scales = trainer.scalesLoss();
  isBadLoss = !taken || !std::isfinite(result.loss);
  if (isBadLoss)
    throw Error(fmt::format(
        "expected a finite loss and gradient at step {}, but got {} and {}{}; a lower --lr may help", row.step,
        result.loss, result.gradientNorm, scales ? fmt::format(" with a loss scale of {}", result.lossScale) : ""));
  row.set("loss", result.loss);
  evaluate(row);
  row.set("lr", rate);
  row.set("grad_norm", result.gradientNorm);
  setGroupNorms(row);
  if (scales)
    row.set("loss_scale", result.lossScale);
  if (trainer.leavesOut()) {
    row.set("loss_z", result.lossZ);
    row.set("norm_z", result.normZ);
  }
  if (scales || trainer.leavesOut())
    row.set("skipped", !result.applied);
  row.set("dtype", dtypeOf(run.model.type()));
  row.set("tokens", static_cast<double>(targets));
  row.set("tokens_per_s", static_cast<double>(targets) / seconds);
  row.set("peak_share", peak.shareOf(operations / seconds));
  row.seconds = secondsSince(start);
  return row;
}

/// The same; an error (a bad loss, data that cannot be read, an evaluation that fails) tells what became of the steps
/// so far. They are saved, unless the weights are half updated, or other ranks, which a save needs, have no error.
std::optional<StepRow> Training::stepOrRescue() {
  isBadLoss = isUpdating = false;
  try {
    return step();
  } catch (const Error &error) {
    const bool canSave = !isUpdating && (ranks.isAlone() || isBadLoss);
    throw Error(fmt::format("{}; {}", error.what(), canSave ? saves.rescue() : saves.lost()), error.fault);
  }
}

/// What is looked at now and then: the validation loss, unless the run is asked to stop before it is known.
void Training::evaluate(StepRow &row) {
  const TrainSettings &s = state.settings;
  const bool isLast = row.step == s.steps;
  if (!isLast && (s.evaluateEvery == 0 || row.step % s.evaluateEvery != 0))
    return;
  const int64_t most = isLast && s.evaluateAll ? 0 : s.evaluateBatches;
  if (const auto means = validate(
          trainer, run.data, run.data.perBatch(s.batch), s.parts, most, [&] { return signals->asked(); }, ranks)) {
    row.set("val_loss", means->loss);
    row.set("val_accuracy", means->accuracy);
  }
  if (s.samples > 0 && run.samples && ranks.isFirst() && !signals->asked())
    for (int64_t number = 0; const std::string &text : run.samples(trainer, s.samples))
      row.set(fmt::format("sample_{}", number++), text);
}

/// What is logged now and then of the step that was taken.
void Training::setGroupNorms(StepRow &row) {
  const int64_t every = state.settings.groupNorms;
  if (every == 0 || row.step % every != 0)
    return;
  if (!groups)
    groups.emplace(trainer);
  trainer.gatherGradients();
  const std::vector<double> norms = groups->norms();
  for (size_t i = 0; i < norms.size(); ++i)
    row.set("grad_norm_" + groups->names()[i], norms[i]);
}

std::string Training::whySkipped(const StepRow &row) const {
  if (trainer.leavesOut() && std::isfinite(row.number("grad_norm").value_or(NAN)))
    return fmt::format("its loss is {:.2f} and its gradient norm {:.2f} deviations above the mean of the last {}",
                       *row.number("loss_z"), *row.number("norm_z"), outlierWindow);
  return fmt::format("its gradient overflows with the loss times {}; {} is next", *row.number("loss_scale"),
                     state.lossScale.scale);
}

void Training::steps() {
  const TrainSettings &s = state.settings;
  log.emplace(run.folder, run.options, state.step, [this] { return saves.rescue(); });
  if (run.best)
    saves.keepBest(*run.best);
  signals.emplace(!ranks.isAlone());
  if (const std::optional<StepRange> range = run.options.profile; range && ranks.isFirst())
    profile.emplace(
        trainer, *range,
        run.options.trace.value_or(fmt::format("{}/trace-{}-{}.json", run.folder.path(), range->first, range->last)));
  Progress progress(state.step, s.steps, isatty(STDOUT_FILENO), ranks.isFirst() ? stdout : nullptr);
  if (run.options.curve)
    progress.showCurve();
  for (const std::string &line : introduction(run, *device, trainer, peak))
    progress.note(line);
  while (state.step < s.steps) {
    const std::optional<StepRow> row = stepOrRescue();
    if (row) {
      log->write(*row);
      if (row->has("skipped", true))
        progress.note(fmt::format("step {} is skipped: {}", row->step, whySkipped(*row)));
      progress.show(*row);
      for (const auto &[tag, value] : row->scalars)
        if (const std::string *text = std::get_if<std::string>(&value); text && tag.starts_with("sample_"))
          progress.note(fmt::format("{}: {}", tag, *text));
      saves.judge(*row, progress);
    }
    const bool stop = ranks.any(signals->asked()) || state.step == run.options.stopAfter;
    if (profile)
      if (const std::optional<std::string> text = profile->after(state.step, stop || state.step == s.steps))
        progress.note(*text);
    if (stop || state.step == s.steps)
      saves.save();
    else if (run.options.saveEvery > 0 && state.step % run.options.saveEvery == 0)
      saves.saveOnTheWay(progress);
    if (stop && state.step < s.steps) {
      progress.note(state.step == 0 ? "stopped before the first step"
                                    : fmt::format("stopped after step {}; --resume goes on", state.step));
      return;
    }
  }
  if (const size_t shapes = run.data.shapes().size(); shapes > 1) {
    const CompileStatistics now = compileStatistics();
    progress.note(fmt::format("the steps, on batches of {} shapes, made {} specialisations more", shapes,
                              now.compiled + now.fromDisk - made));
  }
  progress.note(fmt::format("done in {}; weights in '{}'", clockText(secondsSince(start)),
                            newestCheckpoint(run.folder.path()).value_or(run.folder.path())));
}

void train(Run run) { Training(std::move(run)).steps(); }

} // namespace kiln
