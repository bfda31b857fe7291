// gpt2 on tokens: of a tokenizer, and in files.

#include "models/data/shards.h"
#include "models/tokens/bpe_train.h"
#include "models/tokens/files.h"
#include "models/tokens/tokenizer.h"
#include "test/models/gpt2/program.h"
#include "test/models/train/every_setting.h"

namespace {

class TokensTest : public ProgramTest {
protected:
  TokensTest() : tokens(learnt()) { kiln::writeVocabulary(tokenizer, tokens.vocabulary()); }
  kiln::Vocabulary learnt() const {
    kiln::PieceCounts counts("gpt2");
    counts.add(readText(data), 1);
    return kiln::trainBpe(counts, {.merges = 40, .specials = {"<|endoftext|>"}});
  }
  /// The losses of a run, followed by validation losses.
  static std::vector<double> losses(const std::string &run) {
    std::vector<double> all;
    for (const Json &row : rows(run))
      for (const char *name : {"loss", "val_loss"})
        if (row.contains(name))
          all.push_back(row[name]);
    return all;
  }
  /// A file of tokens, `lines.bin`, of documents of different lengths, some of them empty.
  void writeDocuments() const {
    std::vector<int32_t> all;
    std::istringstream lines(readText(data));
    for (std::string line; std::getline(lines, line);) {
      all.push_back(tokens.vocabulary().specials.at("<|endoftext|>"));
      const std::vector<int32_t> document = tokens.encode(line.substr(0, (line.size() + all.size()) % 7 * 3));
      all.insert(all.end(), document.begin(), document.end());
    }
    kiln::writeShard(folder / "lines.bin", all, tokens.size());
  }

  const std::string tokenizer = folder / "tokenizer", other = folder / "other";
  const kiln::Tokenizer tokens;
};

// A run has its tokenizer's vocabulary and keeps its files. It resumes with them, and samples text with them.
TEST_F(TokensTest, ATokenizerIsTrainedWith) {
  ASSERT_EQ(train(out, {"--tokens", tokenizer, "--steps", "4"}).status, 0);
  EXPECT_EQ(Json::parse(readText(out + "/config.json"))["vocab_size"], tokens.size());
  EXPECT_EQ(kiln::readVocabulary(out), tokens.vocabulary());
  ASSERT_EQ(train(other, {"--tokens", tokenizer, "--steps", "4", "--stop-after", "2"}).status, 0);
  const Result r = gpt2({"train", "--data", data, "--out", other, "--resume", "--device", kiln::test::firstDevice()});
  ASSERT_EQ(r.status, 0) << r.output;
  EXPECT_EQ(losses(other), losses(out));
  for (const std::string &from : {out, out + "/checkpoint-00000004"}) {
    const Result text = gpt2({"sample", "--out", from, "--prompt", "line 5", "--tokens", "10"});
    EXPECT_EQ(text.status, 0) << text.output;
    EXPECT_TRUE(text.output.starts_with("line 5")) << text.output;
    EXPECT_EQ(text.output, gpt2({"sample", "--out", out, "--prompt", "line 5", "--tokens", "10"}).output);
  }
}

// Token files, one or several, give the stream that the tokenizer makes of the text: equal bits.
TEST_F(TokensTest, FilesOfTokensAreTheTextsTokens) {
  const std::vector<int32_t> all = tokens.encode(readText(data));
  const std::span<const int32_t> span = all;
  kiln::writeShard(folder / "all_0.bin", span.first(1000), tokens.size());
  kiln::writeShard(folder / "all_1.bin", span.subspan(1000), tokens.size());
  ASSERT_EQ(train(out, {"--tokens", tokenizer, "--steps", "3"}).status, 0);
  const Result r = train(other, {"--tokens", tokenizer, "--steps", "3", "--data", folder / "all_*.bin"});
  ASSERT_EQ(r.status, 0) << r.output;
  EXPECT_EQ(losses(other), losses(out));
}

// Without a tokenizer, token files require only a vocabulary size. Other files are used for validation if named.
TEST_F(TokensTest, FilesNeedNoTokenizer) {
  kiln::writeShard(folder / "train.bin", tokens.encode(readText(data)), tokens.size());
  kiln::writeShard(folder / "held.bin", tokens.encode("line 3 of the text, line 4 of the text\n"), tokens.size());
  const std::vector<std::string> words = {"--data",       folder / "train.bin", "--steps", "2",
                                          "--validation", folder / "held.bin",  "--vocab", "320"};
  const Result r = train(out, words);
  ASSERT_EQ(r.status, 0) << r.output;
  EXPECT_FALSE(kiln::hasVocabulary(out));
  EXPECT_EQ(losses(out).size(), 3u);
  std::vector<std::string> narrow = words;
  narrow.back() = "100";
  expectMistake(train(other, narrow), "expected tokens below 100 in '" + (folder / "train.bin") + "', but got");
}

// If a word's token includes the following space, the text follows the prompt's last word and a space. A prompt that
// ends with a space gets no second one.
TEST_F(TokensTest, APromptOfWordsKeepsItsSpace) {
  kiln::PieceCounts counts(kiln::TokenStyle::wholeWords, "");
  counts.add(readText(data), 1);
  const kiln::Vocabulary words = kiln::trainBpe(counts, {.words = 50});
  kiln::writeVocabulary(folder / "words", words);
  ASSERT_EQ(train(out, {"--tokens", folder / "words", "--steps", "2"}).status, 0);
  const auto written = [&](const std::string &prompt) {
    return gpt2({"sample", "--out", out, "--prompt", prompt, "--tokens", "4", "--temperature", "0"}).output;
  };
  const std::string text = written("the text");
  EXPECT_TRUE(text.starts_with("the text ") && text[9] != ' ') << text;
  EXPECT_EQ(written("the text "), text);
}

// A resumed run keeps every setting, and may change any.
TEST_F(TokensTest, EverySettingGoesOn) {
  writeDocuments();
  const std::vector<std::string> documents = {"--data", folder / "lines.bin", "--tokens", tokenizer};
  std::vector<SettingGroup> groups = {
      commonSettings({"batch-tokens"}),
      scaledSettings({{"batching", "packed", "packed"}, {"pack", "0.5", "0.8"}, {"positions", "run-on", "restart"}}),
      narrowSettings({{"batching", "packed", "padded"}})};
  groups[0].settings.push_back({"order", "llmc", "shuffled"});
  groups[1].more = groups[2].more = documents;
  expectEverySettingGoesOn(folder / "settings", groups, {{"batch-tokens", "100", "--batch-tokens requires pairs"}},
                           [&](const std::string &to, const auto &flags) { return train(to, flags); });
}

// Documents of different lengths, each in a sequence of its own or packed, with dropout. A resumed run has equal bits.
// Each way of batching has other losses. Messages count cut or empty documents.
TEST_F(TokensTest, DocumentsArePaddedOrPacked) {
  writeDocuments();
  const std::vector<std::string> words = {"--data", folder / "lines.bin", "--tokens", tokenizer, "--steps",
                                          "4",      "--accumulate",       "2"};
  std::vector<std::vector<double>> ways;
  for (const std::vector<std::string> &way : std::vector<std::vector<std::string>>{
           {},
           {"--batching", "padded"},
           {"--batching", "packed", "--dropout-attention", "0.1", "--samples", "1"},
           {"--batching", "packed", "--positions", "run-on", "--pack", "0.3", "--dropout", "0.1"}}) {
    const std::string number = std::to_string(ways.size()), whole = folder / "whole" + number,
                      halved = folder / "halved" + number;
    const std::vector<std::string> all = joined(words, way);
    const Result r = train(whole, all);
    ASSERT_EQ(r.status, 0) << r.output;
    for (const char *told : {"documents are longer than the context of 8, and are cut",
                             "documents are empty, and teach nothing but their end"})
      EXPECT_EQ(r.output.find(told) != std::string::npos, !way.empty());
    ASSERT_EQ(train(halved, joined(all, {"--stop-after", "2"})).status, 0);
    ASSERT_EQ(gpt2({"train", "--data", folder / "lines.bin", "--out", halved, "--resume", "--device",
                    kiln::test::firstDevice()})
                  .status,
              0);
    EXPECT_EQ(losses(halved), losses(whole));
    const std::string want = fmt::format("loss {:.4f}, ", losses(whole).back());
    const Result evaluated = gpt2({"eval", "--out", whole, "--data", folder / "lines.bin"});
    EXPECT_EQ(evaluated.output.substr(0, want.size()), want);
    EXPECT_EQ(evaluated.output.ends_with(way.empty()          ? "tokens\n"
                                         : way[1] == "padded" ? ", each document alone\n"
                                                              : ", documents packed\n"),
              true)
        << evaluated.output;
    EXPECT_EQ(std::find(ways.begin(), ways.end(), losses(whole)), ways.end());
    ways.push_back(losses(whole));
  }
  EXPECT_EQ(gpt2({"eval", "--out", folder / "whole3", "--data", data, "--batching", "stream"}).status, 0);
  std::vector<std::string> plain = words; // whose kernels depend on a length
  plain.insert(plain.end(), {"--batching", "padded", "--attention", "plain"});
  EXPECT_EQ(train(folder / "plain", plain).status, 0);
  expectMistake(train(folder / "bytes", {"--batching", "padded"}),
                "or exactly one special token, but got 0 special tokens");
  expectMistake(train(folder / "bytes", {"--tokens", tokenizer, "--batching", "padded"}),
                "expected documents in '" + data + "', each of which begins with token");
  std::vector<int32_t> one = tokens.encode(readText(data)); // a document that reaches into what validates
  one.insert(one.begin(), tokens.vocabulary().specials.begin()->second);
  kiln::writeShard(folder / "one.bin", one, tokens.size());
  expectMistake(train(folder / "one", {"--data", folder / "one.bin", "--tokens", tokenizer, "--batching", "padded"}),
                "expected documents in the last tenth of '" + (folder / "one.bin") + "', each of which begins with");
  expectMistake(gpt2({"eval", "--out", out, "--data", data, "--scores", folder / "scores"}),
                "--scores requires --hellaswag");
  expectMistake(gpt2({"eval", "--out", folder / "whole0", "--data", folder / "lines.bin", "--pack", "0.5"}),
                "--pack requires --batching packed, but got --batching stream");
  expectMistake(gpt2({"eval", "--out", folder / "whole0", "--hellaswag", data, "--batching", "padded"}),
                "--batching requires --data or --validation");
  expectMistake(train(folder / "bytes", {"--batching", "packed", "--pack", "0"}), "expected '--pack' to be above 0");
  expectMistake(train(folder / "bytes", {"--positions", "fixed"}),
                "expected '--positions' to be one of run-on, restart, but got 'fixed'");
}

TEST_F(TokensTest, TokensThatDoNotFitAreRefused) {
  expectMistake(train(out, {"--tokens", folder / "none"}), "none");
  expectMistake(train(out, {"--tokens", tokenizer, "--vocab", "200"}),
                "expected a vocabulary of at least 297, the size of the tokenizer, but got 200");
  expectMistake(train(out, {"--validation", data}), "--validation requires token files (.bin), but --data is");
  expectMistake(train(out, {"--data", folder / "none_*.bin"}), "no file of tokens is named");
  kiln::writeShard(folder / "short.bin", std::vector<int32_t>(89), 256);
  expectMistake(train(out, {"--data", folder / "short.bin"}), "expected at least 90 tokens in");
  ASSERT_EQ(train(out, {"--steps", "1"}).status, 0);
  expectMistake(train(out, {"--resume", "--tokens", tokenizer}), "is not the tokenizer of the run");
}

} // namespace
