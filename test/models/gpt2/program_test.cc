// gpt2 as a user runs it: training, resuming, interrupting, sampling, and errors. A small model keeps each run below a
// second or two.

#include "models/data/shards.h"
#include "test/models/gpt2/program.h"
#include "test/paths.h"

#include <fmt/format.h>

#include <cstring>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

namespace {

TEST_F(ProgramTest, TrainingLogsEveryStepAndTheLossFalls) {
  const Result r = train(out, {"--steps", "60", "--lr", "0.01", "--evaluate-every", "30"});
  ASSERT_EQ(r.status, 0) << r.output;
  const std::vector<Json> log = rows(out);
  ASSERT_EQ(log.size(), 60u);
  for (const char *key : {"step", "loss", "lr", "grad_norm", "tokens_per_s"})
    EXPECT_TRUE(log[0].contains(key)) << key;
  EXPECT_TRUE(log[29].contains("val_loss"));
  EXPECT_LT(log[59].at("val_loss").get<double>(), log[0].at("loss").get<double>() - 1);
}

// Twenty steps, and ten and then ten more, save equal bytes: weights, moments and the state of the run.
TEST_F(ProgramTest, ResumingIsExact) {
  ASSERT_EQ(train(folder / "whole", {"--steps", "20", "--accumulate", "2"}).status, 0);
  const Result first = train(out, {"--steps", "20", "--accumulate", "2", "--stop-after", "10"});
  ASSERT_EQ(first.status, 0) << first.output;
  EXPECT_EQ(rows(out).size(), 10u);
  ASSERT_EQ(resume().status, 0);
  expectSameFiles(folder / "whole/checkpoint-00000020", out + "/checkpoint-00000020");
  const std::vector<Json> whole = rows(folder / "whole"), parts = rows(out);
  ASSERT_EQ(parts.size(), 20u);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(whole[i].at("loss"), parts[i].at("loss")) << i;
}

// A run's losses and norms equal recorded ones, within a unit of roundoff of the model's type, because the order of
// sums may change. Norms show the scale of the gradient, on which AdamW's updates hardly depend.
TEST_F(ProgramTest, RunsHaveTheLossesThatTheyHad) {
  struct Recorded {
    const char *dtype;
    double unit, losses[6], norms[6], validation;
  };
  const Recorded all[] = {{"fp32",
                           1e-5,
                           {5.5598607, 5.3168368, 5.1004314, 4.9459915, 4.8236914, 4.7770224},
                           {1.5293555, 1.5435640, 1.3036038, 1.2663335, 1.4217510, 1.3075945},
                           4.7672225},
                          {"bf16",
                           0x1p-8,
                           {5.5598340, 5.3187633, 5.1023984, 4.9487276, 4.8267274, 4.7775154},
                           {1.5283319, 1.5488164, 1.3016977, 1.2697103, 1.4194686, 1.3095324},
                           4.7689097},
                          {"fp16",
                           0x1p-11,
                           {5.5598693, 5.3168321, 5.1003680, 4.9459662, 4.8237572, 4.7770433},
                           {1.5295209, 1.5429201, 1.3037343, 1.2663529, 1.4217051, 1.3076302},
                           4.7672059}};
  for (const Recorded &want : all) {
    ASSERT_EQ(train(folder / want.dtype,
                    {"--steps", "6", "--accumulate", "2", "--lr", "0.01", "--dtype", want.dtype, "--precision", "ieee"})
                  .status,
              0);
    const std::vector<Json> log = rows(folder / want.dtype);
    ASSERT_EQ(log.size(), 6u);
    for (int i = 0; i < 6; ++i) {
      EXPECT_NEAR(log[i].at("loss").get<double>(), want.losses[i], want.unit * want.losses[i])
          << want.dtype << " " << i;
      EXPECT_NEAR(log[i].at("grad_norm").get<double>(), want.norms[i], want.unit * want.norms[i])
          << want.dtype << " " << i;
    }
    EXPECT_NEAR(log[5].at("val_loss").get<double>(), want.validation, want.unit * want.validation) << want.dtype;
  }
}

// `eval` has the results of the run's own evaluations, for any dropout in training; a validation file alone is
// enough, too.
TEST_F(ProgramTest, EvalHasTheRunsLoss) {
  for (const char *kind : {"plain", "inverted"}) {
    const std::string run = folder / kind;
    ASSERT_EQ(train(run, {"--steps", "5", "--dropout-embedding", "0.25", "--dropout-residual", "0.5",
                          "--dropout-activation", "0.5", "--dropout-kind", kind})
                  .status,
              0);
    const std::string want = fmt::format("loss {:.4f}, ", rows(run).back().at("val_loss").get<double>());
    EXPECT_EQ(gpt2({"eval", "--out", run, "--data", data}).output.substr(0, want.size()), want) << kind;
  }
  std::vector<int32_t> tokens;
  for (const char byte : readText(data))
    tokens.push_back(static_cast<unsigned char>(byte));
  kiln::writeShard(folder / "held.bin", tokens, 256);
  const Result alone = gpt2({"eval", "--out", folder / "plain", "--validation", folder / "held.bin"});
  ASSERT_EQ(alone.status, 0) << alone.output;
  EXPECT_NE(alone.output.find(fmt::format("over {} tokens", tokens.size() - 1)), std::string::npos) << alone.output;
  // A model of tokens without their tokenizer needs no text.
  tokens.push_back(256);
  kiln::writeShard(folder / "other.bin", tokens, 257);
  ASSERT_EQ(gpt2({"train", "--data", folder / "other.bin", "--out", out, "--model", "nano", "--vocab", "257", "--steps",
                  "1", "--warmup", "0"})
                .status,
            0);
  const Result other = gpt2({"eval", "--out", out, "--validation", folder / "other.bin"});
  EXPECT_EQ(other.status, 0) << other.output;
  for (const Result &text : {gpt2({"eval", "--out", out, "--validation", data}), gpt2({"sample", "--out", out})})
    EXPECT_NE(text.output.find("expected a vocabulary of 256 for text as bytes, but got 257"), std::string::npos)
        << text.output;
  expectMistake(gpt2({"eval", "--out", folder / "plain"}), "eval requires --data, --validation or --hellaswag");
}

// Packed texts and JSON lines are no text to train on: they are refused, with the command that makes tokens of them.
TEST_F(ProgramTest, WhatIsNoPlainTextIsRefused) {
  const auto expectRefused = [&](const std::string &path, const std::string &what, const std::string &remedy) {
    const Result r = gpt2({"train", "--data", path, "--out", out});
    expectResult(r, 2, {"'" + path + "'"});
    for (const std::string &part : {what, remedy})
      EXPECT_NE(r.output.find(part), std::string::npos) << part << " in " << r.output;
  };
  for (const auto &[name, begin] : {std::pair("t.gz", "\x1f\x8b\x08"), {"t", "BZh91AY"}, {"t.jsonl", "{}"}}) {
    writeText(folder / name, begin + std::string(1000, 'x'));
    expectRefused(folder / name, " holds ", "`tokens encode " + (folder / name));
  }
  expectRefused(kiln::test::programPath(KILN_PROGRAM), "holds a program or library (ELF)", "name a file of text");
  writeText(folder / "archive", "PK\x03\x04" + std::string(1000, 'x'));
  expectRefused(folder / "archive", "holds zip", "convert it to text in UTF-8");
  writeText(folder / "wide", "\xff\xfe" + std::string(1000, 'x'));
  expectRefused(folder / "wide", "holds UTF-16", "convert it to text in UTF-8");
  kiln::writeShard(folder / "tokens.bin", std::vector<int32_t>(1000, 1), 256);
  std::filesystem::rename(folder / "tokens.bin", folder / "tokens");
  expectRefused(folder / "tokens", "holds tokens", "files of tokens are named *.bin");
  for (const int size : {10, 2000}) {
    writeText(folder / "text.bin", std::string(size, 'x'));
    expectRefused(folder / "text.bin", "expected ", "a text has a name that does not end in .bin");
  }
}

// One seed gives one result, with one thread and with two.
TEST_F(ProgramTest, RunsOfOneSeedAreIdentical) {
  for (const char *threads : {"1", "2"})
    ASSERT_EQ(train(folder / threads, {"--steps", "5", "--threads", threads}).status, 0);
  expectSameFiles(folder / "1/checkpoint-00000005", folder / "2/checkpoint-00000005");
}

TEST_F(ProgramTest, SavesEveryNAndKeepsTheLast) {
  ASSERT_EQ(train(out, {"--steps", "10", "--save-every", "3", "--keep", "2"}).status, 0);
  EXPECT_FALSE(std::filesystem::exists(out + "/checkpoint-00000006"));
  EXPECT_TRUE(std::filesystem::exists(out + "/checkpoint-00000009"));
  EXPECT_TRUE(std::filesystem::exists(out + "/checkpoint-00000010"));
}

// A resumed run saves and keeps as the run did.
TEST_F(ProgramTest, AResumedRunKeepsAsManyCheckpoints) {
  ASSERT_EQ(train(out, {"--steps", "8", "--save-every", "2", "--keep", "3", "--stop-after", "3"}).status, 0);
  ASSERT_EQ(train(out, {"--resume"}).status, 0);
  for (const int step : {2, 3, 4, 6, 8})
    EXPECT_EQ(std::filesystem::exists(out + fmt::format("/checkpoint-{:08}", step)), step > 3) << step;
}

TEST_F(ProgramTest, SamplesFromARun) {
  ASSERT_EQ(train(out, {"--steps", "2"}).status, 0);
  const std::vector<std::string> words = {"sample",
                                          "--out",
                                          out,
                                          "--prompt",
                                          "line ",
                                          "--tokens",
                                          "20",
                                          "--seed",
                                          "3",
                                          "--device",
                                          kiln::test::firstDevice()};
  const Result once = gpt2(words), twice = gpt2(words);
  EXPECT_EQ(once.status, 0) << once.output;
  const std::string notice =
      "gpt2: a text became longer than the model's context; it continued from the last half of it\n"; // 8 tokens
  EXPECT_EQ(once.output.size(), 5u + 20 + 1 + notice.size());
  EXPECT_EQ(once.output.substr(0, 5), "line ");
  EXPECT_TRUE(once.output.ends_with("\n" + notice)) << once.output;
  EXPECT_EQ(once.output, twice.output);
}

// A picture of a run, on standard output or in a file; a device file as its output is not replaced.
TEST_F(ProgramTest, PlotWritesWhereItIsTold) {
  ASSERT_EQ(train(out, {"--steps", "2"}).status, 0);
  const Result shown = gpt2({"plot", out, "-o", "-"}), written = gpt2({"plot", out, "-o", folder / "picture.svg"});
  EXPECT_EQ(shown.status, 0) << shown.output;
  EXPECT_EQ(written.status, 0) << written.output;
  EXPECT_EQ(shown.output, readText(folder / "picture.svg"));
  ASSERT_EQ(mknod((folder / "null").c_str(), S_IFCHR | 0666, makedev(1, 3)), 0);
  EXPECT_EQ(gpt2({"plot", out, "-o", folder / "null"}).status, 0);
  EXPECT_TRUE(std::filesystem::is_character_file(folder / "null"));
}

TEST_F(ProgramTest, InfoPrintsThePlan) {
  const Result r =
      gpt2({"info", "--model", "d12", "--vocab", "50257", "--batch", "1", "--device", kiln::test::firstDevice()});
  EXPECT_EQ(r.status, 0) << r.output;
  for (const char *part : {"124439808", "activations", "workspace", "GFLOP"})
    EXPECT_NE(r.output.find(part), std::string::npos) << part << " in\n" << r.output;
}

TEST_F(ProgramTest, MistakesExitWithTwoAndSayWhatWasExpected) {
  const std::pair<std::vector<std::string>, const char *> cases[] = {
      {{"train", "--data", folder / "none", "--out", out}, "expected a text file"},
      {{"train", "--data", data, "--out", out, "--stepz", "3"}, "did you mean '--steps'?"},
      {{"train", "--data", data, "--out", out, "--model", "small"}, "did you mean 'd12'?"},
      {{"train", "--data", data, "--out", out, "--heads", "5"}, "expected the number of heads to divide the width"},
      {{"train", "--data", data, "--out", out, "--resume"}, "expected a checkpoint to resume from"},
      {{"train", "--data", data, "--out", out, "--resume", "--overwrite"},
       "--resume and --overwrite exclude each other"},
      {{"train", "--data", data, "--out", out, "--vocab", "100"}, "expected a vocabulary of 256 for text"},
      {{"train", "--data", data, "--out", out, "--context", "100000"}, "expected at least 1000010 bytes"},
      {{"sample", "--out", folder / "none"}, "expected a folder with a model"},
      {{"train", "--data", data, "--out", out, "--device", "abacus"}, "abacus"}};
  for (const auto &[words, want] : cases) {
    expectMistake(gpt2(words), want);
  }
}

// A folder with checkpoints is neither mixed with another run nor overwritten by accident.
TEST_F(ProgramTest, ANewRunDoesNotOverwriteAnOldOne) {
  ASSERT_EQ(train(out, {"--steps", "2"}).status, 0);
  expectMistake(train(out, {"--steps", "3"}), "--overwrite removes it");
  EXPECT_EQ(train(out, {"--steps", "3", "--overwrite"}).status, 0);
  EXPECT_FALSE(std::filesystem::exists(out + "/checkpoint-00000002"));
  EXPECT_EQ(rows(out).size(), 3u);
}

// Resuming with other data or another model is refused with both named.
TEST_F(ProgramTest, ResumingSomethingElseIsRefused) {
  ASSERT_EQ(train(out, {"--steps", "4", "--stop-after", "2"}).status, 0);
  writeText(folder / "other", readText(data) + "more text, so that it is another file");
  expectMistake(gpt2({"train", "--data", folder / "other", "--out", out, "--resume"}),
                "expected the data that the checkpoint was trained on");
  expectMistake(gpt2({"train", "--data", data, "--out", out, "--resume", "--width", "32"}), "width 16");
}

// On real text a few steps bring the loss well below that of guessing a byte out of 256 (5.55) or out of those that
// occur.
TEST_F(ProgramTest, LearnsRealText) {
  const char *folderOfData = std::getenv("KILN_TEST_DATA");
  const std::string real = std::string(folderOfData ? folderOfData : "") + "/tinyshakespeare.txt";
  if (!folderOfData || !std::filesystem::exists(real))
    GTEST_SKIP() << "KILN_TEST_DATA names no folder with tinyshakespeare.txt";
  writeText(data, readText(real).substr(0, 100000));
  const Result r = train(out, {"--steps", "800", "--lr", "0.01"});
  ASSERT_EQ(r.status, 0) << r.output;
  EXPECT_LT(rows(out).back().at("val_loss").get<double>(), 3.0) << r.output;
}

// The preset `annotated` trains in the simulator with all checks on and no report: norms without an epsilon, plain
// dropout, gains that decay.
TEST_F(ProgramTest, Seed001TrainsInTheSimulator) {
  expectLossesInTheSimulator([&](const std::string &to, std::vector<std::string> more) {
    more.insert(more.begin(), {"--model", "annotated-small", "--precision", "ieee", "--batch", "2", "--warmup", "0",
                               "--evaluate-sequences", "1"});
    return train(to, more);
  });
}

} // namespace
