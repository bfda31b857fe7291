// The training loop and what surrounds it.

#include "models/gpt2/trainer.h"
#include "models/data/text.h"
#include "models/gpt2/peak.h"

#include <atomic>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

namespace kiln {

using Clock = std::chrono::steady_clock;

static volatile std::sig_atomic_t interrupted = 0;

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

double validationLoss(Gpt2 &model, const std::vector<uint8_t> &text, int64_t batch) {
  const int64_t context = model.network().config().context;
  const int64_t bytes = static_cast<int64_t>(text.size()), sequences = validationSequences(bytes, context);
  double sum = 0;
  for (int64_t first = 0; first < sequences; first += batch)
    sum += model.lossSum(validationBatch(text, context, first, batch));
  return sum / static_cast<double>(bytes - 1);
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
  StepRow step();
  void save();

  const TrainOptions &options;
  std::optional<std::string> checkpoint; // that the run goes on from
  RunState state;
  Text text;
  std::shared_ptr<Device> device;
  Gpt2 model;
  TrainBatches batches;
  double peak = 0;
  int64_t saved = -1; // step of the last checkpoint
  Clock::time_point start = Clock::now();
};

} // namespace

/// The checkpoint to go on from, if any; throws when that and the folder's content contradict.
static std::optional<std::string> checkpointFor(const TrainOptions &options) {
  const std::optional<std::string> newest = newestCheckpoint(options.out);
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
}

RunState Run::begin() const {
  RunState s;
  if (checkpoint) {
    s = readRunState(*checkpoint);
    const Gpt2Config asked = modelOf(options.model, s.config);
    if (!(asked == s.config))
      throw Error(fmt::format("expected the checkpoint's model of {}, but got {}", textOf(s.config), textOf(asked)));
    s.settings = settingsOf(options, s.settings);
  } else {
    s.config = modelOf(options.model);
    s.settings = settingsOf(options);
  }
  if (s.config.vocab < 256)
    throw Error(fmt::format("expected a vocabulary of at least 256 for bytes, but got {}", s.config.vocab));
  return s;
}

Run::Run(const TrainOptions &given)
    : options((verify(given), given)), checkpoint(checkpointFor(given)), state(begin()),
      text(readText(given.data, state.config.context)), device(openDevice(given.machine)),
      model(device, state.config, state.settings.batch, state.settings.accumulate),
      batches(text.train, state.config.context, state.settings.seed) {
  const DataIdentity data = {given.data, static_cast<int64_t>(text.train.size()), hashOf(text.train)};
  if (checkpoint && !data.sameContent(state.data))
    throw Error(
        fmt::format("expected the data that the checkpoint was trained on ('{}', {} bytes, hash {:016x}), but got "
                    "'{}', {} bytes, hash {:016x}",
                    state.data.path, state.data.bytes, state.data.hash, data.path, data.bytes, data.hash));
  state.data = data;
  restore();
  model.prepare();
  peak = measurePeak(*device);
}

void Run::restore() {
  if (checkpoint) {
    model.upload(readBuffers(*checkpoint, model.network().parameters(), state.config.type));
    saved = state.step;
    return;
  }
  model.initialize(state.settings.seed);
  std::error_code error;
  std::filesystem::create_directories(options.out, error);
  if (error)
    throw Error(fmt::format("cannot make folder '{}': {}", options.out, error.message()), Fault::device);
  removeCheckpoints(options.out);
}

StepRow Run::step() {
  const TrainSettings &s = state.settings;
  const Clock::time_point begin = Clock::now();
  for (int64_t micro = 0; micro < s.accumulate; ++micro) {
    model.addGradient(batches.sequences(state.sequences, s.batch), micro);
    state.sequences += s.batch;
  }
  StepRow row;
  row.rate = learningRate(s, state.step);
  row.step = ++state.step;
  const UpdateResult result = model.update(s, row.rate, row.step);
  const double seconds = secondsSince(begin);
  const int64_t sequences = s.batch * s.accumulate;
  row.loss = result.loss;
  row.gradientNorm = result.gradientNorm;
  row.tokensPerSecond = static_cast<double>(sequences * state.config.context) / seconds;
  row.peakShare = flopsOfStep(state.config, sequences) / seconds / peak;
  if (!std::isfinite(row.loss) || !std::isfinite(row.gradientNorm))
    throw Error(fmt::format("expected a finite loss and gradient at step {}, but got {} and {}; a lower --lr may help",
                            row.step, row.loss, row.gradientNorm));
  const bool due = s.evaluateEvery > 0 && row.step % s.evaluateEvery == 0;
  if (due || row.step == s.steps)
    row.validationLoss = validationLoss(model, text.validation, s.batch);
  row.seconds = secondsSince(start);
  return row;
}

void Run::save() {
  if (saved == state.step)
    return;
  saveCheckpoint(options.out, options.keep, state, model.network().parameters(), model.download());
  saved = state.step;
}

void Run::steps() {
  const TrainSettings &s = state.settings;
  RunLog log(options.out + "/log.jsonl", state.step);
  Progress progress(state.step, s.steps, isatty(STDOUT_FILENO));
  progress.note(fmt::format("{}: {} parameters; {} steps of {} tokens on {} ({} threads, {:.0f} GFLOP/s peak)",
                            textOf(state.config), parameterCount(state.config), s.steps,
                            s.batch * s.accumulate * state.config.context, device->name(), device->threads(),
                            peak / 1e9));
  if (checkpoint)
    progress.note(fmt::format("going on from '{}'", *checkpoint));
  while (state.step < s.steps) {
    const StepRow row = step();
    log.write(row);
    progress.show(row);
    const bool stop = interrupted || state.step == options.stopAfter;
    if (stop || state.step == s.steps || (options.saveEvery > 0 && state.step % options.saveEvery == 0))
      save();
    if (stop && state.step < s.steps) {
      progress.note(fmt::format("stopped after step {}; --resume goes on", state.step));
      return;
    }
  }
  progress.note(fmt::format("done in {}; weights in '{}'", clockText(secondsSince(start)),
                            newestCheckpoint(options.out).value_or(options.out)));
}

/// A reader of our output that went away ends the run like an interrupt, so that nothing is lost; a lost terminal too,
/// unless the run was started under nohup.
static void catchSignals() {
  interrupted = 0;
  const auto handler = [](int) { interrupted = 1; };
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE})
    std::signal(signal, handler);
  if (std::signal(SIGHUP, handler) == SIG_IGN)
    std::signal(SIGHUP, SIG_IGN);
}

void train(const TrainOptions &options) {
  catchSignals();
  Run run(options);
  run.steps();
}

} // namespace kiln
