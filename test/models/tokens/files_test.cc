// Tokenizers in files: a written one is read back, by each of its names, and a truncated one is an error.

#include "models/tokens/files.h"
#include "models/tokens/tokenizer.h"
#include "test/expect_error.h"
#include "test/models/tokens/golden.h"

#include <filesystem>

using namespace kiln;
using namespace kiln::test;

namespace {

class TokenizerFiles : public testing::Test {
protected:
  /// One text of a file for another.
  void replace(const std::string &name, const std::string &from, const std::string &to) {
    std::string text = readText(folder / name);
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    writeText(folder / name, text.replace(at, from.size(), to));
  }
  void expectRefused(std::initializer_list<std::string> parts) {
    expectError([&] { readVocabulary(folder.path); }, parts);
  }

  const TemporaryFolder folder;
  const Vocabulary vocabulary = learnt("gpt2", {"<|endoftext|>"});
};

// A folder holds it twice: as tokenizer.json, and as GPT-2's two files, by either pair of names.
TEST_F(TokenizerFiles, AreReadAsTheyWereWritten) {
  writeVocabulary(folder.path, vocabulary);
  EXPECT_EQ(readVocabulary(folder.path), vocabulary);
  EXPECT_EQ(readVocabulary(folder / "tokenizer.json"), vocabulary);
  std::filesystem::remove(folder / "tokenizer.json");
  EXPECT_EQ(readVocabulary(folder.path), vocabulary);
  std::filesystem::rename(folder / "vocab.json", folder / "encoder.json");
  EXPECT_FALSE(hasVocabulary(folder.path));
  std::filesystem::rename(folder / "merges.txt", folder / "vocab.bpe");
  EXPECT_TRUE(hasVocabulary(folder.path));
  EXPECT_EQ(readVocabulary(folder.path), vocabulary);
}

// An expression other than GPT-2's, whole pieces and several special tokens are kept.
TEST_F(TokenizerFiles, KeepEveryPartOfAVocabulary) {
  Vocabulary other = learnt("llama3", {"<|b|>", "<|a|>"});
  other.wholePieces = true;
  writeVocabulary(folder.path, other);
  EXPECT_EQ(readVocabulary(folder.path), other);
  other.split = "";
  writeVocabulary(folder.path, other);
  EXPECT_EQ(readVocabulary(folder.path), other);
}

// Each change gives another identity of the vocabulary.
TEST_F(TokenizerFiles, HashesDiffer) {
  Vocabulary other = vocabulary;
  EXPECT_EQ(computeHash(other), computeHash(vocabulary));
  std::swap(other.merges[1], other.merges[2]);
  EXPECT_NE(computeHash(other), computeHash(vocabulary));
  other = vocabulary;
  other.split += "|x";
  EXPECT_NE(computeHash(other), computeHash(vocabulary));
  other = vocabulary;
  other.specials.clear();
  EXPECT_NE(computeHash(other), computeHash(vocabulary));
}

// llm.c's file has the bytes of tokens alone; their merges follow from the order of their numbers.
TEST_F(TokenizerFiles, ReadLlmc) {
  std::vector<int32_t> header(256);
  header[0] = 20240328;
  header[1] = 2;
  header[2] = static_cast<int32_t>(vocabulary.size());
  std::string file(reinterpret_cast<const char *>(header.data()), 1024);
  for (const std::string &token : vocabulary.tokens)
    file += static_cast<char>(token.size()) + token;
  const std::string path = folder / "tokenizer.bin";
  writeText(path, file);
  const Vocabulary got = readVocabulary(path);
  EXPECT_EQ(got.tokens, vocabulary.tokens);
  EXPECT_EQ(got.specials, vocabulary.specials);
  const std::string text = golden()["text"];
  EXPECT_EQ(Tokenizer(got).encode(text), Tokenizer(vocabulary).encode(text));

  writeText(path, file.substr(0, file.size() - 1));
  expectError([&] { readVocabulary(path); }, {"expected 513 tokens in '" + path + "', but it ends in number 512"});
  writeText(path, file + "x");
  expectError([&] { readVocabulary(path); },
              {"expected 513 tokens in", "but it has " + std::to_string(file.size() + 1)});
  writeText(path, file.substr(0, 1000));
  expectError([&] { readVocabulary(path); }, {"expected a tokenizer of llm.c", "but it has 1000 bytes"});
  file[0] ^= 1;
  writeText(path, file);
  expectError([&] { readVocabulary(path); },
              {"expected a tokenizer of llm.c (20240328, version 1 or 2)", "but got 20240329"});
}

// Files that are missing, damaged, or of another vocabulary.
TEST_F(TokenizerFiles, FilesThatAreNoneAreErrors) {
  expectRefused({"no tokenizer in '" + folder.path + "'; expected tokenizer.json"});
  writeVocabulary(folder.path, vocabulary);
  replace("tokenizer.json", R"("type":"BPE")", R"("type":"Unigram")");
  expectRefused({"field 'model.type'", R"(to be "BPE", but got "Unigram")"});
  writeVocabulary(folder.path, vocabulary);
  replace("tokenizer.json", R"("normalizer":null)", R"("normalizer":{"type":"NFC"})");
  expectRefused({"field 'normalizer'", "to be null"});
  writeVocabulary(folder.path, vocabulary);
  replace("tokenizer.json", R"("post_processor":{)",
          R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}}]},"other":{)");
  expectRefused({"field 'post_processor'", "to be one that adds no tokens to a text"});
  writeVocabulary(folder.path, vocabulary);
  replace("tokenizer.json", R"("add_prefix_space":false)", R"("add_prefix_space":true)");
  expectRefused({"'pre_tokenizer.add_prefix_space'", "to be false, but got true"});
  writeVocabulary(folder.path, vocabulary);
  const std::string whole = readText(folder / "tokenizer.json");
  writeText(folder / "tokenizer.json", whole.substr(0, whole.size() / 2));
  expectRefused({"tokenizer.json"});

  std::filesystem::remove(folder / "tokenizer.json");
  const std::string merges = readText(folder / "merges.txt");
  writeText(folder / "merges.txt", merges + "one two three\n");
  expectRefused({"expected two tokens in line 258 of", "but got 'one two three'"});
  writeText(folder / "merges.txt", merges + "zq zq\n");
  expectRefused({"whose two tokens and result are in the vocabulary, but got 'zq' and 'zq'"});
  writeText(folder / "merges.txt", merges);
  replace("vocab.json", "\"!\":0,", "");
  expectRefused({"expected a token for every byte, but there is none for 0x21"});
  replace("vocab.json", "\"#\":2,", "\"#\":-2,");
  expectRefused({"expected numbers of tokens below 16777216", "but got -2"});
  replace("vocab.json", "\"#\":-2,", "\"#\":3,");
  expectRefused({"expected one token of number 3", "but got two"});
}

} // namespace
