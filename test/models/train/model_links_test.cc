// The links in a run's folder: their targets, their updates, and the files that they never replace.

#include "models/train/model_links.h"
#include "test/expect_error.h"
#include "test/temporary_folder.h"

using namespace kiln;

namespace {

namespace fs = std::filesystem;

class ModelLinksTest : public testing::Test {
protected:
  ModelLinksTest() {
    for (const char *name : {"checkpoint-00000001", "checkpoint-00000002"}) {
      fs::create_directory(folder / name);
      writeText(folder / name + "/config.json", std::string("config of ") + name);
      writeText(folder / name + "/model.safetensors", std::string("weights of ") + name);
    }
  }
  /// Number of entries in the folder.
  int64_t held() const { return std::distance(fs::directory_iterator(folder.path), {}); }

  const TemporaryFolder folder;
};

TEST_F(ModelLinksTest, ShowTheCheckpointsFiles) {
  linkModel(folder.path, "checkpoint-00000001");
  EXPECT_EQ(readText(folder / "config.json"), "config of checkpoint-00000001");
  EXPECT_EQ(readText(folder / "model.safetensors"), "weights of checkpoint-00000001");
}

TEST_F(ModelLinksTest, MoveToTheNext) {
  linkModel(folder.path, "checkpoint-00000001");
  linkModel(folder.path, "checkpoint-00000002");
  EXPECT_EQ(readText(folder / "config.json"), "config of checkpoint-00000002");
  EXPECT_EQ(readText(folder / "model.safetensors"), "weights of checkpoint-00000002");
  EXPECT_EQ(held(), 2 + 3);
}

// A run that is moved, as a whole, is a model's folder at its new place.
TEST_F(ModelLinksTest, MoveWithTheirFolder) {
  const TemporaryFolder other;
  linkModel(folder.path, "checkpoint-00000001");
  fs::rename(folder.path, other / "moved");
  EXPECT_EQ(readText(other / "moved/config.json"), "config of checkpoint-00000001");
}

// Leftovers of interrupted linking do not prevent the next one.
TEST_F(ModelLinksTest, LeftoversAreNotInTheWay) {
  fs::create_symlink("nowhere", folder / ".latest.partial");
  linkModel(folder.path, "checkpoint-00000001");
  EXPECT_EQ(readText(folder / "config.json"), "config of checkpoint-00000001");
  EXPECT_EQ(held(), 2 + 3);
}

/// Copies the folder as `cp -rL` does: links become copies of their targets.
void copyFollowing(const std::string &from, const std::string &to) {
  for (const fs::directory_entry &entry : fs::directory_iterator(from))
    fs::copy(fs::canonical(entry.path()), fs::path(to) / entry.path().filename(), fs::copy_options::recursive);
}

// A copy with links followed is a run's folder, too, and the copies in place of links are replaced by links.
TEST_F(ModelLinksTest, CopiesBecomeLinksAgain) {
  const TemporaryFolder copy;
  linkModel(folder.path, "checkpoint-00000001");
  copyFollowing(folder.path, copy.path);
  EXPECT_NO_THROW(verifyNoOtherModel(copy.path));
  linkModel(copy.path, "checkpoint-00000002");
  for (const char *name : {"latest", "config.json", "model.safetensors"})
    EXPECT_TRUE(fs::is_symlink(copy / name)) << name;
  EXPECT_EQ(readText(copy / "config.json"), "config of checkpoint-00000002");
}

TEST_F(ModelLinksTest, CopiesAreRemovedAsLinksAre) {
  const TemporaryFolder copy;
  linkModel(folder.path, "checkpoint-00000001");
  copyFollowing(folder.path, copy.path);
  unlinkModel(copy.path);
  EXPECT_EQ(std::distance(fs::directory_iterator(copy.path), {}), 2);
}

// A file of equal size that differs in one byte is no copy, and neither is a folder with one file more.
TEST_F(ModelLinksTest, WhatDiffersFromEveryCheckpointIsNoCopy) {
  writeText(folder / "model.safetensors", "weights of checkpoint-00000003");
  expectError([&] { verifyNoOtherModel(folder.path); }, {"model.safetensors' is of another model"});
  fs::remove(folder / "model.safetensors");
  fs::copy(folder / "checkpoint-00000001", folder / "latest");
  EXPECT_NO_THROW(verifyNoOtherModel(folder.path));
  writeText(folder / "latest/notes", "of mine");
  expectError([&] { verifyNoOtherModel(folder.path); }, {"latest' is of another model"});
  unlinkModel(folder.path);
  EXPECT_EQ(readText(folder / "latest/notes"), "of mine");
}

TEST_F(ModelLinksTest, AreRemovedAloneTogether) {
  linkModel(folder.path, "checkpoint-00000001");
  unlinkModel(folder.path);
  EXPECT_EQ(held(), 2);
  EXPECT_TRUE(fs::exists(folder / "checkpoint-00000001/model.safetensors"));
}

// Files and links that the run did not make are unchanged.
TEST_F(ModelLinksTest, RemovingLeavesOtherFiles) {
  writeText(folder / "config.json", "{}");
  fs::create_symlink("elsewhere/model.safetensors", folder / "model.safetensors");
  fs::create_directory(folder / "latest");
  unlinkModel(folder.path);
  EXPECT_EQ(held(), 2 + 3);
}

TEST_F(ModelLinksTest, AFolderThatCannotBeWrittenIsAnError) {
  fs::create_directories(folder / "latest/x");
  expectError([&] { linkModel(folder.path, "checkpoint-00000001"); }, {"cannot write link", folder / "latest"});
}

// A run's own links are no other model, and neither is a folder without a model, or a missing one.
TEST_F(ModelLinksTest, ARunsFolderHoldsNoOtherModel) {
  EXPECT_NO_THROW(verifyNoOtherModel(folder / "none"));
  EXPECT_NO_THROW(verifyNoOtherModel(folder.path));
  linkModel(folder.path, "checkpoint-00000001");
  EXPECT_NO_THROW(verifyNoOtherModel(folder.path));
}

TEST_F(ModelLinksTest, AnotherModelIsRefused) {
  for (const char *name : {"config.json", "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"}) {
    writeText(folder / name, "");
    expectError([&] { verifyNoOtherModel(folder.path); },
                {"expected a folder for a run, but", folder / name, "is of another model", "--init"});
    fs::remove(folder / name);
  }
  fs::create_symlink("/elsewhere/config.json", folder / "config.json");
  expectError([&] { verifyNoOtherModel(folder.path); }, {"config.json' is of another model"});
}

} // namespace
