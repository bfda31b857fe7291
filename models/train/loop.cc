// The training loop: steps, reports and evaluations, until the last step or a stop.

#include "models/train/loop.h"
#include "kernels/outliers.h"
#include "models/data/json.h"
#include "models/observe/profiler.h"
#include "models/train/evaluation.h"
#include "models/train/log.h"
#include "models/train/memory.h"
#include "models/train/model_links.h"
#include "models/train/peak.h"
#include "models/train/progress.h"
#include "models/train/run_folder.h"
#include "models/train/saves.h"
#include "models/train/ways_out.h"
#include "runtime/Streams.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <unistd.h>

namespace kiln {

// --- The start: checks of the parts, settings that fit the memory, weights -------------------------------------------

/// The shapes of a run's micro-batches.
static std::vector<BatchShape> listShapes(const Run &run) {
  const std::vector<BatchShape> several = run.data.shapes();
  return several.empty() ? std::vector{run.model.shape(run.state.settings.batch)} : several;
}

/// The settings of the run, after they were fitted to its memory budget if it has one; the choice becomes a note of the
/// run. Throws Error if nothing fits, and for micro-batches of several shapes. All ranks call it.
static const TrainSettings &fitToMemory(Run &run, const Device &device) {
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

/// Throws Error if the run has taken more steps than its settings allow.
static void expectStepsWithin(const Run &run) {
  const RunState &state = run.state;
  if (state.step > state.settings.steps)
    throw Error(fmt::format("expected '--steps' to be at least {}, the steps that the run has taken, but got {}",
                            state.step, state.settings.steps));
}

/// Records the run's data in the state. Throws Error if the checkpoint was trained on other data.
static void expectSameData(Run &run) {
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

/// Throws Error unless all ranks train one model on one data set from one position. All ranks call it.
static void expectAgreement(const Run &run) {
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

/// Brings weights, moments, loss scale and the outlier window to the trainer, from the checkpoint or as initialised.
/// Removes checkpoints that the run does not continue from. All ranks call it.
static void restore(Run &run, Trainer &trainer, Saves &saves) {
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

/// The lines to print before the first step: model, machine, types, checkpoint, and the run's notes.
static std::vector<std::string> introduction(const Run &run, const Device &device, const Trainer &trainer,
                                             const Peak &peak) {
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

// --- The loop --------------------------------------------------------------------------------------------------------

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
  std::optional<Way> turn(Progress &progress);
  std::optional<StepRow> step();
  [[noreturn]] void leave(const std::exception &error);
  std::optional<StepResult> compute(int64_t targets, Profiler *profiler, double &operations);
  std::string whySkipped(const StepRow &row) const;
  StepRow makeRow(const StepResult &result, double rate, int64_t targets) const;
  void addLooks(StepRow &row, const std::function<void(StepRow &)> &look);
  void record(const StepRow &row, Progress &progress);
  void completeRow(Progress &progress);
  void evaluate(StepRow &row);
  void setGroupNorms(StepRow &row);
  bool canBeSkipped(const StepResult &result) const;
  int64_t countSequences(int64_t micro) const;

  Run run;
  RunState &state = run.state;
  Collective &ranks = run.folder.ranks();
  std::shared_ptr<Device> device;
  Trainer trainer;
  Peak peak;
  std::optional<StopSignals> signals; // installed during the steps, which a signal must not lose
  std::optional<StepLog> log;
  std::optional<ProfiledSteps> profile;
  std::optional<GradientNorms> groups;
  Saves saves;
  Way at = Way::gradient;          // how an error now would end the run
  std::optional<StepRow> unlogged; // the row of the last step, until it is logged
  bool isUnevaluated = false;      // a stop was requested before the evaluation of the last step was complete
  int64_t made = 0;                // specialisations compiled before the first step
  Clock::time_point start = Clock::now();
};

} // namespace

Training::Training(Run given)
    : run(std::move(given)), device(openDevice(run.options.machine, ranks)),
      trainer(device, run.model, fitToMemory(run, *device), listShapes(run), run.folder.sharedRanks()),
      peak(peakSampler(*device, run.model.type(), state.settings.precision)),
      saves(run.folder, run.model, state, trainer) {
  expectStepsWithin(run);
  expectSameData(run);
  expectAgreement(run);
  restore(run, trainer, saves);
  state.lossScale = trainer.lossScale();
  prepare();
}

/// Prepares the steps; for batches of several shapes it reports the time.
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

/// The sequences of a micro-batch of the next step.
int64_t Training::countSequences(int64_t micro) const {
  const int64_t batch = run.data.perBatch(state.settings.batch);
  return run.data.trainingSequences(state.sequences + micro * batch, batch);
}

/// Whether training can skip a step that was not applied: its loss is finite, and a smaller loss scale may avoid the
/// overflow of its gradient.
bool Training::canBeSkipped(const StepResult &result) const {
  return trainer.scalesLoss() && std::isfinite(result.loss) && result.lossScale > minLossScale;
}

/// Computes the gradients of a step's micro-batches and the update; none if a stop was requested in between. Adds their
/// FLOPs to `operations`.
std::optional<StepResult> Training::compute(int64_t targets, Profiler *profiler, double &operations) {
  const TrainSettings &s = state.settings;
  const int64_t batch = run.data.perBatch(s.batch);
  trainer.beginStep(learningRate(s, state.step), state.updates + 1, targets, state.step + 1);
  for (int64_t micro = 0; micro < s.accumulate; ++micro) {
    if (micro % ranks.size() != ranks.rank()) {
      trainer.leaveOut(countSequences(micro));
      continue;
    }
    // During the last micro-batch, ranks may begin to exchange gradients: all or none. They agree once a step.
    const bool isLast = micro + ranks.size() >= s.accumulate, isAsked = signals->asked();
    if (isAsked || isLast)
      if (ranks.any(isAsked))
        return {};
    const HostBatch inputs = noted(profiler, Track::data, "batch",
                                   [&] { return run.data.training(state.sequences + micro * batch, batch); });
    operations += run.model.countFlops(inputs, inputs.shape.value_or(run.model.shape(s.batch)));
    noted(profiler, Track::host, "gradient", [&] { trainer.addGradient(inputs, micro); });
  }
  at = Way::update;
  return noted(profiler, Track::host, "update", [&] { return trainer.update(); });
}

/// The row of a step, without the values of periodic evaluations.
StepRow Training::makeRow(const StepResult &result, double rate, int64_t targets) const {
  StepRow row;
  row.step = state.step;
  row.set("loss", result.loss);
  row.set("lr", rate);
  row.set("grad_norm", result.gradientNorm);
  const bool scales = trainer.scalesLoss();
  if (scales)
    row.set("loss_scale", result.lossScale);
  if (trainer.leavesOut()) {
    row.set("loss_z", result.lossZ);
    row.set("norm_z", result.normZ);
  }
  if (scales || trainer.leavesOut())
    row.set("skipped", !result.applied);
  row.set("dtype", dtypeName(run.model.type()));
  row.set("tokens", static_cast<double>(targets));
  return row;
}

/// Takes a step, and returns its row. None if a stop was requested during the step; then the state is unchanged.
std::optional<StepRow> Training::step() {
  const TrainSettings &s = state.settings;
  const int64_t number = state.step + 1;
  Profiler *const profiler = profile ? profile->at(number) : nullptr;
  const Clock::time_point begin = Clock::now();
  const int64_t sequences = run.data.perBatch(s.batch) * s.accumulate;
  const int64_t targets = run.data.trainingTargets(state.sequences, sequences);
  const double rate = learningRate(s, state.step);
  double operations = 0;
  const std::optional<StepResult> computed = noted(profiler, Track::host, fmt::format("step {}", number),
                                                   [&] { return compute(targets, profiler, operations); });
  if (!computed)
    return {};
  at = Way::badLoss;
  const StepResult &result = *computed;
  const double seconds = secondsSince(begin);
  const bool taken = result.applied || result.isOutlier || canBeSkipped(result);
  if (taken) {
    state.sequences += sequences;
    state.step = number;
    state.updates += result.applied;
    state.lossScale = trainer.lossScale();
    if (s.leavesOutliers() && std::isfinite(result.loss))
      state.outliers = trainer.outlierWindow();
  }
  if (!taken || !std::isfinite(result.loss))
    throw Error(
        fmt::format("expected a finite loss and gradient at step {}, but got {} and {}{}; a lower --lr may help",
                    number, result.loss, result.gradientNorm,
                    trainer.scalesLoss() ? fmt::format(" with a loss scale of {}", result.lossScale) : ""));
  at = Way::evaluation;
  StepRow row = makeRow(result, rate, targets);
  row.set("tokens_per_s", static_cast<double>(targets) / seconds);
  row.set("peak_share", peak.shareOfPeak(operations / seconds));
  row.seconds = secondsSince(start);
  unlogged = row;
  addLooks(row, [this](StepRow &looks) {
    evaluate(looks);
    setGroupNorms(looks);
  });
  return row;
}

/// Inserts the fields that `look` adds to an empty row into `row`, after the loss.
void Training::addLooks(StepRow &row, const std::function<void(StepRow &)> &look) {
  StepRow looks;
  look(looks);
  row.scalars.insert(row.scalars.begin() + 1, looks.scalars.begin(), looks.scalars.end());
  row.seconds = secondsSince(start);
  unlogged = row;
}

/// Ends the run with the error, which says whether its steps were saved.
void Training::leave(const std::exception &error) {
  const WayOut &way = wayOut(at);
  const bool canSave = way.saved == Saved::lastStep && (ranks.isAlone() || way.isKnownToAll);
  const std::string saved = canSave ? saves.rescue() : saves.lost();
  if (unlogged)
    log->leave(*unlogged);
  const int status = exitStatus(error);
  const bool isForeign = status == 4 && !dynamic_cast<const Error *>(&error);
  throw Error(fmt::format("{}{}; {}", isForeign ? "internal error: " : "", messageOf(error), saved),
              status == 2   ? Fault::user
              : status == 3 ? Fault::device
                            : Fault::internal);
}

/// Periodic evaluation: the validation loss, and samples; nothing if a stop is requested before the loss is complete.
void Training::evaluate(StepRow &row) {
  const TrainSettings &s = state.settings;
  const bool isLast = state.step == s.steps;
  if (!isLast && (s.evaluateEvery == 0 || state.step % s.evaluateEvery != 0))
    return;
  const int64_t most = isLast && s.evaluateAll ? 0 : s.evaluateSequences;
  const auto means =
      validate(trainer, run.data, run.data.perBatch(s.batch), most, [&] { return signals->asked(); }, ranks);
  isUnevaluated = !means;
  if (isUnevaluated)
    return;
  row.set("val_loss", means->loss);
  row.set("val_accuracy", means->accuracy);
  if (s.samples > 0 && run.samples && ranks.isFirst())
    for (int64_t number = 0; const std::string &text : run.samples(trainer, s.samples))
      row.set(fmt::format("sample_{}", number++), text);
}

/// Periodic log entries of the last step.
void Training::setGroupNorms(StepRow &row) {
  const int64_t every = state.settings.gradientNorms;
  if (every == 0 || state.step % every != 0)
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

/// Logs and shows a row, and keeps the checkpoint if its validation loss is the least so far. A row without its
/// evaluation is left for the next run.
void Training::record(const StepRow &row, Progress &progress) {
  if (isUnevaluated) {
    log->leave(row);
    return progress.show(row);
  }
  const std::optional<std::string> failure = log->write(row);
  at = Way::row;
  if (failure)
    throw Error(*failure, Fault::device);
  unlogged.reset();
  at = Way::best;
  if (row.has("skipped", true))
    progress.note(fmt::format("step {} is skipped: {}", row.step, whySkipped(row)));
  progress.show(row);
  for (const auto &[tag, value] : row.scalars)
    if (const std::string *text = std::get_if<std::string>(&value); text && tag.starts_with("sample_"))
      progress.note(fmt::format("{}: {}", tag, *text));
  saves.judge(row, progress);
}

/// Completes the row of the last step, whose evaluation an earlier run has not ended, or which it could not write.
void Training::completeRow(Progress &progress) {
  if (!ranks.any(log->left().has_value()))
    return;
  at = Way::evaluation;
  StepRow row = log->left().value_or(makeRow({}, 0, 0)); // only the first rank writes its row
  unlogged = row;
  if (!ranks.any(row.number("val_loss").has_value())) // all ranks evaluate or none
    addLooks(row, [this](StepRow &looks) { evaluate(looks); });
  record(row, progress);
}

/// A step with its logs, evaluations and saves. Returns how it ends the run, if it does.
std::optional<Way> Training::turn(Progress &progress) {
  at = Way::gradient;
  unlogged.reset();
  if (const std::optional<StepRow> row = step())
    record(*row, progress);
  at = Way::gradient;
  const bool isAsked = ranks.any(signals->asked());
  const std::optional<Way> end = isUnevaluated                         ? std::optional(Way::signal)
                                 : state.step == state.settings.steps  ? std::optional(Way::lastStep)
                                 : state.step == run.options.stopAfter ? std::optional(Way::stopAfter)
                                 : isAsked                             ? std::optional(Way::signal)
                                                                       : std::nullopt;
  at = Way::profile;
  if (profile)
    if (const std::optional<std::string> text = profile->after(state.step, end.has_value()))
      progress.note(*text);
  at = Way::save;
  if (end)
    saves.save();
  else if (state.settings.saveEvery > 0 && state.step % state.settings.saveEvery == 0)
    saves.saveOnTheWay(progress);
  return end;
}

void Training::steps() {
  const TrainSettings &s = state.settings;
  log.emplace(run.folder, run.options, state.step);
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
  if (state.step == s.steps)
    progress.note(fmt::format("all {} steps are taken; --steps continues with more", s.steps));
  try {
    completeRow(progress);
    std::optional<Way> end = isUnevaluated ? std::optional(Way::signal) : std::nullopt;
    while (!end && state.step < s.steps)
      end = turn(progress);
    if (isUnevaluated)
      return progress.note(fmt::format("stopped in the evaluation of step {}; --resume continues", state.step));
    if (end && end != Way::lastStep)
      return progress.note(state.step == 0 ? "stopped before the first step"
                                           : fmt::format("stopped after step {}; --resume continues", state.step));
  } catch (const std::exception &error) {
    leave(error);
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
