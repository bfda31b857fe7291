// Texts, batches and random numbers.

#include "models/data/batches.h"
#include "models/data/random.h"
#include "models/data/text.h"
#include "test/expect_error.h"
#include "test/temporary_folder.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <gtest/gtest.h>
#include <numeric>
#include <set>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace kiln;

namespace {

std::vector<uint8_t> counting(int64_t size) {
  std::vector<uint8_t> bytes(size);
  for (int64_t i = 0; i < size; ++i)
    bytes[i] = static_cast<uint8_t>(i);
  return bytes;
}

// The last tenth validates, the rest trains, and nothing is lost between them.
TEST(Text, SplitsOffTheLastTenth) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 209; ++i)
    text += static_cast<char>(i);
  writeText(folder / "text", text);
  const Text split = kiln::readText(folder / "text", 4);
  EXPECT_EQ(split.train.size(), 189u);
  EXPECT_EQ(split.validation.size(), 20u);
  EXPECT_EQ(split.validation.front(), 189);
}

TEST(Text, AMissingFileIsAnError) {
  expectError([] { kiln::readText("/nowhere/text", 4); }, {"expected a text file", "'/nowhere/text' does not exist"});
}

TEST(Text, AFolderIsAnError) {
  const TemporaryFolder folder;
  expectError([&] { kiln::readText(folder.path, 4); }, {"expected a text file", "is a folder"});
}

// A device, whose end reading does not find, is not accepted as a text.
TEST(Text, ADeviceIsAnError) {
  expectError([&] { kiln::readText("/dev/zero", 4); }, {"expected a text file", "'/dev/zero' is a device"});
}

// A text from a pipe equals the text from a file, with any division into reads.
TEST(Text, ComesOutOfAPipe) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  const std::vector<uint8_t> bytes = counting(3 << 20);
  std::thread writer(
      [&] { std::ofstream(folder / "pipe").write(reinterpret_cast<const char *>(bytes.data()), 3 << 20); });
  const Text text = kiln::readText(folder / "pipe", 4);
  writer.join();
  std::vector<uint8_t> got = text.train;
  got.insert(got.end(), text.validation.begin(), text.validation.end());
  EXPECT_TRUE(got == bytes);
}

// No more than the bound is read, whether the length is known before or not.
TEST(Text, TooLongATextIsAnError) {
  const TemporaryFolder folder;
  writeText(folder / "text", std::string(101, 'x'));
  EXPECT_NO_THROW(kiln::readText(folder / "text", 4, 101));
  expectError([&] { kiln::readText(folder / "text", 4, 100); }, {"at most 100 bytes", "has 101"});
  std::FILE *const endless = popen("yes", "r");
  expectError([&] { kiln::readText("/proc/self/fd/" + std::to_string(fileno(endless)), 4, 1 << 20); },
              {"at most 1048576 bytes", "has more"});
  pclose(endless);
}

// A container's memory is less than its machine's.
TEST(Text, TheBoundIsAQuarterOfTheMemory) {
  const TemporaryFolder folder;
  writeText(folder / "none", "max\n");
  writeText(folder / "some", "4000000\n");
  EXPECT_EQ(mostTextBytes(folder / "some"), 1000000);
  EXPECT_EQ(mostTextBytes(folder / "none"), sysconf(_SC_PHYS_PAGES) / 4 * sysconf(_SC_PAGESIZE));
  EXPECT_EQ(mostTextBytes(folder / "not there"), mostTextBytes(folder / "none"));
}

TEST(Text, AnEmptyFileIsAnError) {
  const TemporaryFolder folder;
  writeText(folder / "text", "");
  expectError([&] { kiln::readText(folder / "text", 4); }, {"expected text in", "is empty"});
}

// The error for a file that is one byte too short has the expected and the actual length. One byte more is enough.
TEST(Text, AShortFileIsAnError) {
  const TemporaryFolder folder;
  writeText(folder / "text", std::string(49, 'x'));
  expectError([&] { kiln::readText(folder / "text", 4); }, {"at least 50 bytes", "but got 49"});
  writeText(folder / "text", std::string(50, 'x'));
  EXPECT_EQ(kiln::readText(folder / "text", 4).validation.size(), 5u);
}

TrainBatches shuffled(const std::shared_ptr<MemoryTokens<uint8_t>> &text, uint64_t seed) {
  return {text, 8, kiln::shuffledOrder(text->size(), 8, seed)};
}

// Targets are the next tokens, within each sequence.
TEST(TrainBatches, TargetsFollowTokens) {
  const auto text = std::make_shared<MemoryTokens<uint8_t>>(counting(200));
  TrainBatches batches = shuffled(text, 1);
  const Batch batch = batches.sequences(0, 5);
  ASSERT_EQ(batch.tokens.size(), 40u);
  for (size_t i = 0; i < 40; ++i)
    EXPECT_EQ(batch.targets[i], batch.tokens[i] + 1) << i;
  for (size_t i = 1; i < 8; ++i)
    EXPECT_EQ(batch.tokens[i], batch.tokens[i - 1] + 1) << i;
}

// An epoch has each of its sequences once: no byte of the text is read twice.
TEST(TrainBatches, APassReadsNoByteTwice) {
  const auto text = std::make_shared<MemoryTokens<uint8_t>>(counting(250));
  TrainBatches batches = shuffled(text, 1);
  const Batch batch = batches.sequences(0, batches.sequencesPerPass());
  EXPECT_GE(batches.sequencesPerPass(), 30);
  EXPECT_EQ(std::set<int32_t>(batch.tokens.begin(), batch.tokens.end()).size(), batch.tokens.size());
}

// Passes and seeds differ in their order.
TEST(TrainBatches, PassesAndSeedsDiffer) {
  const auto text = std::make_shared<MemoryTokens<uint8_t>>(counting(250));
  TrainBatches one = shuffled(text, 1), two = shuffled(text, 2);
  const int64_t pass = one.sequencesPerPass();
  EXPECT_NE(one.sequences(0, pass).tokens, one.sequences(pass, pass).tokens);
  EXPECT_NE(one.sequences(0, pass).tokens, two.sequences(0, pass).tokens);
}

// Sequence n depends on seed and n only: starting in the middle of an epoch gives the sequences of reading up to there.
TEST(TrainBatches, APositionIsEnoughToGoOn) {
  const auto text = std::make_shared<MemoryTokens<uint8_t>>(counting(250));
  TrainBatches through = shuffled(text, 1), jumped = shuffled(text, 1);
  const Batch whole = through.sequences(0, 70), tail = jumped.sequences(45, 25);
  EXPECT_TRUE(std::equal(tail.tokens.begin(), tail.tokens.end(), whole.tokens.begin() + 45 * 8));
}

// Files of 40, 61 and 30 tokens, whose numbers are their positions, in windows of two sequences of four. The windows of
// llm.c's loader (llmc/dataloader.h) begin with these, for two epochs and the beginning of the third.
TEST(LlmcOrder, IsThatOfItsLoader) {
  const std::vector<int32_t> begins = {117, 101, 109, 64, 56, 48, 88, 40, 80, 72, 24,  0,   8,   16, 24,
                                       8,   16,  0,   64, 88, 48, 40, 80, 72, 56, 101, 109, 117, 16, 0};
  const auto text = std::make_shared<MemoryTokens<uint8_t>>(counting(131));
  TrainBatches through(text, 4, kiln::llmcOrder({40, 101, 131}, 4, 2));
  EXPECT_EQ(through.sequencesPerPass(), 28);
  for (size_t i = 0; i < begins.size(); ++i) {
    const Batch window = through.sequences(2 * i, 2);
    std::vector<int32_t> want(8);
    std::iota(want.begin(), want.end(), begins[i]);
    EXPECT_EQ(window.tokens, want) << i;
  }
  EXPECT_EQ(through.sequences(0, 2).tokens[0], begins[0]) << "after later passes";
  expectError([] { kiln::llmcOrder({40, 48}, 4, 2); },
              {"expected at least 9 tokens in each file for 2 sequences of 4, but file 2 of 2 has 8"});
}

// Every byte of the validation text except the first is a target exactly once, in order.
TEST(Validation, EveryByteIsATargetOnce) {
  const auto text = std::make_shared<MemoryTokens<uint8_t>>(counting(43));
  std::vector<int32_t> targets;
  const int64_t sequences = validationSequences(43, 8);
  for (int64_t number = 0; number < sequences; ++number)
    for (int32_t target : validationBatch(*text, 8, {number}, 2).targets)
      if (target != ignoredTarget)
        targets.push_back(target);
  ASSERT_EQ(targets.size(), 42u);
  for (int i = 0; i < 42; ++i)
    EXPECT_EQ(targets[i], i + 1);
}

// Philox 4x32-10 on the counter and key of the authors' known-answer file (all ones).
TEST(Random, MatchesThePublishedVector) {
  const Random random(0xffffffffffffffff, static_cast<Stream>(0xffffffff));
  const std::array<uint32_t, 4> want = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
  EXPECT_EQ(random.block(0xffffffffffffffff, 0xffffffff), want);
}

// Another stream of the same seed gives other numbers.
TEST(Random, StreamsDiffer) { EXPECT_NE(Random(1, Stream::weights).block(0), Random(1, Stream::batches).block(0)); }

// below() reaches every value of a small range and none outside.
TEST(Random, BelowCoversItsRange) {
  const Random random(7, Stream::batches);
  std::array<int, 5> seen{};
  for (uint64_t i = 0; i < 200; ++i)
    ++seen.at(random.below(5, i));
  for (int count : seen)
    EXPECT_GT(count, 0);
}

// Mean and deviation of 100 000 normals: the mean's own deviation is σ/√n = 0.0063, that of the deviation σ/√2n =
// 0.0045; five of each are allowed.
TEST(Random, NormalsHaveTheirMoments) {
  const std::vector<float> values = Random(3, Stream::weights).normals(100000, 2.0, 0);
  double sum = 0, squares = 0;
  for (float value : values)
    sum += value, squares += double(value) * value;
  EXPECT_NEAR(sum / values.size(), 0, 0.032);
  EXPECT_NEAR(std::sqrt(squares / values.size()), 2.0, 0.023);
}

} // namespace
