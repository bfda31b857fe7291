// Tokens of texts compared with tiktoken's, and properties for any bytes.

#include "models/data/files.h"
#include "models/data/random.h"
#include "models/tokens/files.h"
#include "models/tokens/tokenizer.h"
#include "test/expect_error.h"
#include "test/models/tokens/golden.h"

#include <cstdlib>

using namespace kiln;
using namespace kiln::test;

namespace {

std::string randomBytes(int64_t count, uint64_t seed) {
  const Random random(seed, Stream::sampling);
  std::string bytes;
  for (int64_t i = 0; i < count; ++i)
    bytes += static_cast<char>(random.below(256, i));
  return bytes;
}

/// Words, spaces, numbers and lines of them.
std::string randomText(int64_t words, uint64_t seed) {
  static const char *const parts[] = {"tone", "le", "mi", " ", "\n", " rita", "17", ".", "'s", "\n\n", "é"};
  const Random random(seed, Stream::sampling);
  std::string text;
  for (int64_t i = 0; i < words; ++i)
    text += parts[random.below(std::size(parts), i)];
  return text;
}

// Ids are those of tiktoken with each of the named expressions: words, spaces of all kinds, marks, letters of two to
// four bytes, a program, and pieces long enough for the heap.
TEST(Tokenizer, HasTheIdsOfTiktoken) {
  const std::vector<std::string> cases = golden()["cases"];
  for (const auto &[name, ids] : golden()["ids"].items()) {
    const Tokenizer tokenizer(crossing(name));
    for (size_t i = 0; i < cases.size(); ++i)
      EXPECT_EQ(tokenizer.encode(cases[i]), ids[i].get<std::vector<int32_t>>()) << name << ": " << cases[i];
  }
}

// So are those of a hundred thousand random strings.
TEST(Tokenizer, HasTheIdsOfTiktokenForRandomStrings) {
  for (const auto &[name, want] : golden()["hashes"].items()) {
    const Tokenizer tokenizer(crossing(name));
    HashOfLists hash;
    forRandomStrings(golden()["strings"], [&](const std::string &text) { hash.add(tokenizer.encode(text)); });
    EXPECT_EQ(hash.text(), want.get<std::string>()) << name;
  }
}

// And real texts with GPT-2's own vocabulary.
TEST(Tokenizer, HasTheIdsOfTiktokenForRealTexts) {
  const char *const data = std::getenv("KILN_TEST_DATA");
  if (!data || !hasVocabulary(std::string(data) + "/gpt2-bpe"))
    GTEST_SKIP() << "KILN_TEST_DATA names no folder with gpt2-bpe, the vocabulary of GPT-2";
  const Tokenizer tokenizer(readVocabulary(std::string(data) + "/gpt2-bpe"));
  for (const auto &[name, want] : golden()["real"].items()) {
    const std::string text = name == "code" ? golden()["code"].get<std::string>() : readUnpacked(data + ("/" + name));
    const std::vector<int32_t> ids = tokenizer.encode(text);
    HashOfLists hash;
    hash.add(ids);
    EXPECT_EQ(std::ssize(ids), want["count"].get<int64_t>()) << name;
    EXPECT_EQ(hash.text(), want["hash"].get<std::string>()) << name;
  }
}

// For any bytes, valid UTF-8 or not, decoding restores them: a million short strings of random bytes, some of which
// begin multi-byte characters, and longer ones.
TEST(Tokenizer, GivesAnyBytesBack) {
  const Tokenizer tokenizer(learnt());
  uint64_t state = 1;
  std::string bytes;
  for (int i = 0; i < 1000000; ++i) {
    bytes.clear();
    for (uint64_t left = (state = mixed(state + 1)) % 12; left > 0; --left) {
      state = mixed(state + 1);
      bytes += static_cast<char>(state >> 8 & (state & 3 ? 0x7f : 0xff));
    }
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(bytes)), bytes) << i;
  }
  for (uint64_t seed = 0; seed < 200; ++seed) {
    bytes = seed % 2 ? randomBytes(1 + 7 * seed, seed) : randomText(seed, seed);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(bytes)), bytes) << seed;
  }
}

// Bytes that are not UTF-8 are a piece of their own. The text around them is split as if it stood alone.
TEST(Tokenizer, BytesThatAreNoTextStandForThemselves) {
  const Tokenizer tokenizer(learnt());
  for (const std::string bad : {"\xff", "\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\x80", "\x80\x80"}) {
    std::vector<int32_t> want = tokenizer.encode("tone le");
    for (const char byte : bad)
      want.push_back(byteTokens(tokenizer.vocabulary())[static_cast<uint8_t>(byte)]);
    const std::vector<int32_t> after = tokenizer.encode(" rita");
    want.insert(want.end(), after.begin(), after.end());
    EXPECT_EQ(tokenizer.encode("tone le" + bad + " rita"), want);
  }
}

// Long pieces, which are merged with a heap, have the tokens of applying the merges one by one.
TEST(Tokenizer, LongPiecesAreMergedInTheSameOrder) {
  Vocabulary v = learnt();
  v.split = "";
  const Tokenizer tokenizer(v);
  const std::string piece = randomText(400, 3) + std::string(99, 'a') + "--------";
  std::vector<int32_t> want;
  for (const char byte : piece)
    want.push_back(byteTokens(v)[static_cast<uint8_t>(byte)]);
  for (const Merge &merge : v.merges) {
    std::vector<int32_t> next;
    for (size_t i = 0; i < want.size(); ++i) {
      const bool meets = want[i] == merge.left && i + 1 < want.size() && want[i + 1] == merge.right;
      next.push_back(meets ? merge.result : want[i]);
      i += meets;
    }
    want = next;
  }
  EXPECT_EQ(tokenizer.encode(piece), want);
}

// Several threads have the result of one, in order, although they split the text at lines.
TEST(Tokenizer, ThreadsChangeNothing) {
  const Tokenizer tokenizer(learnt("gpt4", {"<|end|>"}));
  std::string text;
  for (uint64_t part = 0; part < 6; ++part)
    text += randomText(90000, part) + (part % 2 ? "<|end|>" : "\n") + randomBytes(100, part);
  ASSERT_GT(text.size(), size_t{4} << 18);
  EXPECT_EQ(tokenizer.encode(text, true, 3), tokenizer.encode(text, true));
}

// Names of special tokens are encoded as these tokens on request, the longest if several match, and otherwise as text.
TEST(Tokenizer, SpecialTokensAreAskedFor) {
  const Tokenizer tokenizer(learnt("gpt2", {"<|end|>", "<|end|>>", "<|a|>"}));
  const auto &specials = tokenizer.vocabulary().specials;
  std::vector<int32_t> want = {specials.at("<|a|>")};
  for (const int32_t id : tokenizer.encode("tone"))
    want.push_back(id);
  want.push_back(specials.at("<|end|>>"));
  want.push_back(specials.at("<|end|>"));
  EXPECT_EQ(tokenizer.encode("<|a|>tone<|end|>><|end|>", true), want);
  const std::vector<int32_t> plain = tokenizer.encode("<|a|>tone<|end|>><|end|>");
  for (const auto &[text, id] : specials)
    EXPECT_EQ(std::count(plain.begin(), plain.end(), id), 0) << text;
  EXPECT_EQ(tokenizer.decode(want), "<|a|>tone<|end|>><|end|>");
}

// With wholePieces, a piece that is a token becomes that token, even if its merges end in others.
TEST(Tokenizer, WholePiecesComeFirst) {
  Vocabulary v = learnt();
  v.tokens.push_back("zqzq");
  EXPECT_EQ(Tokenizer(v).encode("zqzq").size(), 4u);
  v.wholePieces = true;
  EXPECT_EQ(Tokenizer(v).encode("zqzq"), std::vector<int32_t>{static_cast<int32_t>(v.size() - 1)});
}

TEST(Tokenizer, NumbersThatAreNoTokensAreErrors) {
  const Tokenizer tokenizer(learnt());
  expectError([&] { tokenizer.decode(std::vector<int32_t>{0, 512}); },
              {"below 512, the size of the vocabulary, but got 512"});
  expectError([&] { tokenizer.decode(std::vector<int32_t>{-1}); }, {"but got -1"});
}

// An expression that PCRE2 refuses, and a vocabulary that lacks a byte or whose merges have another result.
TEST(Tokenizer, VocabulariesThatAreNoneAreErrors) {
  Vocabulary v = byteVocabulary();
  v.split = "(a";
  expectError([&] { Tokenizer tokenizer(v); },
              {"expected a regular expression", "'(a'", "missing closing parenthesis"});
  v = byteVocabulary();
  v.tokens.push_back("ab");
  v.merges = {{'a', 'c', 256}};
  expectError([&] { Tokenizer tokenizer(v); },
              {"expected merge 0 to join two tokens into a third", "97 and 99 for 256"});
  v.merges.clear();
  v.tokens['x'] = "xx";
  expectError([&] { Tokenizer tokenizer(v); }, {"a token for every byte", "0x78"});
}

// Matches of nothing, as an expression may have, cut nothing and end.
TEST(Tokenizer, EmptyMatchesAreNoPieces) {
  Vocabulary v = learnt();
  v.split = "b*";
  const Tokenizer tokenizer(v);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("éabba tone")), "éabba tone");
}

// --- Training merges, compared with Hugging Face's tokenizers --------------------------------------------------------

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
