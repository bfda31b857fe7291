// The training loop and what surrounds it.

#include "models/train/loop.h"
#include "kernels/outliers.h"
#include "models/data/json.h"
#include "models/observe/profiled_steps.h"
#include "models/observe/row_sink.h"
#include "models/train/group_norms.h"
#include "models/train/peak.h"
#include "models/train/progress.h"
#include "models/train/saves.h"
#include "models/train/stop_signals.h"
#include "models/train/thrift.h"
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
  /// The settings, once they fit into the memory that the run may take.
  const TrainSettings &settingsThatFit();
  void restore();
  void prepare();
  std::optional<StepRow> step();
  std::optional<StepResult> compute(int64_t targets, Profiler *profiler, double &operations);
  std::string whySkipped(const StepRow &row) const;
  void evaluate(StepRow &row);
  void setGroupNorms(StepRow &row);
  bool canBeSkipped(const StepResult &result) const;
  void introduce(Progress &progress) const;
  void record(const StepRow &row);
  void expectAgreement();
  int64_t sequencesOf(int64_t micro) const;

  Run run;
  RunState &state = run.state;
  Collective &ranks = run.folder.ranks();
  std::shared_ptr<Device> device;
  Trainer trainer;
  Peak peak;
  std::optional<StopSignals> signals; // while there are steps to lose
  std::optional<RunLog> log;
  std::vector<std::unique_ptr<RowSink>> sinks; // what takes its rows besides
  std::optional<ProfiledSteps> profile;
  std::optional<GroupNorms> groups;
  Saves saves;
  int64_t made = 0; // specialisations, before the first step
  Clock::time_point start = Clock::now();
};

} // namespace

/// The shapes of a run's micro-batches.
static std::vector<BatchShape> shapesOf(const Run &run) {
  const std::vector<BatchShape> several = run.data.shapes();
  return several.empty() ? std::vector{run.model.shape(run.state.settings.batch)} : several;
}

Training::Training(Run given)
    : run(std::move(given)), device(openDevice(run.options.machine, ranks)),
      trainer(device, run.model, settingsThatFit(), shapesOf(run), run.folder.sharedRanks()),
      peak(peakSampler(*device, run.model.type(), state.settings.precision)),
      saves(run.folder, run.options, run.model, state, trainer) {
  const DataIdentity data = run.data.identity();
  const bool hasSeenData = run.folder.checkpoint() && !state.data.path.empty();
  if (hasSeenData && !data.sameContent(state.data))
    throw Error(
        fmt::format("expected the data that the checkpoint was trained on ('{}', {} bytes, hash {:016x}), but got "
                    "'{}', {} bytes, hash {:016x}",
                    state.data.path, state.data.bytes, state.data.hash, data.path, data.bytes, data.hash));
  state.data = data;
  expectAgreement();
  restore();
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

const TrainSettings &Training::settingsThatFit() {
  if (run.options.memory) {
    if (const size_t shapes = shapesOf(run).size(); shapes > 1)
      throw Error(fmt::format("expected --memory for micro-batches of one shape, but these have {}", shapes));
    const Fitted fit = fitted(*device, run.model, state.settings, *run.options.memory, ranks.size(), ranks);
    state.settings = fit.settings;
    run.notes.push_back(fit.note);
  }
  return state.settings;
}

void Training::restore() {
  const std::optional<std::string> &from = run.folder.checkpoint();
  if (from) {
    run.folder.read([&](const std::string &path) { readBuffers(path, run.model, trainer.keptType(), trainer.sink()); });
    trainer.setLossScale(state.lossScale);
    trainer.setOutlierWindow(state.outliers);
    state.outliers = trainer.outlierWindow(); // nothing where none are left out any more
    saves.isSaved();
  } else {
    run.begin(trainer);
  }
  ranks.barrier(); // all have read
  if (!run.folder.isHeld())
    return;
  if (!from)
    return removeCheckpoints(run.folder.path());
  removeCheckpointsAfter(*from);
  linkNewest(run.folder.path()); // to which a run that was killed may not have come
}

/// Throws unless all ranks train the same model on the same data from the same place.
void Training::expectAgreement() {
  if (ranks.isAlone())
    return;
  ranks.expectSame("model", textOf(run.model.configJson(f32)));
  ranks.expectSame("settings", textOf(settingsJson(state.settings)));
  ranks.expectSame("data", fmt::format("{} bytes, hash {:016x}", state.data.bytes, state.data.hash));
  ranks.expectSame("place in the run",
                   fmt::format("step {}, update {}, sequence {}, saved every {}, stopped after {}", state.step,
                               state.updates, state.sequences, run.options.saveEvery, run.options.stopAfter));
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
  trainer.beginStep(learningRate(s, state.step), state.updates + 1, targets);
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
  return noted(profiler, Track::host, "update", [&] { return trainer.update(); });
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
  if (!taken || !std::isfinite(result.loss))
    throw Error(
        fmt::format("expected a finite loss and gradient at step {}, but got {} and {}{}; a lower --lr may help; {}",
                    row.step, result.loss, result.gradientNorm,
                    scales ? fmt::format(" with a loss scale of {}", result.lossScale) : "", saves.rescue()));
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

/// What is looked at now and then: the validation loss, unless the run is asked to stop before it is known.
void Training::evaluate(StepRow &row) {
  const TrainSettings &s = state.settings;
  const bool isLast = row.step == s.steps;
  if (!isLast && (s.evaluateEvery == 0 || row.step % s.evaluateEvery != 0))
    return;
  const int64_t most = isLast && s.evaluateAll ? 0 : s.evaluateBatches;
  if (const auto means =
          validate(trainer, run.data, run.data.perBatch(s.batch), most, [&] { return signals->asked(); }, ranks)) {
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

/// Writes the row to the log. When that cannot be done, or the folder went away, the run ends, but not without its
/// steps, nor without the row where there is a place for it.
void Training::record(const StepRow &row) {
  std::string failure = ranks.isFirst() ? "" : "the first rank could not record a step"; // which ends all
  if (run.folder.isHeld())
    try {
      if (!run.folder.holds())
        throw Error(fmt::format("expected '{}' to stay in place while a run writes to it, but it was removed or "
                                "renamed",
                                run.folder.path()));
      log->write(row);
      for (const std::unique_ptr<RowSink> &sink : sinks)
        sink->write(row);
    } catch (const Error &error) {
      failure = error.what();
    }
  if (!ranks.any(ranks.isFirst() && !failure.empty()))
    return;
  const std::string saved = saves.rescue();
  if (log)
    log->leave(row);
  throw Error(fmt::format("{}; {}", failure, saved), Fault::device);
}

/// The lines before the first step.
void Training::introduce(Progress &progress) const {
  const TrainSettings &s = state.settings;
  const int64_t sequences = run.data.perBatch(s.batch) * s.accumulate;
  const std::string tokens =
      run.data.shapes().empty()
          ? std::to_string(run.model.shape(sequences).targets())
          : fmt::format("about {}", run.data.trainingTargets(state.sequences, sequences)); // of the first one
  int64_t parameters = 0;
  for (const Parameter &p : run.model.parameters().all())
    parameters += p.count();
  const std::string each = ranks.isAlone() ? "" : fmt::format("{} ranks, each ", ranks.size());
  progress.note(fmt::format("{}: {} parameters; {} steps of {} tokens on {}{} ({} threads, {:.0f} GFLOP/s peak of {})",
                            run.model.text(), parameters, s.steps, tokens, each, device->name(), device->threads(),
                            peak.best() / 1e9, peak.what()));
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

std::string Training::whySkipped(const StepRow &row) const {
  if (trainer.leavesOut() && std::isfinite(row.number("grad_norm").value_or(NAN)))
    return fmt::format("its loss is {:.2f} and its gradient norm {:.2f} deviations above the mean of the last {}",
                       *row.number("loss_z"), *row.number("norm_z"), outlierWindow);
  return fmt::format("its gradient overflows with the loss times {}; {} is next", *row.number("loss_scale"),
                     state.lossScale.scale);
}

void Training::steps() {
  const TrainSettings &s = state.settings;
  if (run.folder.isHeld()) {
    log.emplace(run.folder.path() + "/log.jsonl", state.step);
    sinks = rowSinks(run.options, state.step);
  }
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
  introduce(progress);
  while (state.step < s.steps) {
    const std::optional<StepRow> row = step();
    if (row) {
      record(*row);
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
