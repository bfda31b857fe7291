// Models and states in llm.c's files: the losses of llm.c's program, every byte after a round trip, and invalid files.

#include "models/data/files.h"
#include "models/data/shards.h"
#include "models/generate/generator.h"
#include "models/gpt2/llmc.h"
#include "models/gpt2/network.h"
#include "models/train/evaluation.h"
#include "models/train/language_data.h"
#include "models/train/trainer.h"
#include "test/expect_error.h"
#include "test/models/gpt2/program.h"
#include "test/paths.h"

#include <array>
#include <cstring>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <random>

using namespace kiln;
using namespace kiln::test;
using namespace kiln::llmc;

namespace {

const Gpt2Config small = {.layers = 2, .heads = 4, .width = 64, .context = 64, .vocab = 300};

/// The weights of test/oracles/llmc.py.
HostBuffers recordedWeights(const ParameterList &list) {
  std::vector<float> all(list.count());
  for (size_t number = 0; number < list.all().size(); ++number) {
    const Parameter &p = list.all()[number];
    const bool isGain = p.name.find("ln_") != std::string::npos && p.name.ends_with(".weight");
    for (int64_t i = 0; i < p.count(); ++i)
      all[p.offset + i] =
          static_cast<float>((i * 37 + static_cast<int64_t>(number) * 101 + i * i % 61) % 201 - 100) / 1024 + isGain;
  }
  HostBuffers buffers = {std::vector<char>(all.size() * sizeof(float)), std::vector<float>(all.size()),
                         std::vector<float>(all.size())};
  std::memcpy(buffers.values.data(), all.data(), buffers.values.size());
  return buffers;
}

/// Its tokens.
std::vector<int32_t> recordedTokens(int64_t count) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<int32_t>((i * i * 7 + i * 13) % 293));
  return tokens;
}

class LlmcProgram : public DeviceTest {};

// A model's file equals that of the script. Training from it, on token files in llm.c's order, has the losses that
// llm.c's program printed with six digits; validation, too.
TEST_P(LlmcProgram, HasTheLossesOfItsProgram) {
  const nlohmann::json want = nlohmann::json::parse(readFile(kiln::test::sourcePath("test/models/gpt2/llmc.json")));
  const TemporaryFolder folder;
  const Network network(small);
  writeLlmcModel(folder / "model.bin", small, network.parameters(), recordedWeights(network.parameters()));
  const std::string bytes = readFile(folder / "model.bin");
  EXPECT_EQ(fmt::format("{:016x}", fnv1a(bytes)), want.at("model").get<std::string>());
  writeShard(folder / "train.bin", recordedTokens(5000), small.vocab);
  writeShard(folder / "val.bin", recordedTokens(1400), small.vocab);
  LanguageData data({.data = folder / "train.bin", .held = folder / "val.bin", .vocab = small.vocab, .llmcRows = 4},
                    small.context, 1);
  TrainSettings settings = {.batch = 4, .steps = 41, .rate = 1e-4, .schedule = Schedule::constant, .decay = 0};
  settings.beta2 = 0.999;
  settings.clip = 0;
  settings.precision = Precision::ieee;
  Trainer trainer(Device::open(GetParam()), network, settings);
  trainer.upload(
      readLlmc(folder / "model.bin", {}, readLlmcConfig(folder / "model.bin"), network.parameters()).buffers);
  const int64_t steps = GetParam() == "cpu" ? 41 : GetParam().starts_with("cpu") ? 11 : 1; // others take seconds
  for (int64_t step = 0; step < steps; ++step) {
    if (step % 10 == 0) {
      double sum = 0;
      for (int64_t i = 0; i < 5; ++i)
        sum += trainer.lossSum(data.validation(evenlySpaced(4 * i, 4, 20, 20), 4));
      EXPECT_NEAR(sum / 1280, want.at("held").at(step / 10).get<double>(), 1e-5) << step;
    }
    trainer.beginStep(settings.rate, step + 1);
    trainer.addGradient(data.training(4 * step, 4), 0);
    EXPECT_NEAR(trainer.update().loss, want.at("losses").at(step).get<double>(), 1e-5) << step;
  }
}
KILN_ON_DEVICES(LlmcProgram);

/// Random numbers in every tensor, which bf16 does not hold.
HostBuffers randomBuffers(const ParameterList &list) {
  HostBuffers buffers = recordedWeights(list);
  std::mt19937 engine(5);
  for (const Parameter &p : list.all())
    for (int64_t i = p.offset; i < p.offset + p.count(); ++i) {
      buffers.first[i] = static_cast<float>(engine()) / 1e9F;
      buffers.second[i] = static_cast<float>(engine()) / 1e9F;
      const float value = static_cast<float>(engine()) / 1e9F - 2;
      std::memcpy(buffers.values.data() + i * sizeof(float), &value, sizeof(float));
    }
  return buffers;
}

class LlmcFiles : public ProgramTest {
protected:
  /// Writes a model and its state after 70 steps.
  void write(Type type) {
    Gpt2Config config = small;
    config.type = type;
    const Network network(small);
    const HostBuffers buffers = randomBuffers(network.parameters());
    writeLlmcModel(model, config, network.parameters(), buffers);
    writeLlmcState(state, config, network.parameters(), buffers, 70);
  }
  void expectMistake(const std::vector<std::string> &words, const std::string &message) {
    ::expectMistake(gpt2(words), message);
  }
  void patch(const std::string &path, int number, int32_t value) {
    std::string bytes = readFile(path);
    std::memcpy(bytes.data() + 4 * number, &value, 4);
    writeText(path, bytes);
  }

  const std::string model = folder / "model.bin", state = folder / "state.bin", back = folder / "back.bin",
                    stateBack = folder / "state_back.bin";
};

// A round trip from a model and a state through a run preserves every byte, with masters or without.
TEST_F(LlmcFiles, GoToARunAndBackToTheByte) {
  for (const Type type : {f32, bf16}) {
    write(type);
    std::filesystem::remove_all(out);
    const Result r = gpt2({"import", "--llmc", model, "--state", state, "--out", out});
    ASSERT_EQ(r.status, 0) << r.output;
    EXPECT_NE(r.output.find("after 70 steps"), std::string::npos) << r.output;
    expectMistake({"import", "--llmc", model, "--out", out},
                  "expected a folder without checkpoints, but '" + out + "/checkpoint-00000070' exists\n");
    ASSERT_EQ(gpt2({"export", "--out", out, "--llmc", back, "--state", stateBack}).status, 0);
    EXPECT_TRUE(readFile(back) == readFile(model));
    EXPECT_TRUE(readFile(stateBack) == readFile(state));
  }
}

// A run continues from llm.c's state, with any data, and later with that data only.
TEST_F(LlmcFiles, ARunGoesOn) {
  write(bf16);
  ASSERT_EQ(gpt2({"import", "--llmc", model, "--state", state, "--out", out}).status, 0);
  writeShard(folder / "train.bin", recordedTokens(5000), small.vocab);
  writeShard(folder / "other.bin", recordedTokens(4999), small.vocab);
  const auto words = [&](const char *name, const char *steps) {
    return std::vector<std::string>{"train",
                                    "--data",
                                    folder / name,
                                    "--out",
                                    out,
                                    "--resume",
                                    "--steps",
                                    steps,
                                    "--batch",
                                    "2",
                                    "--accumulate",
                                    "1",
                                    "--warmup",
                                    "0",
                                    "--order",
                                    "llmc",
                                    "--evaluate-sequences",
                                    "1"};
  };
  const Result r = gpt2(words("train.bin", "72"));
  ASSERT_EQ(r.status, 0) << r.output;
  ASSERT_EQ(rows(out).size(), 2u);
  EXPECT_EQ(rows(out)[0].at("step"), 71);
  EXPECT_EQ(rows(out)[0].at("dtype"), "bf16");
  expectMistake(words("other.bin", "73"), "expected the data that the checkpoint was trained on");
}

/// Appends numbers of four bytes each.
template <class Number> void append(std::string &bytes, const std::vector<Number> &numbers) {
  bytes.append(reinterpret_cast<const char *>(numbers.data()), numbers.size() * sizeof(Number));
}

// llm.c's results for a batch that is shorter than the model's context are compared. They agree, and a wrong number
// anywhere is found. The results are from the reference device, and the gradient is written like a model's file.
TEST_F(LlmcFiles, ADebugStateIsCompared) {
  constexpr int64_t sequences = 2, length = 40;
  Gpt2Config shorter = small;
  shorter.context = length;
  const Network whole(small), network(shorter);
  writeLlmcModel(model, small, whole.parameters(), recordedWeights(whole.parameters()));
  const std::vector<int32_t> all = recordedTokens(sequences * length + 1);
  const std::vector<int32_t> tokens(all.begin(), all.end() - 1), targets(all.begin() + 1, all.end());
  Trainer trainer(Device::open("cpu:generic"), network, {.batch = sequences});
  trainer.upload(readLlmc(model, {}, shorter, network.parameters()).buffers);
  const HostBatch batch = languageBatch(tokens, targets);
  const auto loss = static_cast<float>(trainer.lossSum(batch) / std::ssize(tokens));
  trainer.beginStep(0, 1);
  trainer.addGradient(batch, 0);
  std::vector<float> gradient = trainer.gradients(), logits(sequences * length * small.vocab);
  Generator generator(trainer.machine(), network, trainer.weights(), {});
  generator.append(0, std::span(tokens).first(length));
  const std::vector<float> last = generator.next()[0];
  std::copy(last.begin(), last.end(), logits.begin() + (length - 1) * small.vocab);
  HostBuffers padded = recordedWeights(whole.parameters()); // the gradient, as a model's weights
  for (size_t i = 0; i < whole.parameters().all().size(); ++i) {
    const Parameter &to = whole.parameters().all()[i], &from = network.parameters().all()[i];
    std::memset(padded.values.data() + to.offset * 4, 0, to.count() * 4);
    std::memcpy(padded.values.data() + to.offset * 4, gradient.data() + from.offset, from.count() * 4);
  }
  writeLlmcModel(back, small, whole.parameters(), padded);
  std::vector<int32_t> header(256);
  std::copy_n(std::array<int32_t, 4>{20240327, 2, sequences, length}.begin(), 4, header.begin());
  std::string bytes;
  append(bytes, header);
  append(bytes, tokens);
  append(bytes, targets);
  append(bytes, logits);
  append(bytes, std::vector<float>{loss});
  bytes += readFile(back).substr(1024);
  writeText(state, bytes);
  const std::vector<std::string> words = {"test", "--llmc", model, "--debug-state", state, "--device", firstDevice()};
  expectResult(gpt2(words), 0, {"context 40, vocabulary 300 in fp32"});
  patch(state, static_cast<int>(bytes.size() / 4) - 10, 0x3f800000); // of the last norm's bias
  expectResult(gpt2(words), 1, {"1 of 30 are beyond"});
  patch(state, 3, 65);
  expectMistake(words, "expected sequences of 1 to 64 tokens in '" + state + "', but got 2 of 65");
  patch(state, 3, 39);
  expectMistake(words, "bytes in '" + state + "', a debug state of the model in '" + model + "'");
  patch(state, 1, 1);
  expectMistake(words, "expected a debug state of llm.c (20240327, version 2) in '" + state +
                           "', but got 20240327, "
                           "version 1");
}

// A model of another form than llm.c's is not written.
TEST_F(LlmcFiles, OtherFormsAreRefused) {
  ASSERT_EQ(train(out, {"--steps", "1", "--untied"}).status, 0);
  expectMistake({"export", "--out", out, "--llmc", back}, "whose head is the token table, but got");
  ASSERT_EQ(train(out, {"--steps", "1", "--overwrite"}).status, 0);
  expectMistake({"export", "--out", out, "--llmc", back, "--dtype", "fp16"},
                "llm.c's files require --dtype fp32 or bf16");
  EXPECT_FALSE(std::filesystem::exists(back));
}

TEST_F(LlmcFiles, FilesThatAreNoneAreRefused) {
  write(f32);
  const std::vector<std::string> words = {"import", "--llmc", model, "--state", state, "--out", out};
  patch(state, 2, 8);
  expectMistake(words, "expected the state of one process in '" + state + "', but it is one of 8");
  patch(state, 0, 1);
  expectMistake(words, "expected a state of llm.c (20240527, version 1) in '" + state + "', but got 1, version 1");
  writeText(state, readFile(model));
  patch(state, 0, 20240527);
  patch(state, 1, 1);
  patch(state, 2, 1);
  expectMistake(words, "bytes in '" + state + "', the state of");
  std::filesystem::resize_file(model, 5000);
  expectMistake(words, "bytes in '" + model + "', the model of 2 layers, 4 heads, width 64");
  patch(model, 4, 1000);
  patch(model, 6, 1 << 20);
  expectMistake(words, "but it has 5000");
  patch(model, 6, -1);
  expectMistake(words, "expected sizes from 1 to 1048576 in the header of '" + model + "', but got -1");
  patch(model, 1, 9);
  expectMistake(words, "expected a model of llm.c (20240326, version 3 or 5) in '" + model +
                           "', but got 20240326, "
                           "version 9");
  writeText(model, "short");
  expectMistake(words, "expected a model of llm.c in '" + model + "', but it has 5 bytes");
  EXPECT_FALSE(std::filesystem::exists(out + "/config.json"));
}

// --- The positions of this model's tensors in llm.c's files ----------------------------------------------------------

// Pieces are contiguous, each tensor once, a kind for all blocks before the next kind. Tables have the rows that the
// file states. Only the matrices of blocks are transposed.
TEST(LlmcLayout, HasEachTensorOnceKindByKind) {
  const Network network({.layers = 2, .heads = 2, .width = 16, .context = 8, .vocab = 30});
  const ParameterList &list = network.parameters();
  const FileLayout layout = fileLayout(list, 2, 128, 8);
  int64_t end = 0, numbers = 0;
  for (const Parameter &p : list.all())
    numbers += p.count();
  std::vector<std::string> names;
  for (const llmc::Piece &piece : layout.pieces) {
    EXPECT_EQ(piece.begin, end) << piece.parameter->name;
    end += piece.count;
    names.push_back(piece.parameter->name);
    const bool isMatrixOfABlock = piece.parameter->shape.size() == 2 && piece.parameter->name.starts_with("h.");
    EXPECT_EQ(piece.isTransposed, isMatrixOfABlock) << piece.parameter->name;
  }
  EXPECT_EQ(layout.count, end);
  EXPECT_EQ(end, numbers + (128 - 30) * 16);
  ASSERT_EQ(names.size(), list.all().size());
  EXPECT_EQ(
      (std::vector<std::string>(names.begin(), names.begin() + 5)),
      (std::vector<std::string>{"wte.weight", "wpe.weight", "h.0.ln_1.weight", "h.1.ln_1.weight", "h.0.ln_1.bias"}));
  EXPECT_EQ(names.back(), "ln_f.bias");
}

// A tensor that llm.c's model lacks would be lost in its files.
TEST(LlmcLayout, RefusesAnotherTensor) {
  const Network network({.layers = 2, .heads = 2, .width = 16, .context = 8, .vocab = 30});
  ParameterList list = network.parameters();
  list.add("gain", {16}, {Init::Kind::ones}, Role::gain);
  expectError([&] { fileLayout(list, 2, 128, 8); },
              {"expected a model of llm.c's tensors, but got 'gain', which its files do not have"});
}

// Transposing twice gives the original matrix, and once swaps rows and columns.
TEST(LlmcLayout, TransposesMatrices) {
  const std::vector<float> matrix = {1, 2, 3, 4, 5, 6};
  std::vector<float> turned(6), back(6);
  transpose(matrix.data(), 2, 3, turned.data());
  EXPECT_EQ(turned, (std::vector<float>{1, 4, 2, 5, 3, 6}));
  transpose(turned.data(), 3, 2, back.data());
  EXPECT_EQ(back, matrix);
}

} // namespace
