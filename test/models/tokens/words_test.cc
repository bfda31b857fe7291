// Tokens of words compared with a plain implementation (test/oracles/words.py), and their files.

#include "models/tokens/bpe_train.h"
#include "models/tokens/files.h"
#include "models/tokens/split.h"
#include "models/tokens/tokenizer.h"
#include "test/expect_error.h"
#include "test/paths.h"
#include "test/temporary_folder.h"

#include <nlohmann/json.hpp>

using namespace kiln;

namespace {

const nlohmann::json &goldenWords() {
  static const nlohmann::json json =
      nlohmann::json::parse(readText(kiln::test::sourcePath("test/models/tokens/words.json")));
  return json;
}

Vocabulary learntWords(TokenStyle style, int threads = 1) {
  PieceCounts counts(style, "");
  counts.add(goldenWords()["text"].get<std::string>(), threads);
  return trainBpe(counts, {.merges = 200, .words = 60});
}

std::vector<std::string> wordsOf(const std::string &text) {
  std::vector<std::string> words;
  forWords(text, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

// Words are those of Python's lower() and split(): spaces of all kinds, letters that become two, Σ at a word's end.
TEST(Words, AreThoseOfPython) {
  const auto &cases = goldenWords()["cases"];
  for (size_t i = 0; i < cases.size(); ++i)
    EXPECT_EQ(wordsOf(cases[i]), goldenWords()["words"][i].get<std::vector<std::string>>()) << cases[i];
}

// Each byte that is not UTF-8 becomes a replacement character.
TEST(Words, BytesThatAreNoTextAreReplaced) {
  EXPECT_EQ(wordsOf("A\xff\xc3 b"), (std::vector<std::string>{"a\ufffd\ufffd", "b"}));
}

// Tokens, their numbers and the merges are those of counting all pairs anew for each merge.
TEST(Words, LearnWhatCountingAnewLearns) {
  const Vocabulary v = learntWords(TokenStyle::words);
  EXPECT_EQ(v.tokens, goldenWords()["tokens"].get<std::vector<std::string>>());
  std::vector<Merge> merges;
  for (const auto &merge : goldenWords()["merges"])
    merges.push_back({merge[0], merge[1], merge[2]});
  EXPECT_EQ(v.merges, merges);
}

TEST(Words, WholeWordsAreTheMostFrequent) {
  EXPECT_EQ(learntWords(TokenStyle::wholeWords).tokens, goldenWords()["whole"].get<std::vector<std::string>>());
}

// Ids of known and unknown characters and words.
TEST(Words, AreEncodedAsMergingOneByOneDoes) {
  const Tokenizer pairs(learntWords(TokenStyle::words)), whole(learntWords(TokenStyle::wholeWords));
  const auto &cases = goldenWords()["cases"];
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(pairs.encode(cases[i].get<std::string>()), goldenWords()["ids"][i].get<std::vector<int32_t>>()) << i;
    EXPECT_EQ(whole.encode(cases[i].get<std::string>()), goldenWords()["whole_ids"][i].get<std::vector<int32_t>>())
        << i;
  }
}

// The number of threads changes neither the learnt merges nor the tokens.
TEST(Words, ThreadsChangeNothing) {
  EXPECT_EQ(learntWords(TokenStyle::words, 3), learntWords(TokenStyle::words));
  std::string text = goldenWords()["text"];
  while (text.size() < size_t{1} << 20)
    text += text;
  const Tokenizer tokenizer(learntWords(TokenStyle::words));
  EXPECT_EQ(tokenizer.encode(text, false, 3), tokenizer.encode(text));
}

// Decoding gives the lower-case words, with a space after each, also for special tokens.
TEST(Words, ComeBackWithSpaces) {
  for (const TokenStyle style : {TokenStyle::words, TokenStyle::wholeWords}) {
    const Tokenizer tokenizer(learntWords(style));
    std::vector<int32_t> ids = tokenizer.encode(" Seba\nREME ");
    ids.insert(ids.begin(), *documentMark(tokenizer.vocabulary()));
    ids.push_back(*documentEnd(tokenizer.vocabulary()));
    EXPECT_EQ(tokenizer.decode(ids), "<s> seba reme </s> ");
  }
}

// A text that spells a special token or the end of a word does not make it.
TEST(Words, NamesOfSpecialTokensAreLearntAsNothing) {
  for (const TokenStyle style : {TokenStyle::words, TokenStyle::wholeWords}) {
    PieceCounts counts(style, "");
    counts.add("<unk> <unk> <pad> <pad> a\u2581b a\u2581b le le", 1);
    const Vocabulary v = trainBpe(counts, {});
    EXPECT_EQ(std::count(v.tokens.begin(), v.tokens.end(), "<unk>"), 1);
    const Tokenizer tokenizer(v);
    for (const int32_t id : tokenizer.encode("<unk>"))
      EXPECT_NE(id, v.specials.at("<pad>"));
  }
}

TEST(Words, FilesAreReadAsTheyWereWritten) {
  for (const TokenStyle style : {TokenStyle::words, TokenStyle::wholeWords}) {
    const TemporaryFolder folder;
    const Vocabulary v = learntWords(style);
    writeVocabulary(folder.path, v);
    EXPECT_EQ(readVocabulary(folder.path), v);
  }
}

// The error for an unsupported normaliser, split or unknown token names the field.
TEST(Words, FilesOfOtherTokenizersAreErrors) {
  const TemporaryFolder folder;
  writeVocabulary(folder.path, learntWords(TokenStyle::wholeWords));
  const std::string path = folder / "tokenizer.json", text = readText(path);
  const auto replaced = [&](const std::string &from, const std::string &to) {
    std::string other = text;
    writeText(path, other.replace(other.find(from), from.size(), to));
    return [&] { readVocabulary(folder.path); };
  };
  expectError(replaced(R"({"type":"Lowercase"})", R"({"type":"NFC"})"), {"'normalizer'", "Lowercase"});
  expectError(replaced("WhitespaceSplit", "Whitespace"), {"'pre_tokenizer'", "WhitespaceSplit"});
  expectError(replaced(R"("unk_token":"<unk>")", R"("unk_token":"?")"), {"'model.unk_token'", R"("<unk>")"});
}

} // namespace
