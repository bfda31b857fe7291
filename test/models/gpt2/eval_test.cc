// HellaSwag's tasks, losses of single tokens, and the results computed from them.

#include "models/generate/generator.h"
#include "models/gpt2/eval.h"
#include "models/train/evaluation.h"
#include "test/devices.h"
#include "test/expect_error.h"
#include "test/models/gpt2/program.h"
#include "test/models/gpt2/reference.h"
#include "test/paths.h"
#include "test/temporary_folder.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

using namespace kiln;
using namespace kiln::test;

namespace {

const std::string two = "A: one\n2\na\nb\nc\nd\nB: two\r\n0\r\ne\nf\ng\nh";

// Lines with either kind of line end, and JSON lines, give equal tasks.
TEST(HellaSwag, ReadsLinesAndJson) {
  const TemporaryFolder folder;
  writeText(folder / "x.txt", two);
  writeText(folder / "x.jsonl", R"({"ctx": "A: one", "label": "2", "endings": ["a", "b", "c", "d"]})"
                                "\n"
                                R"({"ind": 7, "ctx": "B: two", "label": 0, "endings": ["e", "f", "g", "h"]})"
                                "\n");
  for (const char *name : {"x.txt", "x.jsonl"}) {
    const std::vector<HellaSwagTask> tasks = readHellaSwag(folder / name);
    ASSERT_EQ(tasks.size(), 2u);
    EXPECT_EQ(tasks[0].context, "A: one");
    EXPECT_EQ(tasks[0].endings, (std::array<std::string, 4>{"a", "b", "c", "d"}));
    EXPECT_EQ(tasks[0].right, 2);
    EXPECT_EQ(tasks[1].context, "B: two");
    EXPECT_EQ(tasks[1].endings[3], "h");
    EXPECT_EQ(tasks[1].right, 0);
  }
}

TEST(HellaSwag, FilesThatAreNoneAreErrors) {
  const TemporaryFolder folder;
  const std::string lines = folder / "x.txt", json = folder / "x.jsonl";
  writeText(lines, two + "\nmore\n");
  expectError([&] { readHellaSwag(lines); }, {"expected 6 lines for each task of '" + lines + "', but got 13 lines"});
  writeText(lines, "A\n4\na\nb\nc\nd\n");
  expectError([&] { readHellaSwag(lines); },
              {"the right ending's number, from 0 to 3, in " + lines + ":2, but got '4'"});
  writeText(lines, "");
  expectError([&] { readHellaSwag(lines); }, {"expected tasks in", "but there are none"});
  writeText(json, R"({"ctx": "A", "label": "1", "endings": ["a", "b", "c"]})");
  expectError([&] { readHellaSwag(json); }, {"field 'endings' in '" + json + ":1' to be a list of 4 texts"});
  writeText(json, R"({"ctx": "A", "label": "x", "endings": ["a", "b", "c", "d"]})");
  expectError([&] { readHellaSwag(json); }, {"but got 'x'"});
}

class EvalTest : public DeviceTest {
protected:
  const Network network{{1, 2, 16, 24, 256}};
  const std::vector<char> weights = randomBuffers(network.parameters(), 5).values;
  const Tokenizer bytes{byteVocabulary()};
  const std::vector<HellaSwagTask> tasks = {
      {"to be", {"or not", "x", "to be to be", "ab"}, 1},
      {"a", {"b", "cc", "ddd", "eeee"}, 0},
      {"this context is longer than all that is seen", {"a", "b", "not to be", "d"}, 2}};
};

// A hit is a target that is the most likely token. A loss is its negative logarithm. Both agree with the
// logits of generation.
TEST_P(EvalTest, LossesAndHitsAreThoseOfThePrediction) {
  Evaluator evaluator(Device::open(GetParam()), network, weights, 1);
  const std::shared_ptr<Device> device = Device::open(GetParam());
  const Tensor onDevice = uploaded(device, network, weights);
  Generator generator(device, network, onDevice, {});
  Batch batch = randomBatch(network.config(), 1, 3);
  std::vector<int32_t> likeliest;
  std::vector<double> losses;
  for (int64_t t = 0; t < 24; ++t) {
    generator.append(0, std::span(batch.tokens).subspan(t, 1));
    const std::vector<float> logits = generator.next()[0];
    const auto top = std::max_element(logits.begin(), logits.end());
    if (t % 2)
      batch.targets[t] = static_cast<int32_t>(top - logits.begin());
    if (t % 5 == 4)
      batch.targets[t] = ignoredTarget;
    double sum = 0;
    for (const float x : logits)
      sum += std::exp(double(x) - *top);
    losses.push_back(t % 5 == 4 ? 0 : std::log(sum) + *top - logits[batch.targets[t]]);
  }
  const Evaluator::Result result = evaluator.evaluate(makeInputs(batch));
  for (int64_t t = 0; t < 24; ++t) {
    EXPECT_NEAR(result.losses[t], losses[t], 1e-4) << t;
    if (t % 2 || t % 5 == 4) {
      EXPECT_EQ(result.hits[t], t % 5 != 4) << t;
    }
  }
}

// An ending's score is the loss of its own tokens after the context, for any other rows in the batch and any padding.
// The beginning of a context that is too long is dropped.
TEST_P(EvalTest, EndingsAreScoredBehindTheirContext) {
  Evaluator evaluator(Device::open(GetParam()), network, weights, 8),
      alone(Device::open(GetParam()), network, weights, 4);
  const std::shared_ptr<Device> device = Device::open(GetParam());
  const Tensor onDevice = uploaded(device, network, weights);
  Generator generator(device, network, onDevice, {});
  const HellaSwagScore score = scoreHellaSwag(evaluator, bytes, tasks);
  ASSERT_EQ(score.sums.size(), tasks.size());
  EXPECT_EQ(score.tasks, 3);
  int64_t bySum = 0, byMean = 0;
  for (size_t t = 0; t < tasks.size(); ++t) {
    std::array<double, 4> sums = {}, means = {};
    for (size_t e = 0; e < 4; ++e) {
      const std::string ending = " " + tasks[t].endings[e], all = tasks[t].context + ending;
      const std::string seen = all.substr(all.size() - std::min<size_t>(all.size(), 25));
      for (size_t at = seen.size() - ending.size(); at < seen.size(); ++at) {
        generator.clear(0);
        generator.append(0, std::vector<int32_t>(seen.begin(), seen.begin() + static_cast<int64_t>(at)));
        const std::vector<float> logits = generator.next()[0];
        double sum = 0;
        for (const float x : logits)
          sum += std::exp(double(x));
        sums[e] += std::log(sum) - logits[static_cast<uint8_t>(seen[at])];
      }
      means[e] = sums[e] / static_cast<double>(ending.size());
      EXPECT_NEAR(score.sums[t][e], sums[e], 1e-4 * sums[e]) << t << " " << e;
    }
    bySum += std::min_element(sums.begin(), sums.end()) - sums.begin() == tasks[t].right;
    byMean += std::min_element(means.begin(), means.end()) - means.begin() == tasks[t].right;
  }
  EXPECT_EQ(score.bySum, bySum);
  EXPECT_EQ(score.byMean, byMean);
  const std::string lines = formatScores(score);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 3);
  const nlohmann::json last = nlohmann::json::parse(lines.substr(lines.rfind('\n', lines.size() - 2)));
  EXPECT_EQ(last["sums"], nlohmann::json(score.sums[2]));
  EXPECT_EQ(last["tokens"], nlohmann::json({2, 2, 10, 2}));
  const HellaSwagScore same = scoreHellaSwag(alone, bytes, tasks);
  for (size_t t = 0; t < tasks.size(); ++t)
    for (size_t e = 0; e < 4; ++e)
      EXPECT_NEAR(same.sums[t][e], score.sums[t][e], 1e-5 * score.sums[t][e]);
}

// An ending that is longer than the context is judged by its last tokens, and counted; a task without a context has
// nothing to begin with.
TEST_P(EvalTest, EndingsThatDoNotFitAreCut) {
  Evaluator evaluator(Device::open(GetParam()), network, weights, 4);
  const std::string end = "of a long ending of all", longer = "something at the beginning " + end;
  const HellaSwagScore score =
      scoreHellaSwag(evaluator, bytes, {{"a", {"b", longer, "d", "e"}, 0}, {"", {"b", "c", "d", "e"}, 0}});
  EXPECT_EQ(score.tasks, 1);
  EXPECT_EQ(score.cut, 1);
  EXPECT_EQ(score.skipped, 1);
  // 25 bytes are seen. The first has no loss: it is the context of the others.
  const std::string seen = (" " + longer).substr(longer.size() + 1 - 25);
  ASSERT_EQ(seen[1], ' ');
  const HellaSwagScore same =
      scoreHellaSwag(evaluator, bytes, {{seen.substr(0, 1), {"b", seen.substr(2), "d", "e"}, 0}});
  EXPECT_EQ(same.cut, 0);
  EXPECT_EQ(score.sums[0][1], same.sums[0][1]);
}

/// Numbers in [−scale, scale) as test/oracles/hellaswag.py draws them.
std::vector<float> drawn(const std::string &name, int64_t count, double scale) {
  uint32_t state = 0x811c9dc5;
  for (const char byte : name)
    state = (state ^ static_cast<uint8_t>(byte)) * 0x01000193;
  std::vector<float> numbers;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 1664525 + 1013904223;
    numbers.push_back(static_cast<float>(((state >> 8) / 0x1p23 - 1) * scale));
  }
  return numbers;
}

// Sums of losses equal those of Hugging Face's GPT-2 with these weights. So does each answer whose score differs from
// the others' by more than 1e-4, a sum of f32 roundings.
TEST_P(EvalTest, ScoresAreHuggingFaces) {
  const Network tiny({2, 2, 16, 48, 256});
  std::vector<float> values(tiny.parameters().count());
  for (const Parameter &p : tiny.parameters().all()) {
    const std::vector<float> numbers = drawn(p.name, p.count(), 0.4);
    const bool isGain = p.name.find("ln_") != std::string::npos && p.name.ends_with("weight");
    std::transform(numbers.begin(), numbers.end(), values.begin() + p.offset, [&](float x) { return x + isGain; });
  }
  std::vector<char> raw(values.size() * sizeof(float));
  std::memcpy(raw.data(), values.data(), raw.size());
  const nlohmann::json golden =
      nlohmann::json::parse(readText(kiln::test::sourcePath("test/models/gpt2/hellaswag.json")));
  std::vector<HellaSwagTask> all;
  for (const auto &task : golden["tasks"])
    all.push_back({task["ctx"], task["endings"], task["label"]});
  Evaluator evaluator(Device::open(GetParam()), tiny, raw, 8);
  const HellaSwagScore score = scoreHellaSwag(evaluator, bytes, all);
  ASSERT_EQ(score.sums.size(), all.size());
  EXPECT_EQ(score.cut, 1);
  for (size_t t = 0; t < all.size(); ++t) {
    const std::array<double, 4> want = golden["tasks"][t]["sums"], judged = golden["tasks"][t]["judged"];
    for (const bool byMean : {false, true}) {
      std::array<double, 4> theirs = {}, ours = {};
      for (size_t e = 0; e < 4; ++e) {
        EXPECT_NEAR(score.sums[t][e], want[e], 1e-5 * want[e]) << t << " " << e;
        theirs[e] = want[e] / (byMean ? judged[e] : 1);
        ours[e] = score.sums[t][e] / (byMean ? judged[e] : 1);
      }
      const auto answer = std::min_element(theirs.begin(), theirs.end());
      const bool isApart =
          std::count_if(theirs.begin(), theirs.end(), [&](double x) { return x < *answer + 1e-4; }) == 1;
      if (isApart) {
        EXPECT_EQ(std::min_element(ours.begin(), ours.end()) - ours.begin(), answer - theirs.begin()) << t;
      }
    }
  }
}

KILN_ON_DEVICES(EvalTest);

// --- Evaluations other than a run's losses: gradient norms by part, samples, accuracy, and the comparison of devices -

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

class ComparisonTest : public ProgramTest {
protected:
  /// `gpt2 test` of a small model, with these flags.
  Result compare(std::vector<std::string> flags) const {
    flags.insert(flags.begin(), {"test", "--layers", "1", "--heads", "2", "--width", "32", "--context", "16"});
    return gpt2(flags);
  }
};

// The bound is that of the device that rounds more, whichever is compared with the other: a GPU rounds products to
// tf32.
TEST_F(ComparisonTest, TheBoundIsOfBothDevices) {
  expectResult(compare({"--device", "cpu", "--against", "simulator:sm_80"}), 0, {"4.88e-03", "all are within"});
  expectResult(compare({"--device", "simulator:sm_80", "--against", "cpu"}), 0, {"4.88e-03", "all are within"});
}

// Gradients agree with differences of the loss, which narrow types do not resolve.
TEST_F(ComparisonTest, GradientsAreComparedWithDifferences) {
  expectResult(compare({"--device", firstDevice(), "--against", "differences"}), 0,
               {"gradients of '", "wte.weight", "h.0.mlp.c_fc.bias", "all are within"});
  expectMistake(compare({"--against", "differences", "--dtype", "bf16"}),
                "expected '--dtype' fp32 for differences of the loss, but got bf16");
}

} // namespace
