// Finding the model that a path names, and refusing the forms that are not read.

#include "models/gpt2/tokens_of.h"
#include "models/tokens/files.h"
#include "test/expect_error.h"
#include "test/temporary_folder.h"

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
  expectError([&] { vocabularyBeside(model); }, {"expected a byte-pair tokenizer", "spiece.model' is another kind"});
}

} // namespace
