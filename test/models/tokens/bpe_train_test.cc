// Training merges, compared with Hugging Face's tokenizers.

#include "test/expect_error.h"
#include "test/models/tokens/golden.h"

using namespace kiln;
using namespace kiln::test;

namespace {

// The merges are those of the library, one by one, and so are the numbers of the bytes: GPT-2's order.
TEST(BpeTrain, LearnsTheMergesOfHuggingFace) {
  const Vocabulary v = learnt();
  const auto &want = golden()["merges"];
  ASSERT_EQ(v.merges.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(bytesToLetters(v.tokens[v.merges[i].left]), want[i][0].get<std::string>()) << i;
    EXPECT_EQ(bytesToLetters(v.tokens[v.merges[i].right]), want[i][1].get<std::string>()) << i;
  }
  EXPECT_EQ(v.tokens[0], "!");
  EXPECT_EQ(v.tokens[255], "\xad");
}

// So they are for long pieces with spaces, numbers, multi-byte characters and runs of one letter.
TEST(BpeTrain, LearnsTheMergesOfLongPieces) {
  HashOfLists hash;
  for (const Merge &merge : crossing("gpt2").merges)
    hash.add(std::vector<int32_t>{merge.left, merge.right});
  EXPECT_EQ(hash.text(), golden()["crossing"].get<std::string>());
}

// A text in several calls, or cut for several threads, has the pieces of all of it.
TEST(BpeTrain, CountsDoNotDependOnThreads) {
  std::string text = golden()["text"];
  while (text.size() < size_t{3} << 20)
    text += text;
  PieceCounts one("gpt2"), several("gpt2");
  one.add(text, 1);
  several.add(text, 3);
  EXPECT_EQ(one.sorted(), several.sorted());
}

// In a run of one letter, pairs are merged from the beginning and do not overlap: aa aa a. Of the two pairs that are
// then equally frequent, the one with the smaller tokens is next.
TEST(BpeTrain, RunsAreMergedFromTheirBeginning) {
  PieceCounts counts("");
  counts.add("aaaaa", 1);
  counts.add("aaaaa", 1);
  const Vocabulary v = trainBpe(counts, {.merges = 10, .split = ""});
  const std::vector<std::string> made(v.tokens.begin() + 256, v.tokens.end());
  EXPECT_EQ(made, (std::vector<std::string>{"aa", "aaa", "aaaaa"}));
}

// No pair is merged that is less frequent than the minimum. An empty text gives the bytes alone.
TEST(BpeTrain, StopsWhereNothingIsFrequent) {
  PieceCounts counts("gpt2"), none("gpt2");
  counts.add("tone tone tone rita rita", 1);
  const Vocabulary v = trainBpe(counts, {.leastCount = 3});
  EXPECT_EQ(v.size(), 256 + 3);
  EXPECT_EQ(v.tokens.back(), "tone");
  EXPECT_EQ(trainBpe(none, {}).size(), 256);
}

TEST(BpeTrain, SpecialTokensDiffer) {
  const PieceCounts none("gpt2");
  for (const std::string special : {"", "a"})
    expectError([&] { trainBpe(none, {.specials = {special}}); },
                {"expected special tokens that differ from all others, but got '" + special + "'"});
}

} // namespace
