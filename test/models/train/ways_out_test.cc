// Each way to end the training loop (models/train/ways_out.h) occurs. The folder then has the newest weights that it
// can have, and a resumed run has the end and the log of an uninterrupted one.

#include "models/train/ways_out.h"
#include "test/models/file_size_limit.h"
#include "test/models/train/token_mlp.h"

#include <csignal>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

using namespace kiln;

namespace {

/// Data with an action when a batch that begins with a given sequence is requested, once.
class Disturbing : public Counting {
public:
  using Counting::Counting;
  HostBatch training(int64_t first, int64_t count) override {
    if (const auto found = atTraining.find(first); found != atTraining.end())
      atTraining.extract(found).mapped()();
    return Counting::training(first, count);
  }
  HostBatch validation(const std::vector<int64_t> &sequences, int64_t count) const override {
    if (atValidation)
      atValidation();
    return Counting::validation(sequences, count);
  }
  std::map<int64_t, std::function<void()>> atTraining;
  std::function<void()> atValidation;
};

/// Steps are saved after each fifth and evaluated after each eighth; of the eighth sequences 28 to 31 are.
constexpr int64_t step = 8, begin = 28, middle = 30, savedBefore = 5, lastBegin = 92;

/// One way to end: its cause, its error message, if it is an error, and the last saved step.
struct Taken {
  Way way;
  std::string name;
  std::function<void()> arrange;
  std::string text;
  int64_t saved;
};

class WaysOut : public LoopTest {
protected:
  void take(const Taken &taken) {
    options = {.out = folder / taken.name};
    data = Disturbing(settings.seed);
    begun = {};
    samples = [](Trainer &, int64_t) { return std::vector<std::string>(); };
    best = {};
    taken.arrange();
    std::string text;
    try {
      run(options, TokenMlp(), data);
    } catch (const std::exception &error) {
      text = error.what();
      EXPECT_TRUE(dynamic_cast<const Error *>(&error)) << text;
    }
    full.reset();
    EXPECT_EQ(text.find(taken.text), 0u) << text;
    EXPECT_EQ(text.empty(), taken.text.empty()) << text;
    const std::optional<std::string> newest = newestCheckpoint(options.out);
    EXPECT_EQ(newest ? readRunState(*newest).step : 0, taken.saved) << text;
    begun = {};
    best = {};
    samples = {};
    run({.out = options.out, .resume = true});
    for (const char *file : {"model.safetensors", "optimizer.safetensors"})
      EXPECT_TRUE(readText(checkpointPath(whole, 24) + "/" + file) ==
                  readText(checkpointPath(options.out, 24) + "/" + file))
          << file;
    const std::vector<std::string> all = rows(whole); // those of before are with the log that went away
    EXPECT_EQ(rows(options.out), std::vector(all.begin() + (taken.way == Way::row ? step - 1 : 0), all.end()));
  }

  /// Runs `before` before the update of step 8, and `after` after it.
  void atUpdate(std::function<void(Trainer &)> before, std::function<void(Trainer &)> after = {}) {
    begun = [=](Trainer &trainer) {
      trainer.watch([=, &trainer, calls = 0](const std::vector<Trainer::NamedLaunch> &launches) mutable {
        const bool isIts = ++calls == 3 * step; // each step has two micro-batches
        if (isIts && before)
          before(trainer);
        for (const Trainer::NamedLaunch &launch : launches)
          launch.run.run();
        if (isIts && after)
          after(trainer);
      });
    };
  }
  static void fill(const Trainer &trainer, const TensorRef &with, float value) {
    const std::vector<float> all(with.count(), value);
    trainer.machine()->upload(with.data, all.data(), std::ssize(all) * 4);
  }
  /// From sequence `first` on, no file can grow beyond the size that the log needs.
  void fillDiskAt(int64_t first) {
    data.atTraining[first] = [this] { full.emplace(std::filesystem::file_size(options.out + "/log.jsonl") + 1000); };
  }
  /// A function that throws `error`.
  template <class Thrown> static std::function<void()> throws(const Thrown &error) {
    return [=] { throw error; };
  }

  const std::string whole = folder / "whole";
  RunOptions options;
  Disturbing data{settings.seed};
  std::optional<FileSizeLimit> full;
};

TEST_F(WaysOut, EachLeavesTheNewestWeightsAndGoesOn) {
  settings.samples = 1;
  run({.out = whole});
  std::vector<Taken> all = {
      {Way::lastStep, "all", [] {}, "", 24},
      {Way::lastStep, "a-save-on-the-way-fails",
       [&] {
         fillDiskAt(begin + 8); // of step 10
         data.atTraining[begin + 12] = [&] { full.reset(); };
       },
       "", 24},
      {Way::stopAfter, "stop-after", [&] { options.stopAfter = step; }, "", step},
      {Way::gradient, "data", [&] { data.atTraining[begin] = throws(Error("cannot read", Fault::device)); },
       "cannot read; step 7 is saved in '", step - 1},
      {Way::gradient, "later-data", [&] { data.atTraining[middle] = throws(Error("cannot read", Fault::device)); },
       "cannot read; step 7 is saved in '", step - 1},
      {Way::gradient, "memory", [&] { data.atTraining[middle] = throws(std::bad_alloc()); },
       "out of host memory; step 7 is saved in '", step - 1},
      {Way::gradient, "bug", [&] { data.atTraining[middle] = throws(std::out_of_range("vector::at")); },
       "internal error: vector::at; step 7 is saved in '", step - 1},
      {Way::update, "update",
       [&] { atUpdate({}, [](Trainer &) { throw Error("the device is gone", Fault::device); }); },
       "the device is gone; the steps after 5 are lost, and --resume continues from that one", savedBefore},
      {Way::badLoss, "gradient-is-nan",
       [&] { atUpdate([](Trainer &trainer) { fill(trainer, trainer.gradientRef(), NAN); }); },
       "expected a finite loss and gradient at step 8, but got ", step - 1},
      {Way::badLoss, "weights-are-infinite", // which are no checkpoint
       [&] { atUpdate({}, [](Trainer &trainer) { fill(trainer, trainer.weights(), INFINITY); }); },
       "expected a finite loss and gradient at step 9, but got ", savedBefore},
      {Way::evaluation, "evaluation", [&] { data.atValidation = throws(Error("expected other sequences")); },
       "expected other sequences; step 8 is saved in '", step},
      {Way::evaluation, "samples",
       [&] { samples = [](Trainer &, int64_t) -> std::vector<std::string> { throw std::bad_alloc(); }; },
       "out of host memory; step 8 is saved in '", step},
      {Way::row, "log", [&] { data.atTraining[begin] = [&] { std::filesystem::remove(options.out + "/log.jsonl"); }; },
       "expected '" + folder / "log" + "/log.jsonl' to stay in place", step},
      {Way::row, "moved",
       [&] { data.atTraining[begin] = [&] { std::filesystem::rename(options.out, folder / "elsewhere"); }; },
       "expected '" + folder / "moved" + "' to stay in place", step},
      {Way::best, "best",
       [&] {
         best = "val_loss";
         std::filesystem::create_directories(options.out + "/best/of/another");
       },
       "cannot write link '", step},
      {Way::profile, "profile",
       [&] {
         options.profile = {step, step};
         options.trace = folder / "none" + "/trace.json";
       },
       "expected to write '", step},
      {Way::save, "last-save", [&] { fillDiskAt(lastBegin); }, "cannot write", 20},
  };
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1, SIGXCPU}) {
    std::signal(signal, SIG_DFL); // tests may run under nohup
    const auto raised = [=] { std::raise(signal); };
    all.push_back(
        {Way::signal, fmt::format("signal-{}", signal), [=, this] { data.atTraining[begin] = raised; }, "", step - 1});
  }
  const auto stopsValidation = [&] { data.atValidation = [] { std::raise(SIGTERM); }; };
  all.push_back({Way::signal, "evaluating", stopsValidation, "", step});
  all.push_back({Way::signal, "evaluating-last", [&] { data.atTraining[lastBegin] = stopsValidation; }, "", 24});
  std::set<Way> taken;
  for (const Taken &one : all) {
    SCOPED_TRACE(one.name);
    const WayOut &way = wayOut(one.way);
    taken.insert(one.way);
    EXPECT_EQ(one.saved % savedBefore == 0, way.saved == Saved::newestCheckpoint || one.name == "weights-are-infinite");
    take(one);
  }
  for (const WayOut &way : waysOut())
    EXPECT_TRUE(taken.count(way.way)) << way.when;
}

// --- Signals that request a run's stop -------------------------------------------------------------------------------

/// The exit status of a process that does `action`, or 128 + the signal that ended it.
int statusOf(const std::function<int()> &action) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1, SIGXCPU})
      std::signal(signal, SIG_DFL);
    _exit(action());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Each signal sets the request and ends nothing, any number of times.
TEST(StopSignals, TheyAsk) {
  for (const int signal : {SIGTERM, SIGHUP, SIGPIPE, SIGUSR1, SIGXCPU})
    EXPECT_EQ(statusOf([&] {
                const StopSignals signals;
                const bool before = signals.asked();
                raise(signal);
                raise(signal);
                return !before && signals.asked() ? 0 : 1;
              }),
              0)
        << strsignal(signal);
}

// A second Ctrl-C, or one after another request, ends the program at once.
TEST(StopSignals, ASecondInterruptEndsAtOnce) {
  for (const int first : {SIGINT, SIGTERM})
    EXPECT_EQ(statusOf([&] {
                const StopSignals signals;
                raise(first);
                if (!signals.asked())
                  return 1;
                raise(SIGINT);
                return 0;
              }),
              128 + SIGINT)
        << strsignal(first);
}

TEST(StopSignals, IgnoredOnesStayIgnored) {
  EXPECT_EQ(statusOf([] {
              std::signal(SIGHUP, SIG_IGN);
              std::signal(SIGINT, SIG_IGN);
              const StopSignals signals;
              raise(SIGHUP);
              raise(SIGINT);
              raise(SIGINT);
              return signals.asked() ? 1 : 0;
            }),
            0);
}

// Programs ignore SIGPIPE from their start; during a run it is a request to stop.
TEST(StopSignals, AReaderThatWentAwayAsks) {
  EXPECT_EQ(statusOf([] {
              std::signal(SIGPIPE, SIG_IGN);
              const StopSignals signals;
              raise(SIGPIPE);
              return signals.asked() ? 0 : 1;
            }),
            0);
}

TEST(StopSignals, AfterwardsTheyEndAProgramAgain) {
  EXPECT_EQ(statusOf([] {
              {
                const StopSignals signals;
              }
              raise(SIGTERM);
              return 0;
            }),
            128 + SIGTERM);
}

// A SIGCONT from a rank's parent is a request, because an interrupted mpirun sends one. From other processes it only
// continues a stopped rank.
TEST(StopSignals, RanksNoteTheirParentsSigcont) {
  EXPECT_EQ(statusOf([] {
              const StopSignals signals(true);
              raise(SIGCONT);
              return signals.asked() ? 1 : 0;
            }),
            0);
  const pid_t child = fork();
  if (child == 0) {
    const StopSignals signals(true);
    while (!signals.asked())
      usleep(1000);
    _exit(7);
  }
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    kill(child, SIGCONT);
    usleep(1000);
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

} // namespace
