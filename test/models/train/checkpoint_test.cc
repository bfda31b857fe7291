// Checkpoints: a round trip, damage in every file, a full disk, and the kept ones.

#include "models/data/json.h"
#include "models/gpt2/config.h"
#include "models/gpt2/network.h"
#include "models/gpt2/pretrained.h"
#include "models/train/checkpoint.h"
#include "runtime/Tensor.h"
#include "test/expect_error.h"
#include "test/models/file_size_limit.h"
#include "test/temporary_folder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sys/resource.h>

using namespace kiln;

namespace {

const Gpt2Config tiny = {1, 2, 4, 3, 5};

class CheckpointTest : public testing::Test {
protected:
  CheckpointTest() : network(tiny) {
    const ParameterList &list = network.parameters();
    buffers.values.resize(list.count() * 4);
    buffers.first.resize(list.count());
    buffers.second.resize(list.count());
    float next = 1;
    for (const Parameter &p : list.all())
      for (int64_t i = 0; i < p.count(); ++i, ++next) {
        std::memcpy(&buffers.values[(p.offset + i) * 4], &next, 4);
        buffers.first[p.offset + i] = next + 0.25f;
        buffers.second[p.offset + i] = next + 0.5f;
      }
    state.settings = {
        .batch = 3, .accumulate = 2, .steps = 40, .warmup = 4, .rate = 0.1, .evaluateEvery = 7, .seed = 123};
    state.step = 9;
    state.sequences = 54;
    state.data = {"text", 1000, 0xfedcba9876543210};
  }
  std::string save(int64_t step, int64_t keep = 2) {
    state.step = step;
    state.settings.keep = keep;
    return saveCheckpoint(folder.path, state, network, readFrom(buffers));
  }
  /// Number of entries in the run's folder except links.
  int64_t held() const {
    int64_t count = 0;
    for (const auto &entry : std::filesystem::directory_iterator(folder.path))
      count += !entry.is_symlink();
    return count;
  }
  /// Makes a checkpoint one from before identities and checksums existed.
  void makeFirstFormat(const std::string &path) {
    std::string training = readText(path + "/training.json");
    const size_t field = training.find("\"checkpoint\"");
    training.erase(field, training.find('\n', field) - field);
    training.replace(training.find("\"format\": 2"), 11, "\"format\": 1");
    writeText(path + "/training.json", training);
    std::vector<HostTensor> weights, moments;
    for (const Parameter &p : network.parameters().all()) {
      weights.push_back({p.name, f32, p.shape, &buffers.values[p.offset * 4]});
      moments.push_back({"exp_avg." + p.name, f32, p.shape, &buffers.first[p.offset]});
      moments.push_back({"exp_avg_sq." + p.name, f32, p.shape, &buffers.second[p.offset]});
    }
    writeSafetensors(path + "/model.safetensors", weights);
    writeSafetensors(path + "/optimizer.safetensors", moments);
  }
  /// Everything that resuming reads.
  void load(const std::string &path) {
    readConfig(path);
    readRunState(path);
    readBuffers(path, network);
  }

  TemporaryFolder folder;
  const Network network;
  HostBuffers buffers;
  RunState state;
};

TEST_F(CheckpointTest, RestoresTensorsExactly) {
  const HostBuffers got = readBuffers(save(9), network);
  EXPECT_EQ(got.values, buffers.values);
  EXPECT_EQ(got.first, buffers.first);
  EXPECT_EQ(got.second, buffers.second);
}

// A save reads its tensors one at a time, each once, and never holds two of them, for every type: the largest requested
// part is one tensor.
TEST_F(CheckpointTest, SavesATensorAtATime) {
  int64_t largest = 0, tensor = 0, all = 0, asked = 0;
  for (const Parameter &p : network.parameters().all()) {
    tensor = std::max(tensor, p.count());
    all += p.count();
  }
  BufferSource counted = readFrom(buffers);
  const auto read = counted.read;
  counted.read = [&](FlatBuffer which, int64_t first, int64_t count, void *to) {
    largest = std::max(largest, count);
    asked += count;
    read(which, first, count, to);
  };
  for (const Type saved : {f32, bf16}) {
    state.settings.saveType = saved;
    asked = 0;
    saveCheckpoint(folder.path, state, network, counted);
    EXPECT_EQ(asked, (saved == f32 ? 3 : 4) * all); // both moments, and what bf16 holds of the weights beside masters
    EXPECT_EQ(readBuffers(checkpointPath(folder.path, 9), network).second, buffers.second);
  }
  EXPECT_EQ(largest, tensor);
}

/// The buffer `values` of `list` in another type, and back in f32.
std::vector<char> rounded(const std::vector<char> &values, const ParameterList &list, Type type) {
  std::vector<char> narrow(list.count() * bytesOf(type)), wide(values.size());
  fromDoubles(toDoubles(values.data(), f32, list.count()), type, narrow.data());
  fromDoubles(toDoubles(narrow.data(), type, list.count()), f32, wide.data());
  return wide;
}

// Weights saved in a narrow type are declared so in config.json, and Hugging Face's library reads them. A resumed run
// reads the masters, which that type cannot hold.
TEST_F(CheckpointTest, MastersAreKeptBesideNarrowWeights) {
  for (const auto &[type, name] : {std::pair(bf16, "bfloat16"), std::pair(f16, "float16")}) {
    buffers.values[2] = 7; // no number of eight or eleven digits
    state.settings.saveType = type;
    const std::string path = save(9);
    EXPECT_EQ(readJsonObject(path + "/config.json").text("torch_dtype"), name);
    EXPECT_EQ(readWeights(path + "/model.safetensors", network.parameters(), f32),
              rounded(buffers.values, network.parameters(), type));
    EXPECT_EQ(readBuffers(path, network).values, buffers.values);
    EXPECT_NO_THROW(load(path));
  }
}

// Narrow weights without masters are saved once, in f32 or in their own type, and are read back bit for bit.
TEST_F(CheckpointTest, NarrowWeightsAreSavedOnce) {
  const std::vector<char> wide = rounded(buffers.values, network.parameters(), bf16);
  buffers.type = bf16;
  buffers.values.resize(network.parameters().count() * bytesOf(bf16));
  fromDoubles(toDoubles(wide.data(), f32, network.parameters().count()), bf16, buffers.values.data());
  for (const Type saved : {f32, bf16}) {
    state.settings.saveType = saved;
    const std::string path = save(9);
    EXPECT_EQ(Safetensors(path + "/optimizer.safetensors").names().size(), 2 * network.parameters().all().size());
    EXPECT_EQ(readBuffers(path, network, bf16).values, buffers.values);
    EXPECT_EQ(readBuffers(path, network).values, wide);
  }
}

// The loss scale and the number of updates are part of a run's state. In checkpoints from before there was a scale,
// every step was applied.
TEST_F(CheckpointTest, RestoresTheLossScale) {
  state.updates = 5;
  state.lossScale = {2048, 77};
  const std::string path = save(9);
  const RunState got = readRunState(path);
  EXPECT_EQ(got.updates, 5);
  EXPECT_EQ(got.lossScale.scale, 2048);
  EXPECT_EQ(got.lossScale.good, 77);
  makeFirstFormat(path);
  const std::string training = readText(path + "/training.json");
  const auto without = [&](const std::string &field) {
    nlohmann::json json = nlohmann::json::parse(training);
    json.erase(field);
    writeText(path + "/training.json", json.dump());
    return readRunState(path);
  };
  EXPECT_EQ(without("updates").updates, 9);
  EXPECT_EQ(without("loss_scale").lossScale.scale, 1);
  std::string wrong = training;
  wrong.replace(wrong.find("2048.0"), 6, "0.25");
  writeText(path + "/training.json", wrong);
  expectError([&] { readRunState(path); }, {"expected field 'loss_scale.scale' in", "to be from 1 to 16777216"});
}

// A checkpoint has the requested micro-batches, which ranks may have cut into parts.
TEST_F(CheckpointTest, RestoresTheParts) {
  state.settings.accumulate = 6;
  for (const int64_t parts : {1, 3}) {
    state.settings.parts = parts;
    EXPECT_EQ(readRunState(save(9)).settings.parts, parts);
  }
  state.settings.parts = 4;
  expectError([&] { readRunState(save(9)); }, {"expected field 'parts' in", "to be a divisor of 6 micro-batches"});
}

// Older checkpoints count the micro-batches of a validation loss, before these were cut.
TEST_F(CheckpointTest, ReadsFormerBatchesOfAValidationLossAsSequences) {
  state.settings.batch = 5;
  state.settings.accumulate = 6;
  state.settings.parts = 2;
  const std::string path = save(9);
  makeFirstFormat(path);
  const std::string training = readText(path + "/training.json");
  const auto with = [&](int64_t batches) {
    nlohmann::json json = nlohmann::json::parse(training);
    json["settings"].erase("evaluate_sequences");
    json["settings"]["evaluate_batches"] = batches;
    writeText(path + "/training.json", json.dump());
    return readRunState(path).settings.evaluateSequences;
  };
  EXPECT_EQ(with(7), 70);
  EXPECT_EQ(with(0), 0);
  EXPECT_EQ(with(int64_t{1} << 62), std::numeric_limits<int64_t>::max());
}

TEST_F(CheckpointTest, RestoresTheRunsState) {
  const RunState got = readRunState(save(9));
  EXPECT_EQ(got.step, 9);
  EXPECT_EQ(got.sequences, 54);
  EXPECT_EQ(got.data.hash, state.data.hash);
  EXPECT_EQ(got.settings.rate, state.settings.rate);
  EXPECT_EQ(got.settings.seed, 123u);
  EXPECT_EQ(got.settings.evaluateEvery, 7);
}

// The names and shapes of Hugging Face's GPT2Model, in a file declared as PyTorch's.
TEST_F(CheckpointTest, HasHuggingFacesNames) {
  const Safetensors file(save(9) + "/model.safetensors");
  std::vector<std::string> want = {"wte.weight", "wpe.weight", "ln_f.weight", "ln_f.bias"};
  for (const char *rest : {"ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj"})
    for (const char *kind : {".weight", ".bias"})
      want.push_back(std::string("h.0.") + rest + kind);
  std::sort(want.begin(), want.end());
  EXPECT_EQ(file.names(), want);
  std::vector<float> qkv(48);
  EXPECT_NO_THROW(file.read("h.0.attn.c_attn.weight", f32, {4, 12}, qkv.data()));
}

// Each file truncated at any byte gives an error that names it.
TEST_F(CheckpointTest, CutAnywhereItIsRefused) {
  const std::string path = save(9);
  for (const char *name : {"/config.json", "/training.json", "/model.safetensors", "/optimizer.safetensors"}) {
    const std::string whole = readText(path + name);
    // The last byte of a JSON file is a line feed, which it does not need.
    for (size_t size = 0; size + 1 < whole.size(); size += 1 + whole.size() / 97) {
      writeText(path + name, whole.substr(0, size));
      const bool isJson = std::string_view(name).ends_with(".json");
      expectError([&] { load(path); }, {isJson ? "is no JSON object" : "expected", name});
    }
    writeText(path + name, whole);
  }
  EXPECT_NO_THROW(load(path));
}

// Each file with one bit flipped, anywhere: no wrong number is read. Bits that change white space are excluded, because
// the header of a safetensors file may have any.
TEST_F(CheckpointTest, DamagedAnywhereItIsRefused) {
  const std::string path = save(9);
  for (const char *name : {"/config.json", "/training.json", "/model.safetensors", "/optimizer.safetensors"}) {
    const std::string whole = readText(path + name);
    for (size_t at = 0; at < whole.size(); at += 1 + whole.size() / 397) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ 1 << at % 8);
      if (whole[at] == ' ' || damaged[at] == ' ')
        continue;
      writeText(path + name, damaged);
      expectError([&] { load(path); }, {});
    }
    writeText(path + name, whole);
  }
  EXPECT_NO_THROW(load(path));
}

// So are tensors that are not read: weights in addition to masters.
TEST_F(CheckpointTest, DamagedWeightsAreRefusedBesideMasters) {
  state.settings.saveType = bf16;
  const std::string path = save(9);
  std::string bytes = readText(path + "/model.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  writeText(path + "/model.safetensors", bytes);
  expectError([&] { load(path); }, {"model.safetensors", "the file is damaged"});
}

// A flipped bit of a tensor is found by its checksum, and the tensor named.
TEST_F(CheckpointTest, ADamagedTensorIsNamed) {
  const std::string path = save(9);
  std::string bytes = readText(path + "/model.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  writeText(path + "/model.safetensors", bytes);
  expectError([&] { load(path); },
              {"expected tensor '" + network.parameters().all().back().name + "'", "the file is damaged"});
}

// A part of another checkpoint is detected, be it of the same run or of another model of equal sizes.
TEST_F(CheckpointTest, PartsOfTwoAreRefused) {
  const std::string first = save(8), second = save(9);
  for (const char *name : {"/training.json", "/model.safetensors", "/optimizer.safetensors"}) {
    const std::string own = readText(second + name);
    writeText(second + name, readText(first + name));
    expectError([&] { load(second); },
                {"checkpoint '" + second + "' mixes files of different checkpoints", "step 8", "step 9"});
    writeText(second + name, own);
  }
  EXPECT_NO_THROW(load(second));
  writeText(second + "/config.json", textOf(configJson({1, 1, 4, 3, 5}), 2) + "\n");
  expectError([&] { load(second); }, {"as when they were written"});
}

// Two saves of one state have equal bytes: the identity depends on nothing else.
TEST_F(CheckpointTest, OneStateHasOneIdentity) {
  const std::string path = save(9);
  const std::string training = readText(path + "/training.json"), weights = readText(path + "/model.safetensors");
  save(9);
  EXPECT_EQ(readText(path + "/training.json"), training);
  EXPECT_EQ(readText(path + "/model.safetensors"), weights);
}

// Checkpoints from before identities existed are still read.
TEST_F(CheckpointTest, ReadsTheFirstFormat) {
  const std::string path = save(9);
  makeFirstFormat(path);
  EXPECT_NO_THROW(load(path));
  EXPECT_EQ(readBuffers(path, network).values, buffers.values);
}

// An unreadable folder is not treated as one without checkpoints.
TEST_F(CheckpointTest, AFolderThatCannotBeReadIsAnError) {
  save(9);
  rlimit before;
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none = {0, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  const std::string text = errorOf([&] { newestCheckpoint(folder.path); });
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(text, "cannot read folder '" + folder.path + "': Too many open files");
  EXPECT_EQ(newestCheckpoint(folder / "none"), std::nullopt);
}

// Among older checkpoints, the newest complete one is found, and no newer or damaged one.
TEST_F(CheckpointTest, FindsTheNewestWholeOneBeforeIt) {
  for (const int64_t step : {1, 2, 3, 4, 5})
    save(step, 9);
  for (const int64_t step : {3, 4}) {
    const std::string file = checkpointPath(folder.path, step) + "/optimizer.safetensors";
    std::string bytes = readText(file);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    writeText(file, bytes);
  }
  EXPECT_EQ(wholeCheckpointBefore(checkpointPath(folder.path, 4)), checkpointPath(folder.path, 2));
  EXPECT_EQ(wholeCheckpointBefore(checkpointPath(folder.path, 3)), checkpointPath(folder.path, 2));
  EXPECT_EQ(wholeCheckpointBefore(checkpointPath(folder.path, 5)), std::nullopt); // it is whole itself
  EXPECT_EQ(wholeCheckpointBefore(folder / "elsewhere"), std::nullopt);
}

TEST_F(CheckpointTest, AMissingFileIsAnError) {
  const std::string path = save(9);
  std::filesystem::remove(path + "/optimizer.safetensors");
  expectError([&] { load(path); }, {"expected a file", "optimizer.safetensors', but there is none"});
}

TEST_F(CheckpointTest, AnotherModelsShapesAreAnError) {
  const std::string path = save(9);
  const Network wider(Gpt2Config{1, 2, 8, 3, 5});
  expectError([&] { readBuffers(path, wider); }, {"expected tensor 'wte.weight'", "F32 5x8", "but got F32 5x4"});
}

TEST_F(CheckpointTest, FieldsThatAreMissingAreAnError) {
  const std::string path = save(9);
  writeText(path + "/config.json", "{\"n_layer\": 1}");
  expectError([&] { load(path); }, {"config.json", "n_head"});
}

TEST_F(CheckpointTest, AHeaderThatIsNoJsonIsAnError) {
  const std::string path = save(9);
  std::string bytes = readText(path + "/model.safetensors");
  bytes[20] = '\x01';
  writeText(path + "/model.safetensors", bytes);
  expectError([&] { load(path); }, {"'" + path + "/model.safetensors' is no JSON object: after"});
}

TEST_F(CheckpointTest, ACountBelowZeroIsAnError) {
  const std::string path = save(9);
  std::string text = readText(path + "/training.json");
  text.replace(text.find("\"step\": 9"), 9, "\"step\": -9");
  writeText(path + "/training.json", text);
  expectError([&] { load(path); }, {"expected field 'step' in", "training.json' to be at least 0, but got -9"});
}

// Leftovers of killed runs are removed.
TEST_F(CheckpointTest, RemovesWhatKilledRunsLeft) {
  std::filesystem::create_directories(folder / ".checkpoint-00000003.partial/x");
  std::filesystem::create_directories(folder / ".checkpoint-00000002.removed/x");
  save(9);
  EXPECT_EQ(held(), 1);
}

// Steps of nine digits come after those of eight.
TEST_F(CheckpointTest, TheNewestHasTheLargestStep) {
  for (int64_t step : {99999999, 100000000})
    save(step);
  EXPECT_EQ(newestCheckpoint(folder.path), folder / "checkpoint-100000000");
}

// A path of the data that is no UTF-8 does not keep a run from being saved.
TEST_F(CheckpointTest, ADataPathMayBeNoUnicode) {
  state.data.path = "a\xff";
  EXPECT_NO_THROW(load(save(9)));
}

// If the disk is full, saving fails with a message and leaves nothing, and the old checkpoint stays complete.
TEST_F(CheckpointTest, AFullDiskLeavesTheOldOne) {
  const std::string old = save(9);
  {
    const FileSizeLimit limit(500);
    expectError([&] { save(10, 1); }, {"cannot write", "earlier checkpoints are untouched"});
  }
  EXPECT_EQ(newestCheckpoint(folder.path), old);
  EXPECT_NO_THROW(load(old));
  EXPECT_EQ(held(), 1);
}

// Weights that are not finite are no checkpoint, in the type of the steps or as they are saved, and remove none.
TEST_F(CheckpointTest, WeightsThatAreNotFiniteLeaveTheOldOne) {
  const std::string old = save(9);
  const Parameter &last = network.parameters().all().back();
  const auto set = [&](float value) {
    std::memcpy(&buffers.values[(last.offset + last.count() - 1) * 4], &value, sizeof value);
  };
  for (const float wrong : {NAN, INFINITY, -INFINITY}) {
    set(wrong);
    expectError([&] { save(10, 1); }, {"expected finite weights, but tensor '", "earlier checkpoints are untouched"});
  }
  set(1e6);
  state.settings.saveType = f16;
  expectError([&] { save(10, 1); }, {"expected finite weights, but tensor '", "has inf as f16"});
  EXPECT_EQ(newestCheckpoint(folder.path), old);
  EXPECT_NO_THROW(load(old));
  EXPECT_EQ(held(), 1);
}

// A run that is resumed in another type, or with another initial scale, restarts its loss scale; with equal flags it
// does not.
TEST_F(CheckpointTest, ResumingKeepsTheLossScaleOfTheSameSettings) {
  const auto scaleAfter = [&](const TrainSettings &before, TrainSettings now) {
    RunState run{.settings = before, .lossScale = {32, 7}};
    EXPECT_EQ(std::ssize(goOnWith(run, now)), (now.type != before.type) + (now.lossScale != before.lossScale));
    EXPECT_EQ(run.settings.type, now.type);
    return run.lossScale.scale;
  };
  TrainSettings half = state.settings, other = state.settings;
  half.type = f16;
  EXPECT_EQ(scaleAfter(half, half), 32);
  EXPECT_EQ(scaleAfter(half, state.settings), 1);
  EXPECT_EQ(scaleAfter(state.settings, half), 65536);
  other = half;
  other.lossScale = 1024;
  EXPECT_EQ(scaleAfter(half, other), 1024);
}

// A hash is text, because numbers beyond 2⁵³ are not safe in JSON. Checkpoints with a number are still read.
TEST_F(CheckpointTest, TheDatasHashIsText) {
  const std::string checkpoint = save(9);
  makeFirstFormat(checkpoint);
  const std::string path = checkpoint + "/training.json", text = readText(path), hash = "\"fedcba9876543210\"";
  const size_t at = text.find(hash);
  ASSERT_NE(at, std::string::npos) << text;
  const auto with = [&](const char *other) {
    writeText(path, std::string(text).replace(at, hash.size(), other));
    return readRunState(checkpoint).data.hash;
  };
  EXPECT_EQ(with("18364758544493064720"), 0xfedcba9876543210);
  for (const char *bad : {"\"fedcba987654321\"", "\"fedcba987654321g\"", "\"0xfedcba98765432\""})
    expectError([&] { with(bad); }, {"expected field 'data.hash' in", "to be 16 hexadecimal digits"});
}

// The links in the run's folder lead to the newest checkpoint's model, whichever other checkpoints are kept or written
// again.
TEST_F(CheckpointTest, TheRunsFolderIsTheNewestModel) {
  for (const int64_t step : {9, 10, 11, 10, 12, 12}) {
    const std::string saved = save(step), newest = *newestCheckpoint(folder.path);
    for (const char *name : {"/config.json", "/model.safetensors"})
      EXPECT_EQ(std::filesystem::canonical(folder.path + name), std::filesystem::canonical(newest + name)) << saved;
  }
  EXPECT_EQ(held(), 2);
}

// Starting again leaves no link without its checkpoint.
TEST_F(CheckpointTest, RemovingThemRemovesTheLinks) {
  save(9);
  removeCheckpoints(folder.path);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path));
}

// Another trainer's checkpoint-500 is neither resumed from nor removed.
TEST_F(CheckpointTest, OtherTrainersCheckpointsAreLeftAlone) {
  std::filesystem::create_directories(folder / "checkpoint-500");
  std::filesystem::create_directories(folder / "checkpoint-000000500");
  EXPECT_FALSE(newestCheckpoint(folder.path).has_value());
  save(9, 1);
  EXPECT_EQ(newestCheckpoint(folder.path), folder / "checkpoint-00000009");
  removeCheckpoints(folder.path);
  EXPECT_EQ(held(), 2);
}

TEST_F(CheckpointTest, KeepsTheNewest) {
  for (int64_t step : {9, 10, 100, 11})
    save(step);
  EXPECT_EQ(newestCheckpoint(folder.path), folder / "checkpoint-00000100");
  EXPECT_TRUE(std::filesystem::exists(folder / "checkpoint-00000011"));
  EXPECT_EQ(held(), 2);
}

// The temporary folder of an interrupted write is not read as a checkpoint, and does not prevent the next write.
TEST_F(CheckpointTest, APartialOneIsNone) {
  std::filesystem::create_directories(folder / ".checkpoint-00000009.partial/x");
  EXPECT_FALSE(newestCheckpoint(folder.path).has_value());
  EXPECT_NO_THROW(load(save(9)));
}

// GPT2LMHeadModel writes its tensors with a prefix; they are read, too.
TEST_F(CheckpointTest, ReadsTheLanguageModelsPrefix) {
  const std::string path = save(9);
  std::vector<HostTensor> tensors;
  for (const Parameter &p : network.parameters().all())
    tensors.push_back({"transformer." + p.name, f32, p.shape, &buffers.values[p.offset * 4]});
  writeSafetensors(path + "/model.safetensors", tensors);
  EXPECT_EQ(readWeights(path + "/model.safetensors", network.parameters(), f32), buffers.values);
}

} // namespace
