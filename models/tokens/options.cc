// The flags of tokens, for CLI11.

#include "models/tokens/commands.h"
#include "models/train/flags.h"

namespace kiln {

static void addDocuments(CLI::App *app, DocumentOptions &o) {
  app->add_option("files", o.files, "texts, or JSON lines (.jsonl); also compressed (.gz, .bz2)")->required();
  app->add_option("--field", o.field, "field of JSON lines that has the text")->capture_default_str();
  addNumber<int>(app, "--threads", o.threads, "CPU threads (0: all cores)")->capture_default_str();
}

static CLI::App *addLearn(CLI::App &app, LearnOptions &o) {
  CLI::App *learn = app.add_subcommand("train", "learn a vocabulary from texts");
  addDocuments(learn, o);
  learn->add_option("--out", o.out, "folder for tokenizer.json, vocab.json and merges.txt")->required();
  learn
      ->add_option(
          "--style", o.style,
          "bytes; words: BPE of the characters of lower-case words; whole-words: one token per lower-case word")
      ->capture_default_str();
  addNumber<int64_t>(learn, "--merges", o.merges, "largest number of merges")->capture_default_str();
  addNumber<int64_t>(learn, "--words", o.words, "style whole-words: vocabulary size, the most frequent words")
      ->capture_default_str();
  addNumber<int64_t>(learn, "--min-count", o.leastCount,
                     "smallest number of occurrences of a merged pair or of a whole word")
      ->capture_default_str();
  learn->add_option(
      "--split", o.split,
      "with style bytes, the rule that splits a text into pieces: gpt2 (default), gpt4, llama3, or a regular "
      "expression");
  learn->add_option("--special", o.specials,
                    "special tokens, which follow all others (<|endoftext|>; words have <pad>, <s>, </s>, <unk>)");
  return learn;
}

static CLI::App *addEncode(CLI::App &app, EncodeOptions &o) {
  CLI::App *encode = app.add_subcommand("encode", "encode texts as tokens");
  addDocuments(encode, o);
  encode->add_option("--tokens", o.tokenizer, "bytes, a tokenizer's folder, its tokenizer.json, or llm.c's .bin")
      ->required();
  encode->add_option("--out,-o", o.out, "output file of tokens (.bin); default: their numbers are printed");
  addNumber<int64_t>(encode, "--shard-tokens", o.shardTokens,
                     "tokens per file; --out is then the beginning of the file names (0: one file)")
      ->capture_default_str();
  encode->add_flag("--validation-first", o.validationFirst, "the first file is named val, the others train");
  encode->add_flag("--allow-special", o.specials, "encode names of special tokens in a text as these tokens");
  encode->add_option(
      "--begin", o.begin,
      "special token before each document; '' for none (in files <|endoftext|>, <s>, or the only one that there is)");
  encode->add_option("--end", o.end, "special token after each document; '' for none (in files </s>)");
  return encode;
}

static CLI::App *addDecode(CLI::App &app, DecodeOptions &o) {
  CLI::App *decode = app.add_subcommand("decode", "decode tokens to text");
  decode->add_option("file", o.file, "file of tokens (.bin); default: numbers on standard input");
  decode->add_option("--tokens", o.tokenizer, "bytes, a tokenizer's folder, its tokenizer.json, or llm.c's .bin")
      ->required();
  return decode;
}

static CLI::App *addAbout(CLI::App &app, AboutOptions &o) {
  CLI::App *about = app.add_subcommand("info", "describe a tokenizer, or files of tokens");
  about->add_option("path", o.path, "a tokenizer, or files of tokens")->required();
  return about;
}

std::optional<TokensCommand> parseTokensCommand(int argc, const char *const *argv, const std::string &version) {
  return parseCommands<LearnOptions, EncodeOptions, DecodeOptions, AboutOptions>(
      "tokens", "Texts to tokens and back, by byte pairs", version, argc, argv, addLearn, addEncode, addDecode,
      addAbout);
}

} // namespace kiln
