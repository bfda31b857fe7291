// Observing a run: the results of profiles, logs for other programs, and outliers; the run itself does not change.

#include "models/gpt2/network.h"
#include "models/observe/profiler.h"
#include "models/observe/trace.h"
#include "models/train/checkpoint.h"
#include "test/devices.h"
#include "test/models/gpt2/program.h"
#include "test/models/gpt2/reference.h"
#include "test/models/observe/trace_format.h"
#include "test/paths.h"

#include <set>

using namespace kiln;
using namespace kiln::test;

namespace {

class ProfilerTest : public DeviceTest {
protected:
  /// The weights after three steps of two micro-batches; the last two steps are profiled if `watched`.
  std::vector<char> weightsAfterSteps(std::vector<Stretch> *watched) {
    const Gpt2Config config = {2, 2, 16, 8, 32};
    const Network network(config);
    Trainer trainer(Device::open(GetParam()), network, chooseSettings(2, 2));
    trainer.initialize(3);
    std::optional<Profiler> profiler;
    for (int64_t step = 1; step <= 3; ++step) {
      if (watched && step == 2)
        profiler.emplace(trainer);
      Profiler *const current = profiler ? &*profiler : nullptr;
      noted(current, Track::host, "step " + std::to_string(step), [&] {
        trainer.beginStep(1e-2, step);
        for (int64_t micro = 0; micro < 2; ++micro) {
          const HostBatch batch =
              noted(current, Track::data, "batch", [&] { return randomTokens(config, 2, 2 * step + micro); });
          noted(current, Track::host, "gradient", [&] { trainer.addGradient(batch, micro); });
        }
        return noted(current, Track::host, "update", [&] { return trainer.update(); });
      });
      if (profiler)
        profiler->endStep();
    }
    if (watched)
      *watched = profiler->stretches();
    return trainer.download().values;
  }
};

// A profiled run has the bits of an unprofiled one. Its launches follow each other within their step, with the plan's
// labels and kernels, and GEMMs with their operations.
TEST_P(ProfilerTest, SeesEveryLaunchAndChangesNothing) {
  std::vector<Stretch> stretches;
  const std::vector<char> watched = weightsAfterSteps(&stretches);
  EXPECT_EQ(weightsAfterSteps(nullptr), watched);
  std::vector<const Stretch *> steps, launches;
  std::set<std::string> labels;
  for (const Stretch &s : stretches) {
    EXPECT_GE(s.seconds(), 0) << s.name;
    if (s.track == Track::host && s.name.starts_with("step "))
      steps.push_back(&s);
    if (s.track != Track::device)
      continue;
    if (!launches.empty()) {
      EXPECT_GE(s.begin, launches.back()->end - 1e-6) << s.name << " " << s.kind;
    }
    launches.push_back(&s);
    labels.insert(s.name);
    EXPECT_GT(s.bytes, 0) << s.name;
    EXPECT_FALSE(s.shapes.empty() || s.kind.empty()) << s.name;
  }
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0]->name, "step 2");
  size_t within = 0;
  for (const Stretch *launch : launches)
    for (const Stretch *step : steps)
      within += launch->begin >= step->begin && launch->end <= step->end + 1e-6;
  EXPECT_EQ(within, launches.size());
  for (const char *label : {"update", "gradient norm", "loss"})
    EXPECT_TRUE(labels.contains(label)) << label;
  double flops = 0;
  for (const Stretch *launch : launches)
    flops += launch->flops;
  EXPECT_GT(flops, 1000);
  const size_t each = launches.size() / 2; // both steps have the same launches
  for (size_t i = 0; i < each; ++i)
    EXPECT_EQ(launches[i]->name, launches[each + i]->name);
}

KILN_ON_DEVICES_AND_DRIVER(ProfilerTest);

class ObserveTest : public ProgramTest {};

// A run that takes none of the steps says so. One that took some says nothing about the others.
TEST_F(ObserveTest, SaysThatNoStepWasProfiled) {
  const std::string words = "nothing is profiled: expected to take one of steps 9 to 12, but the run ends at step 2";
  const Result r = train(out, {"--steps", "2", "--profile", "9:12"});
  ASSERT_EQ(r.status, 0) << r.output;
  EXPECT_NE(r.output.find(words), std::string::npos) << r.output;
  const Result one = train(folder / "one", {"--steps", "3", "--profile", "2"});
  ASSERT_EQ(one.status, 0) << one.output;
  EXPECT_EQ(one.output.find("nothing is profiled"), std::string::npos) << one.output;
  EXPECT_NE(one.output.find("trace-2-2.json"), std::string::npos) << one.output;
}

// Steps 2 and 3 of a run: tables in its output, a trace in its folder, and the bits of an unprofiled run.
TEST_F(ObserveTest, ProfilesStepsOfARun) {
  const std::string plain = folder / "plain";
  const Result r = train(out, {"--steps", "4", "--profile", "2:3", "--accumulate", "2"});
  ASSERT_EQ(r.status, 0) << r.output;
  ASSERT_EQ(train(plain, {"--steps", "4", "--accumulate", "2"}).status, 0);
  EXPECT_EQ(readText(out + "/checkpoint-00000004/model.safetensors"),
            readText(plain + "/checkpoint-00000004/model.safetensors"));
  EXPECT_NE(r.output.find("2 steps on "), std::string::npos) << r.output;
  const Json trace = Json::parse(readText(out + "/trace-2-3.json"));
  expectTraceFormat(trace);
  int steps = 0, batches = 0, updates = 0;
  for (const Json &event : trace.at("traceEvents")) {
    steps += event.at("name") == "step 2" || event.at("name") == "step 3";
    batches += event.at("name") == "batch";
    updates += event.value("cat", "") == "adamw";
  }
  EXPECT_EQ(steps, 2);
  EXPECT_EQ(batches, 4);
  EXPECT_EQ(updates, 2);
}

// A run that ends before the last of the steps writes those that it took, to the given path.
TEST_F(ObserveTest, ProfilesToTheEndOfARun) {
  const std::string trace = folder / "trace.json";
  const Result r = train(out, {"--steps", "4", "--stop-after", "2", "--profile", "2:90", "--trace", trace});
  ASSERT_EQ(r.status, 0) << r.output;
  EXPECT_NE(r.output.find("1 step on "), std::string::npos) << r.output;
  EXPECT_EQ(Json::parse(readText(trace)).at("displayTimeUnit"), "ms");
}

// `profile`, on each device: the table's sum by kernel equals its sum by label.
TEST_F(ObserveTest, ProfilesAModelWithoutData) {
  for (const std::string &device : testDevices("ObserveTest")) {
    const Result r = gpt2({"profile", "--layers", "1", "--heads", "2", "--width", "16", "--context", "8", "--vocab",
                           "32", "--batch", "2", "--steps", "2", "--trace", folder / "trace.json", "--device", device});
    ASSERT_EQ(r.status, 0) << r.output;
    EXPECT_NE(r.output.find("2 steps on " + device), std::string::npos) << r.output;
    std::vector<std::string> sums;
    std::istringstream lines(r.output);
    for (std::string line; std::getline(lines, line);)
      if (line.ends_with("  all launches"))
        sums.push_back(line);
    ASSERT_EQ(sums.size(), 2u) << r.output;
    EXPECT_EQ(sums[0], sums[1]);
    EXPECT_NE(r.output.find("  block 0 mlp"), std::string::npos) << r.output;
    expectTraceFormat(Json::parse(readText(folder / "trace.json")));
  }
}

// main.log and events next to the log, and a curve at the end; a resumed run continues them.
TEST_F(ObserveTest, LogsForOtherPrograms) {
  const std::string events = folder / "events";
  const std::vector<std::string> more = {"--tensorboard", events, "--main-log", "--curve"};
  const std::vector<std::string> words = joined({"--steps", "4", "--stop-after", "2", "--evaluate-every", "2"}, more);
  const Result r = train(out, words);
  ASSERT_EQ(r.status, 0) << r.output;
  EXPECT_NE(r.output.find("\nloss 5."), std::string::npos) << r.output;
  const std::vector<std::string> rest =
      joined({"train", "--data", data, "--out", out, "--resume", "--device", firstDevice()}, more);
  ASSERT_EQ(gpt2(rest).status, 0);
  const std::string log = readText(out + "/main.log");
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 6) << log;
  EXPECT_NE(log.find("s:3 trl:"), std::string::npos) << log;
  EXPECT_NE(log.find("s:4 tel:"), std::string::npos) << log;
  size_t files = 0;
  for (const auto &entry : std::filesystem::directory_iterator(events)) {
    ++files;
    EXPECT_NE(readText(entry.path()).find("train/loss"), std::string::npos);
  }
  EXPECT_EQ(files, 2u);
}

// A curve over seconds, or tokens, of another number than the loss.
TEST_F(ObserveTest, PlotsWhatIsAskedFor) {
  ASSERT_EQ(train(out, {"--steps", "3"}).status, 0);
  EXPECT_EQ(rows(out)[0].at("tokens").get<double>(), 32);
  for (const char *over : {"steps", "seconds", "tokens"}) {
    expectResult(gpt2({"plot", out, "-o", "-", "--tag", "grad_norm", "--over", over}), 0,
                 {std::string("grad_norm over ") + over});
  }
  const std::string picture = folder / "picture.svg";
  EXPECT_EQ(gpt2({"plot", out, "-o", picture, "--follow"}).status, 0); // which nobody writes to
  EXPECT_EQ(readText(picture), gpt2({"plot", out, "-o", "-"}).output);
}

// A picture that follows a run is updated during the run, and is complete at its end.
TEST_F(ObserveTest, PlotsFollowARun) {
  const pid_t run = startEndless();
  ASSERT_TRUE(waitForRows());
  const std::string picture = folder / "picture.svg";
  const pid_t plot =
      start({kiln::test::programPath(KILN_PROGRAM), "plot", out, "-o", picture, "--follow"}, folder / "plot-output");
  EXPECT_TRUE(waitUntil([&] { return std::filesystem::exists(picture); }));
  kill(run, SIGINT);
  EXPECT_EQ(finish(run), 0);
  EXPECT_EQ(finish(plot), 0) << readText(folder / "plot-output");
  EXPECT_EQ(readText(picture), gpt2({"plot", out, "-o", "-"}).output);
}

// Every third checkpoint is kept in addition to the newest.
TEST_F(ObserveTest, KeepsCheckpointsBesideTheNewest) {
  ASSERT_EQ(train(out, {"--steps", "8", "--save-every", "1", "--keep", "1", "--keep-every", "3"}).status, 0);
  std::set<std::string> left;
  for (const auto &entry : std::filesystem::directory_iterator(out))
    if (entry.path().filename().string().starts_with("checkpoint-"))
      left.insert(entry.path().filename());
  EXPECT_EQ(left, (std::set<std::string>{"checkpoint-00000003", "checkpoint-00000006", "checkpoint-00000008"}));
}

// From the 129th step on, steps are skipped and reported if their norm exceeds the mean of the last 128 by a tenth of
// their deviation. A resumed run has the bits of an uninterrupted one.
TEST_F(ObserveTest, LeavesOutOutliersAndResumesExactly) {
  const std::vector<std::string> flags = {"--steps", "160", "--skip-norm-z", "0.1", "--skip-loss-z", "9"};
  const std::vector<std::string> first = joined(flags, {"--stop-after", "137"});
  const Result whole = train(folder / "whole", flags);
  ASSERT_EQ(whole.status, 0) << whole.output;
  ASSERT_EQ(train(out, first).status, 0);
  ASSERT_EQ(resume().status, 0);
  for (const char *file : {"/model.safetensors", "/optimizer.safetensors", "/training.json"})
    EXPECT_TRUE(readText(folder / "whole/checkpoint-00000160" + file) == readText(out + "/checkpoint-00000160" + file))
        << file;
  const std::vector<Json> log = rows(folder / "whole"), parts = rows(out);
  ASSERT_EQ(log.size(), 160u);
  ASSERT_EQ(parts.size(), 160u);
  int skipped = 0;
  for (size_t i = 0; i < 160; ++i) {
    const double z = log[i].at("norm_z");
    EXPECT_EQ(log[i].at("skipped"), i >= 128 && z > 0.1f) << i;
    EXPECT_EQ(parts[i].at("norm_z"), log[i].at("norm_z")) << i;
    if (i < 128) {
      EXPECT_EQ(z, 0) << i;
    }
    skipped += log[i].at("skipped").get<bool>();
  }
  EXPECT_GT(skipped, 0);
  EXPECT_NE(whole.output.find("deviations above the mean of the last 128"), std::string::npos);
}

// Errors of the flags.
TEST_F(ObserveTest, SaysWhatIsWrong) {
  const auto refused = [&](const std::vector<std::string> &more, const std::string &message) {
    expectMistake(train(out, more), message);
  };
  refused({"--profile", "3:2"},
          "'3:2' is no range of steps for '--profile'; expected A:B (steps A to B, with 1 <= A <= B) or A (one step)");
  refused({"--profile", "0"}, "'0' is no range of steps for '--profile'");
  refused({"--profile", "a:2"}, "expected '--profile' to be a whole number, but got 'a'");
  refused({"--trace", "t.json"}, "--trace requires --profile A:B, the steps that it records");
  refused({"--keep-every", "-1"}, "expected '--keep-every' to be at least 0, but got -1");
  refused({"--skip-loss-z", "-1"},
          "expected '--skip-loss-z' to be 0, or below 11.2, as far as one of 128 numbers can be "
          "above their mean, but got -1");
  refused({"--skip-norm-z", "x"}, "expected '--skip-norm-z' to be a number, but got 'x'");
  expectResult(train(out, {"--steps", "1", "--tensorboard", data}), 3, {"cannot write '" + data});
  const Result steps = gpt2({"profile", "--steps", "0"});
  expectResult(steps, 2, {"expected '--steps' to be at least 1, but got 0"});
  expectMistake(gpt2({"plot", out, "-o", "-", "--over", "hours"}),
                "expected '--over' to be one of steps, seconds, tokens, but got 'hours'");
  EXPECT_NE(gpt2({"plot", out, "-o", "-", "--follow"}).output.find("--follow requires a file for --out"),
            std::string::npos);
}

} // namespace
