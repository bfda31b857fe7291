// `gpt2 train` in bf16 and fp16, as a user runs it: exact resuming as in fp32, changes of type, and overflowing
// gradients.

#include "models/gpt2/network.h"
#include "models/train/checkpoint.h"
#include "test/models/gpt2/program.h"

#include <algorithm>
#include <cmath>

namespace {

/// Flags of one kind of training.
struct Way {
  const char *name;
  std::vector<std::string> flags;
};
void PrintTo(const Way &way, std::ostream *out) { *out << way.name; }

class DtypeTest : public ProgramTest {
protected:
  static std::string checkpoint(const std::string &run, int64_t step) { return kiln::checkpointPath(run, step); }
  Result resume(const std::vector<std::string> &more = {}) {
    return gpt2(
        joined({"train", "--data", data, "--out", out, "--resume", "--device", kiln::test::firstDevice()}, more));
  }
};

class EveryWay : public DtypeTest, public testing::WithParamInterface<Way> {
protected:
  std::vector<std::string> with(const std::vector<std::string> &more) const { return joined(more, GetParam().flags); }
};

// The loss decreases in every type of computation.
TEST_P(EveryWay, Learns) {
  const Result r = train(out, with({"--steps", "60", "--lr", "0.01", "--evaluate-every", "30"}));
  ASSERT_EQ(r.status, 0) << r.output;
  EXPECT_LT(rows(out).back().at("val_loss").get<double>(), rows(out).front().at("loss").get<double>() - 1);
}

// Twelve steps, and five and then seven more, save equal bytes: weights, masters, moments, the loss scale.
TEST_P(EveryWay, ResumingIsExact) {
  const std::vector<std::string> words = with({"--steps", "12", "--accumulate", "2"});
  ASSERT_EQ(train(folder / "whole", words).status, 0);
  ASSERT_EQ(train(out, joined(words, {"--stop-after", "5"})).status, 0);
  expectResult(resume(), 0);
  expectSameFiles(checkpoint(folder / "whole", 12), checkpoint(out, 12));
}

// One seed gives one result, with one thread and with two.
TEST_P(EveryWay, DoesNotDependOnTheThreads) {
  for (const char *threads : {"1", "2"})
    ASSERT_EQ(train(folder / threads, with({"--steps", "5", "--threads", threads})).status, 0);
  expectSameFiles(checkpoint(folder / "1", 5), checkpoint(folder / "2", 5));
}

INSTANTIATE_TEST_SUITE_P(
    Ways, EveryWay,
    testing::Values(Way{"bf16", {"--dtype", "bf16"}}, Way{"bf16_saved", {"--dtype", "bf16", "--save-dtype", "bf16"}},
                    Way{"bf16_alone", {"--dtype", "bf16", "--master", "0", "--rounding", "stochastic"}},
                    Way{"dropout", {"--dropout", "0.1", "--dropout-activation", "0.2", "--dropout-attention", "0.1"}},
                    Way{"bf16_dropout",
                        {"--dtype", "bf16", "--dropout", "0.1", "--dropout-attention", "0.1", "--dropout-kind",
                         "plain"}},
                    Way{"fp16", {"--dtype", "fp16", "--scale-window", "3"}},
                    Way{"fp16_too_high", {"--dtype", "fp16", "--loss-scale", "16777216"}},
                    Way{"fp16_alone", {"--dtype", "fp16", "--master", "0", "--rounding", "stochastic"}}),
    [](const auto &info) { return info.param.name; });

// A checkpoint of fp32 continues in bf16 and then in fp16, which a message and the log report. With f32 masters no
// digits are lost.
TEST_F(DtypeTest, ACheckpointGoesOnInAnotherType) {
  ASSERT_EQ(train(out, {"--steps", "12", "--stop-after", "4"}).status, 0);
  expectResult(resume({"--dtype", "bf16", "--stop-after", "8"}), 0, {"--dtype is bf16 from here on; it was fp32"});
  expectResult(resume({"--dtype", "fp16"}), 0, {"--dtype is fp16 from here on; it was bf16"});
  const std::vector<Json> log = rows(out);
  ASSERT_EQ(log.size(), 12u);
  for (const auto &[step, dtype] : {std::pair(4, "fp32"), std::pair(5, "bf16"), std::pair(9, "fp16")})
    EXPECT_EQ(log[step - 1].at("dtype"), dtype) << step;
  EXPECT_EQ(log[8].at("loss_scale"), 65536);
}

// Initial weights are rounded to the run's type: not at all with masters, and to nearest without. A learning rate of
// 10⁻³⁰ changes neither.
TEST_F(DtypeTest, BeginsWithWeightsOfAnotherType) {
  ASSERT_EQ(train(out, {"--steps", "2"}).status, 0);
  const kiln::Network network({1, 2, 16, 8, 256});
  const auto valuesOf = [&](const std::string &run, int64_t step, kiln::Type type) {
    return kiln::readBuffers(checkpoint(run, step), network, type).values;
  };
  for (const char *master : {"1", "0"}) {
    const Result r =
        train(folder / master, {"--steps", "1", "--lr", "1e-30", "--dtype", "bf16", "--master", master, "--init", out});
    ASSERT_EQ(r.status, 0) << r.output;
    const kiln::Type kept = *master == '1' ? kiln::f32 : kiln::bf16;
    EXPECT_TRUE(valuesOf(folder / master, 1, kept) == valuesOf(out, 2, kept)) << master;
  }
}

// A model trained in one type samples in any type.
TEST_F(DtypeTest, SamplesInEachType) {
  ASSERT_EQ(train(out, {"--steps", "2", "--dtype", "bf16"}).status, 0);
  for (const char *dtype : {"fp32", "bf16", "fp16"}) {
    const Result r = gpt2({"sample", "--out", out, "--prompt", "line ", "--tokens", "4", "--dtype", dtype, "--device",
                           kiln::test::firstDevice()});
    EXPECT_EQ(r.status, 0) << r.output;
    EXPECT_EQ(r.output.size(), 5u + 4 + 1) << dtype;
  }
}

// In narrow types, the plan has masters of four bytes and weights of two, unless there are no masters.
TEST_F(DtypeTest, InfoCountsMasters) {
  const auto info = [&](const std::vector<std::string> &more) {
    return gpt2(joined({"info", "--device", kiln::test::firstDevice()}, more));
  };
  expectResult(info({"--dtype", "bf16"}), 0, {"weights          1.59 MiB  (bf16)\n  master           3.18 MiB"});
  for (const std::vector<std::string> &flags :
       {std::vector<std::string>{}, std::vector<std::string>{"--dtype", "bf16", "--master", "0"}})
    EXPECT_EQ(info(flags).output.find("masters"), std::string::npos);
}

// Runs are drawn from their logs, each by its folder's name.
TEST_F(DtypeTest, PlotDrawsRuns) {
  for (const char *dtype : {"fp32", "bf16"})
    ASSERT_EQ(train(folder / dtype, {"--steps", "3", "--dtype", dtype}).status, 0);
  const Result r = gpt2({"plot", folder / "fp32", folder / "bf16", "-o", folder / "losses.svg"});
  ASSERT_EQ(r.status, 0) << r.output;
  const std::string picture = readText(folder / "losses.svg");
  for (const char *name : {">fp32 ", ">bf16 ", "less that of fp32<"})
    EXPECT_NE(picture.find(name), std::string::npos) << name;
  expectResult(gpt2({"plot", folder / "none", "-o", folder / "other.svg"}), 2);
}

// A loss scale that is far too high is halved until gradients are finite. Each of those steps is reported and logged,
// and is no update. Later losses equal those of a run with the final scale.
TEST_F(DtypeTest, AScaleThatIsTooHighRecovers) {
  expectResult(train(out, {"--steps", "80", "--lr", "0.01", "--dtype", "fp16", "--loss-scale", "16777216"}), 0,
               {"step 1 is skipped: its gradient overflows with the loss times 16777216; 8388608 is next"});
  const std::vector<Json> log = rows(out);
  double scale = 16777216;
  size_t skipped = 0;
  for (const Json &row : log) {
    EXPECT_EQ(row.at("loss_scale"), scale);
    scale /= row.at("skipped").get<bool>() ? 2 : 1;
    skipped += row.at("skipped").get<bool>();
  }
  EXPECT_GT(skipped, 0u);
  EXPECT_LT(skipped, 24u);
  const Json state = Json::parse(readText(checkpoint(out, 80) + "/training.json"));
  EXPECT_EQ(state.at("updates"), 80 - skipped);
  EXPECT_EQ(state.at("loss_scale").at("scale"), scale);
  EXPECT_LT(log.back().at("loss").get<double>(), log.front().at("loss").get<double>() - 1);
}

// Skipped steps change no weight and no moment. The first applied step is AdamW's first: its bias corrections move each
// weight with a gradient by the learning rate. If skipped steps counted, it would move by half of that or less.
TEST_F(DtypeTest, SkippedStepsAreNoUpdates) {
  ASSERT_EQ(train(out, {"--steps", "20", "--lr", "0.01", "--final-lr", "1", "--warmup", "0", "--decay", "0", "--dtype",
                        "fp16", "--loss-scale", "16777216", "--save-every", "1", "--keep", "20"})
                .status,
            0);
  int64_t first = 1; // the first step that is no skipped one
  for (const Json &row : rows(out))
    if (row.at("skipped").get<bool>())
      first = row.at("step").get<int64_t>() + 1;
    else
      break;
  ASSERT_GT(first, 4);
  const kiln::Network network({1, 2, 16, 8, 256});
  const auto at = [&](int64_t step) { return kiln::readBuffers(checkpoint(out, step), network); };
  const kiln::HostBuffers begin = at(1), before = at(first - 1), after = at(first);
  EXPECT_TRUE(before.values == begin.values);
  EXPECT_EQ(before.first, std::vector<float>(before.first.size()));
  double furthest = 0;
  for (size_t i = 0; i < after.first.size(); ++i) {
    const auto value = [&](const kiln::HostBuffers &b) { return reinterpret_cast<const float *>(b.values.data())[i]; };
    furthest = std::max(furthest, std::abs(static_cast<double>(value(after)) - value(before)));
  }
  EXPECT_NEAR(furthest, 0.01, 1e-5);
}

// The gradients of a step of 131072 tokens are so small that fp16 loses most of them. With the scale fixed at 1 that
// happens, and the loss decreases less.
TEST_F(DtypeTest, AScaleHeldAtOneIsWorse) {
  const auto last = [&](const std::vector<std::string> &flags) {
    expectResult(train(out, joined({"--steps", "10", "--lr", "0.01", "--batch", "256", "--accumulate", "64", "--dtype",
                                    "fp16", "--overwrite"},
                                   flags)),
                 0);
    return rows(out).back().at("loss").get<double>();
  };
  EXPECT_GT(last({"--loss-scale", "1", "--scale-window", "0"}), last({}) + 0.1);
}

// A simulated GPU, which reports every error of a kernel, trains in narrow types like the CPU in fp32: losses differ by
// less than a fiftieth.
TEST_F(DtypeTest, ASimulatedGpuTrainsAsTheCpu) {
  const auto losses = [&](const std::vector<std::string> &more) {
    expectResult(train(out, joined({"--steps", "3", "--lr", "0.01", "--overwrite", "--device"}, more)), 0);
    return rows(out);
  };
  const std::vector<Json> want = losses({"cpu"});
  for (const char *dtype : {"bf16", "fp16"}) {
    const std::vector<Json> got = losses({"simulator:sm_80", "--dtype", dtype});
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(got[i].at("loss").get<double>(), want[i].at("loss").get<double>(),
                  0.02 * want[i].at("loss").get<double>())
          << dtype << " " << i;
  }
}

} // namespace
