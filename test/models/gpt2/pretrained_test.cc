// Finding the model that a path names, its tokenizer, and its weights in files written by the test.

#include "models/gpt2/network.h"
#include "models/gpt2/pretrained.h"
#include "models/tokens/files.h"
#include "test/expect_error.h"
#include "test/models/gpt2/hand_written.h"
#include "test/temporary_folder.h"

#include <algorithm>

using namespace kiln;

namespace {

class PretrainedTest : public testing::Test {
protected:
  /// Makes files of no content.
  void touch(std::initializer_list<const char *> names) {
    for (const std::string name : names) {
      std::filesystem::create_directories(std::filesystem::path(folder / name).parent_path());
      writeText(folder / name, "");
    }
  }

  const TemporaryFolder folder;
};

TEST_F(PretrainedTest, AFolderWithAConfigIsAModel) {
  touch({"config.json", "model.safetensors"});
  const Pretrained found = pretrainedAt(folder.path);
  EXPECT_EQ(found.folder, folder.path);
  EXPECT_EQ(found.weights, folder / "model.safetensors");
}

TEST_F(PretrainedTest, OfARunItIsTheNewestCheckpoint) {
  touch({"checkpoint-00000009/config.json", "checkpoint-00000010/config.json", "config.json"});
  EXPECT_EQ(pretrainedAt(folder.path).weights, folder / "checkpoint-00000010/model.safetensors");
}

TEST_F(PretrainedTest, AFileIsWeightsAlone) {
  touch({"w.safetensors"});
  const Pretrained found = pretrainedAt(folder / "w.safetensors");
  EXPECT_EQ(found.folder, std::nullopt);
  EXPECT_EQ(found.weights, folder / "w.safetensors");
}

TEST_F(PretrainedTest, WhereThereIsNothingIsAnError) {
  expectError([&] { pretrainedAt(folder / "none"); }, {"expected a folder with a model, but", "none' does not exist"});
  expectError([&] { pretrainedAt(folder.path); }, {"expected checkpoints or a config.json in", folder.path});
}

// Errors for shards and pickles name their format and a way to convert them: in a folder, and as files.
TEST_F(PretrainedTest, OtherFormsAreRefusedWithAdvice) {
  const std::pair<const char *, const char *> cases[] = {{"model.safetensors.index.json", "holds weights in shards"},
                                                         {"pytorch_model.bin", "holds pickled weights"},
                                                         {"pytorch_model.bin.index.json", "holds pickled weights in"}};
  for (const auto &[name, message] : cases) {
    touch({"config.json", name});
    for (const std::string &path : {folder.path, folder / name})
      expectError([&] { pretrainedAt(path); }, {folder / name, message, "save_pretrained("});
    std::filesystem::remove(folder / name);
  }
}

// If the weights are also there as one file, their other forms are ignored.
TEST_F(PretrainedTest, OneFileIsEnough) {
  touch({"config.json", "model.safetensors", "pytorch_model.bin"});
  EXPECT_EQ(pretrainedAt(folder.path).weights, folder / "model.safetensors");
}

// A tokenizer is next to the weights, or in the folder of the checkpoint's run; without one tokens are bytes.
TEST_F(PretrainedTest, ATokenizerIsFound) {
  touch({"config.json", "model.safetensors"});
  EXPECT_FALSE(vocabularyBeside(pretrainedAt(folder.path)));
  Vocabulary v = byteVocabulary();
  v.tokens.emplace_back("ab");
  v.merges = {{'a', 'b', 256}};
  writeVocabulary(folder.path, v);
  EXPECT_EQ(vocabularyBeside(pretrainedAt(folder.path))->merges, v.merges);
  const std::string inner = folder / "inner";
  std::filesystem::create_directory(inner);
  const Pretrained model = {inner + "/model.safetensors", inner};
  EXPECT_FALSE(vocabularyBeside(model)); // another's folder may be anywhere
  writeText(inner + "/training.json", "");
  EXPECT_EQ(vocabularyBeside(model)->merges, v.merges);
  writeText(inner + "/spiece.model", "");
  expectError([&] { vocabularyBeside(model); }, {"spiece.model' is no byte-pair tokenizer"});
}

class WeightsTest : public testing::Test {
protected:
  WeightsTest() : network({2, 2, 4, 3, 5}), tensors(handWrittenModel(list())) {}
  const ParameterList &list() const { return network.parameters(); }
  /// The flat buffer read from a file with `tensors`.
  std::vector<char> read() const {
    writeText(path, handWrittenFile(tensors));
    return readWeights(path, list(), f32);
  }
  void refuse(std::initializer_list<std::string> parts) const {
    expectError([&] { read(); }, parts);
    expectError([&] { read(); }, {path});
  }
  HandWritten &tensor(const std::string &name) {
    return *std::find_if(tensors.begin(), tensors.end(), [&](const HandWritten &t) { return t.name == name; });
  }

  const TemporaryFolder folder;
  const std::string path = folder / "weights.safetensors";
  const Network network;
  std::vector<HandWritten> tensors;
};

// Every number is at its position, and the buffer has no others.
TEST_F(WeightsTest, AreReadByteForByte) { EXPECT_EQ(read(), handWrittenBuffer(list())); }

// With the prefix of the language model, and in another order.
TEST_F(WeightsTest, MayHaveThePrefixAndAnyOrder) {
  tensors = handWrittenModel(list(), "transformer.");
  std::reverse(tensors.begin(), tensors.end());
  EXPECT_EQ(read(), handWrittenBuffer(list()));
}

TEST_F(WeightsTest, OfOtherTypesAreConverted) {
  for (const char *dtype : {"BF16", "F16", "F64"}) {
    tensors = handWrittenModel(list(), "", dtype);
    EXPECT_EQ(read(), handWrittenBuffer(list())) << dtype;
  }
}

TEST_F(WeightsTest, OfWholeNumbersAreRefused) {
  tensor("wpe.weight").dtype = "I32";
  refuse({"expected tensor 'wpe.weight'", "to be F32 3x4, but got I32 3x4"});
  tensor("wpe.weight").dtype = "F8_E4M3";
  refuse({"but got F8_E4M3 3x4"});
}

TEST_F(WeightsTest, ThatAreMissingAreNamed) {
  tensors.erase(tensors.begin() + 3);
  refuse({"expected the 28 tensors of the model in", "but there is no 'h.0.ln_1.bias'"});
  tensors.resize(20);
  refuse({"but there is no 'h.0.ln_1.bias', 'h.1.ln_2.bias', 'h.1.mlp.c_fc.bias' and 5 more"});
}

// The error names a tensor of a third block, which the config does not have.
TEST_F(WeightsTest, ThatAreNoneOfTheModelsAreNamed) {
  tensors.push_back({"h.2.ln_1.bias", "F32", "[1]", "abcd"});
  refuse({"expected the 28 tensors of the model in", "but there is also 'h.2.ln_1.bias'"});
}

// Old files of GPT-2 have attention's mask, of any type, and the value of hidden scores.
TEST_F(WeightsTest, MasksAreIgnored) {
  tensors.push_back({"h.0.attn.bias", "U8", "[1,1,3,3]", std::string(9, 1)});
  tensors.push_back({"h.1.attn.masked_bias", "F32", "[]", bytesOfShare(5, "F32")});
  EXPECT_EQ(read(), handWrittenBuffer(list()));
}

// A mask of a block that the model has not is a sign of a larger model.
TEST_F(WeightsTest, MasksOfOtherBlocksAreRefused) {
  tensors.push_back({"h.2.attn.bias", "U8", "[1]", "1"});
  refuse({"but there is also 'h.2.attn.bias'"});
}

// The head is the table of tokens once more, or an error.
TEST_F(WeightsTest, AHeadMustEqualTheTable) {
  HandWritten head = tensor("wte.weight");
  head.name = "lm_head.weight";
  tensors.push_back(head);
  EXPECT_EQ(read(), handWrittenBuffer(list()));
  tensors.back().bytes[5] ^= 1;
  refuse({"expected 'lm_head.weight' in", "to equal 'wte.weight', but it differs"});
  tensors.back().shape = "[4,5]";
  refuse({"expected tensor 'lm_head.weight'", "to be F32 5x4, but got F32 4x5"});
}

// An untied head is read with or without the prefix of the others. If it is missing, that is an error.
TEST_F(WeightsTest, AHeadOfItsOwnIsRead) {
  Gpt2Config config = network.config();
  config.tied = false;
  const Network untied(config);
  tensors = handWrittenModel(untied.parameters());
  const auto read = [&] {
    writeText(path, handWrittenFile(tensors));
    return readWeights(path, untied.parameters(), f32);
  };
  EXPECT_EQ(read(), handWrittenBuffer(untied.parameters()));
  for (HandWritten &t : tensors)
    if (t.name.starts_with("transformer."))
      t.name.erase(0, 12);
  EXPECT_EQ(read(), handWrittenBuffer(untied.parameters()));
  tensors.pop_back();
  expectError([&] { read(); }, {"expected the 29 tensors of the model in", "but there is no 'lm_head.weight'"});
}

TEST_F(WeightsTest, OfAnotherShapeAreRefused) {
  tensor("h.1.mlp.c_fc.weight").shape = "[16,4]";
  refuse({"expected tensor 'h.1.mlp.c_fc.weight'", "to be F32 4x16, but got F32 16x4"});
}

} // namespace
