// Evaluations other than a run's losses: gradient norms by part, samples, accuracy, and the comparison of devices.

#include "models/train/evaluation.h"
#include "test/devices.h"
#include "test/models/gpt2/program.h"
#include "test/models/gpt2/reference.h"

#include <set>

using namespace kiln;
using namespace kiln::test;

namespace {

class GroupNormsOfAModel : public DeviceTest {};

// Groups are the tables, each block and the last norm. Each norm is that of the group's gradients without the loss
// scale. Their squares add up to the square of the step's norm.
TEST_P(GroupNormsOfAModel, AddUpToTheStepsNorm) {
  for (const Type type : {f32, f16}) {
    Gpt2Config config = {2, 2, 16, 8, 32};
    config.type = type;
    const Network network(config);
    TrainSettings settings = chooseSettings(2);
    settings.type = type;
    settings.lossScale = 256;
    Trainer trainer(Device::open(GetParam()), network, settings);
    trainer.initialize(3);
    trainer.beginStep(1e-3, 1);
    trainer.addGradient(makeInputs(randomBatch(config, 2, 5)), 0);
    const std::vector<float> gradients = trainer.gradients();
    const StepResult result = trainer.update();
    GradientNorms groups(trainer);
    EXPECT_EQ(groups.names(), (std::vector<std::string>{"wte", "wpe", "h.0", "h.1", "ln_f"}));
    const std::vector<double> norms = groups.norms();
    double all = 0;
    for (size_t i = 0; i < norms.size(); ++i) {
      double want = 0;
      for (const Parameter &p : network.parameters().all())
        if (p.name.starts_with(groups.names()[i] + "."))
          want += std::pow(kiln::test::norm(part(gradients.data(), p)) / result.lossScale, 2);
      EXPECT_NEAR(norms[i], std::sqrt(want), 1e-6 * std::sqrt(want)) << groups.names()[i];
      all += norms[i] * norms[i];
    }
    EXPECT_NEAR(all, result.gradientNorm * result.gradientNorm, 1e-6 * all);
  }
}

KILN_ON_DEVICES(GroupNormsOfAModel);

class LooksTest : public ProgramTest {};

// Rows have the requested fields at the requested steps, and the run has the bits of a run without them.
TEST_F(LooksTest, AreInTheLogWhereTheyAreAskedFor) {
  const std::string plain = folder / "plain";
  const std::vector<std::string> words = {"--steps", "4", "--evaluate-every", "2"};
  const std::vector<std::string> more = joined(words, {"--samples", "2", "--gradient-norms", "3"});
  const Result r = train(out, more);
  ASSERT_EQ(r.status, 0) << r.output;
  EXPECT_NE(r.output.find("sample_1: "), std::string::npos) << r.output;
  ASSERT_EQ(train(plain, words).status, 0);
  const std::vector<Json> got = rows(out), without = rows(plain);
  ASSERT_EQ(got.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const bool evaluates = i % 2 == 1;
    for (const char *tag : {"sample_0", "sample_1", "val_loss", "val_accuracy"})
      EXPECT_EQ(got[i].contains(tag), evaluates) << i << " " << tag;
    for (const char *tag : {"grad_norm_wte", "grad_norm_h.0", "grad_norm_ln_f"})
      EXPECT_EQ(got[i].contains(tag), i == 2) << i << " " << tag;
    EXPECT_FALSE(without[i].contains("sample_0") || without[i].contains("grad_norm_wte"));
    EXPECT_EQ(got[i]["loss"], without[i]["loss"]);
    EXPECT_EQ(got[i]["grad_norm"], without[i]["grad_norm"]);
  }
  EXPECT_GE(got[3]["val_accuracy"].get<double>(), 0);
  EXPECT_LT(got[3]["val_accuracy"].get<double>(), 1);
  EXPECT_NE(got[1]["sample_0"].get<std::string>().find("→"), std::string::npos);
}

// Two devices are compared tensor by tensor; differences within the bounds are no error.
TEST_F(LooksTest, DevicesAreCompared) {
  for (const char *type : {"fp32", "bf16"}) {
    const Result r = gpt2({"test", "--device", firstDevice(), "--layers", "1", "--heads", "2", "--width", "32",
                           "--context", "16", "--dtype", type});
    EXPECT_EQ(r.status, 0) << r.output;
    for (const char *name : {"logits", "loss", "wte.weight", "h.0.attn.c_attn.weight", "ln_f.bias", "all are within"})
      EXPECT_NE(r.output.find(name), std::string::npos) << r.output;
    EXPECT_EQ(r.output.find("beyond"), std::string::npos);
  }
  EXPECT_EQ(gpt2({"test", "--batch", "0"}).status, 2);
}

} // namespace
