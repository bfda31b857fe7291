// The training loop and what surrounds it.

#include "models/train/loop.h"
#include "models/data/folder_lock.h"
#include "models/data/text.h"
#include "models/gpt2/init.h"
#include "models/train/model_links.h"
#include "models/train/peak.h"
#include "models/train/stop_signals.h"

#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

namespace kiln {

using Clock = std::chrono::steady_clock;

static double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::shared_ptr<Device> openDevice(const MachineOptions &options) {
  if (options.threads < 0)
    throw Error(fmt::format("expected 'threads' to be at least 0, but got {}", options.threads));
  std::shared_ptr<Device> device = Device::open(options.device);
  if (options.threads > 0)
    device->setThreads(options.threads);
  return device;
}

namespace {

/// A run in progress.
class Run {
public:
  explicit Run(const TrainOptions &options);
  void steps();

private:
  RunState begin() const;
  void restore();
  std::optional<StepRow> step();
  std::optional<double> validate();
  void record(const StepRow &row);
  std::string rescue();
  void save();

  const TrainOptions &options;
  std::optional<Beginning> beginning; // of a run that is not resumed
  std::optional<FolderLock> folder;
  std::optional<std::string> checkpoint; // that the run goes on from
  RunState state;
  Text text;
  std::shared_ptr<Device> device;
  Gpt2 model;
  TrainBatches batches;
  Peak peak;
  std::optional<StopSignals> signals; // while there are steps to lose
  std::optional<RunLog> log;
  int64_t saved = -1; // step of the last checkpoint
  Clock::time_point start = Clock::now();
};

} // namespace

/// The checkpoint to go on from, if any; throws when that and the folder's content contradict.
static std::optional<std::string> checkpointFor(const TrainOptions &options) {
  const std::optional<std::string> newest = newestCheckpoint(options.out);
  if (options.resumeStep) {
    const std::string path = checkpointPath(options.out, *options.resumeStep);
    if (!std::filesystem::exists(path))
      throw Error(fmt::format("expected a checkpoint of step {} in '{}', but there is none{}", *options.resumeStep,
                              options.out, newest ? fmt::format("; the newest is '{}'", *newest) : ""));
    return path;
  }
  if (options.resume && !newest)
    throw Error(fmt::format("expected a checkpoint to resume from in '{}', but there is none", options.out));
  if (!options.resume && newest && !options.overwrite)
    throw Error(fmt::format("expected a folder without checkpoints, but '{}' exists; --resume goes on from it, "
                            "--overwrite begins anew",
                            *newest));
  return options.resume ? newest : std::nullopt;
}

static void verify(const TrainOptions &options) {
  auto expect = [](bool right, const char *name, const char *range, int64_t value) {
    if (!right)
      throw Error(fmt::format("expected '{}' to be {}, but got {}", name, range, value));
  };
  expect(options.saveEvery >= 0, "save-every", "at least 0", options.saveEvery);
  expect(options.stopAfter >= 0, "stop-after", "at least 0", options.stopAfter);
  expect(options.keep >= 1, "keep", "at least 1", options.keep);
  if (options.resume && options.overwrite)
    throw Error("expected one of --resume, which goes on, and --overwrite, which begins anew, but got both");
  if (options.resume && options.init)
    throw Error("expected one of --resume, which goes on, and --init, which begins anew, but got both");
  if (options.resume)
    checkpointFor(options); // before a folder is made of a name that was meant otherwise
  verifyNoOtherModel(options.out);
}

/// What `read` makes of `checkpoint`. When that is damaged, the error names the checkpoint before it that is not.
template <class Read> static auto readOrNameOlder(const std::string &checkpoint, Read read) {
  try {
    return read(checkpoint);
  } catch (const Error &error) {
    const std::optional<std::string> older =
        error.fault == Fault::user ? wholeCheckpointBefore(checkpoint) : std::nullopt;
    if (!older)
      throw;
    throw Error(fmt::format("{}; '{}' is whole, and --resume-step {} goes on from it", error.what(), *older,
                            readRunState(*older).step));
  }
}

RunState Run::begin() const {
  RunState s;
  if (checkpoint) {
    s = readOrNameOlder(*checkpoint, readRunState);
    const Gpt2Config asked = modelOf(options.model, s.config);
    if (!(asked == s.config))
      throw Error(fmt::format("expected the checkpoint's model of {}, but got {}", textOf(s.config), textOf(asked)));
    verifyBytes(s.config);
    s.settings = settingsOf(options, s.settings);
  } else {
    s.config = beginning->config();
    s.settings = beginning->settings();
  }
  return s;
}

Run::Run(const TrainOptions &given)
    : options((verify(given), given)), beginning(given.resume ? std::nullopt : std::optional<Beginning>(given)),
      folder(given.out), checkpoint(checkpointFor(given)), state(begin()),
      text(readText(given.data, state.config.context)), device(openDevice(given.machine)),
      model(device, state.config, state.settings.batch, state.settings.accumulate),
      batches(text.train, state.config.context, state.settings.seed), peak(peakSampler(*device)) {
  const DataIdentity data = {given.data, static_cast<int64_t>(text.train.size()), hashOf(text.train)};
  if (checkpoint && !data.sameContent(state.data))
    throw Error(
        fmt::format("expected the data that the checkpoint was trained on ('{}', {} bytes, hash {:016x}), but got "
                    "'{}', {} bytes, hash {:016x}",
                    state.data.path, state.data.bytes, state.data.hash, data.path, data.bytes, data.hash));
  state.data = data;
  restore();
  model.prepare();
}

void Run::restore() {
  if (checkpoint) {
    model.upload(readOrNameOlder(*checkpoint, [&](const std::string &path) {
      return readBuffers(path, model.network().parameters(), state.config.type);
    }));
    removeCheckpointsAfter(*checkpoint);
    saved = state.step;
    linkNewest(options.out); // to which a run that was killed may not have come
    return;
  }
  beginning->fill(model, state.settings.seed);
  removeCheckpoints(options.out);
}

/// Nothing when the run was asked to stop before the step was done; then it is where it was before.
std::optional<StepRow> Run::step() {
  const TrainSettings &s = state.settings;
  const Clock::time_point begin = Clock::now();
  const int64_t sequences = s.batch * s.accumulate;
  StepRow row;
  row.step = state.step + 1;
  row.rate = learningRate(s, state.step);
  model.beginStep(s, row.rate, row.step);
  for (int64_t micro = 0; micro < s.accumulate; ++micro) {
    if (signals->asked())
      return {};
    model.addGradient(batches.sequences(state.sequences + micro * s.batch, s.batch), micro);
  }
  const UpdateResult result = model.update();
  const double seconds = secondsSince(begin);
  row.loss = result.loss;
  row.gradientNorm = result.gradientNorm;
  if (!std::isfinite(row.loss) || !std::isfinite(row.gradientNorm))
    throw Error(fmt::format("expected a finite loss and gradient at step {}, but got {} and {}; a lower --lr may help",
                            row.step, row.loss, row.gradientNorm));
  state.sequences += sequences;
  state.step = row.step;
  row.tokensPerSecond = static_cast<double>(sequences * state.config.context) / seconds;
  row.peakShare = peak.shareOf(flopsOfStep(state.config, sequences) / seconds);
  const bool due = s.evaluateEvery > 0 && row.step % s.evaluateEvery == 0;
  if (due || row.step == s.steps)
    row.validationLoss = validate();
  row.seconds = secondsSince(start);
  return row;
}

/// Mean loss over every byte of the validation text but the first, in sequences laid end to end; nothing when the run
/// was asked to stop before it was known.
std::optional<double> Run::validate() {
  const int64_t context = state.config.context, batch = state.settings.batch;
  const int64_t bytes = std::ssize(text.validation), sequences = validationSequences(bytes, context);
  double sum = 0;
  for (int64_t first = 0; first < sequences; first += batch) {
    if (signals->asked())
      return {};
    sum += model.lossSum(validationBatch(text.validation, context, first, batch));
  }
  return sum / static_cast<double>(bytes - 1);
}

void Run::save() {
  if (saved == state.step || state.step == 0)
    return;
  saveCheckpoint(options.out, options.keep, state, model.network().parameters(), model.download());
  saved = state.step;
}

/// Writes the row to the log. When that cannot be done, or the folder went away, the run ends, but not without its
/// steps.
void Run::record(const StepRow &row) {
  try {
    if (!folder->holds())
      throw Error(fmt::format("expected '{}' to stay in place while a run writes to it, but it was removed or renamed",
                              options.out));
    log->write(row);
  } catch (const Error &error) {
    throw Error(fmt::format("{}; {}", error.what(), rescue()), Fault::device);
  }
}

/// Saves what can be saved, in a folder made anew if need be, and says what came of it.
std::string Run::rescue() {
  const int64_t kept = std::max<int64_t>(saved, 0);
  try {
    if (!folder->holds()) {
      folder.emplace(options.out);
      const std::optional<std::string> newest = newestCheckpoint(options.out);
      if (newest && (saved < 0 || *newest != checkpointPath(options.out, saved)))
        throw Error(fmt::format("another run's '{}' is there now", *newest));
    }
    save();
    return fmt::format("step {} is saved in '{}', and --resume goes on from it", state.step, options.out);
  } catch (const Error &error) {
    return fmt::format("and the steps after {} are lost: {}", kept, error.what());
  }
}

void Run::steps() {
  const TrainSettings &s = state.settings;
  log.emplace(options.out + "/log.jsonl", state.step);
  signals.emplace();
  Progress progress(state.step, s.steps, isatty(STDOUT_FILENO));
  progress.note(fmt::format("{}: {} parameters; {} steps of {} tokens on {} ({} threads, {:.0f} GFLOP/s measured peak)",
                            textOf(state.config), parameterCount(state.config), s.steps,
                            s.batch * s.accumulate * state.config.context, device->name(), device->threads(),
                            peak.best() / 1e9));
  if (checkpoint)
    progress.note(fmt::format("going on from '{}'", *checkpoint));
  if (beginning)
    for (const std::string &line : beginning->notes())
      progress.note(line);
  while (state.step < s.steps) {
    const std::optional<StepRow> row = step();
    if (row) {
      record(*row);
      progress.show(*row);
    }
    const bool stop = signals->asked() || state.step == options.stopAfter;
    if (stop || state.step == s.steps || (options.saveEvery > 0 && state.step % options.saveEvery == 0))
      save();
    if (stop && state.step < s.steps) {
      progress.note(state.step == 0 ? "stopped before the first step"
                                    : fmt::format("stopped after step {}; --resume goes on", state.step));
      return;
    }
  }
  progress.note(fmt::format("done in {}; weights in '{}'", clockText(secondsSince(start)),
                            newestCheckpoint(options.out).value_or(options.out)));
}

void train(const TrainOptions &options) {
  Run run(options);
  run.steps();
}

} // namespace kiln
