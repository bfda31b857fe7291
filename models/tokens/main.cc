// tokens: trains tokenizers, encodes and decodes texts. Exit statuses are those of gpt2.

#include "dialect/dsl/Types.h"
#include "models/data/files.h"
#include "models/data/json.h"
#include "models/data/shards.h"
#include "models/data/text.h"
#include "models/tokens/bpe_train.h"
#include "models/tokens/files.h"
#include "models/tokens/split.h"
#include "models/tokens/tokenizer.h"
#include "models/train/flags.h"
#include "runtime/Streams.h"
#include "runtime/Version.h"

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fmt/format.h>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

namespace kiln {

/// Input documents: a text file is one; each JSON line has one in a field; both may be compressed (.gz, .bz2).
struct DocumentOptions {
  std::vector<std::string> files;
  std::string field = "text";
  int threads = 0; // 0: all cores
};

struct LearnOptions : DocumentOptions {
  std::string out;             // folder of the tokenizer
  std::string style = "bytes"; // words, whole-words
  int64_t merges = 30000, words = 30000, leastCount = 2;
  std::optional<std::string> split;                 // of style bytes; default: gpt2
  std::optional<std::vector<std::string>> specials; // of style bytes, default <|endoftext|>; words have their own
};

struct EncodeOptions : DocumentOptions {
  std::string tokenizer;            // bytes, or a folder or file
  std::string out;                  // token file; none: prints numbers
  int64_t shardTokens = 0;          // tokens of each file; 0: one file
  bool validationFirst = false;     // the first file is the validation set
  bool specials = false;            // names of special tokens in a text become these tokens
  std::optional<std::string> begin; // special token before each document; default in files: documentMark()
  std::optional<std::string> end;   // special token after each document; default in files: documentEnd()
};

struct DecodeOptions {
  std::string tokenizer, file; // a .bin; none: numbers from standard input
};

struct AboutOptions {
  std::string path; // a tokenizer, or token files
};

using TokensCommand = std::variant<LearnOptions, EncodeOptions, DecodeOptions, AboutOptions>;

//===-- Flags ---------------------------------------------------------------------------------------------------===//

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

/// Reads the command line; see parseCommands() in models/train/flags.h.
static std::optional<TokensCommand> parseTokensCommand(int argc, const char *const *argv, const std::string &version) {
  return parseCommands<LearnOptions, EncodeOptions, DecodeOptions, AboutOptions>(
      "tokens", "Texts to tokens and back, by byte pairs", version, argc, argv, addLearn, addEncode, addDecode,
      addAbout);
}

//===-- Commands ------------------------------------------------------------------------------------------------===//

static int chooseThreads(const DocumentOptions &options) {
  if (options.threads < 0)
    throw Error(fmt::format("expected '--threads' to be at least 0, but got {}", options.threads));
  return options.threads > 0 ? options.threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// Calls `take` for every document. Bytes that are not UTF-8, as in Latin-1 texts, are taken unchanged, with a warning
/// that says where they are.
static void forDocuments(const DocumentOptions &options, const std::function<void(std::string_view)> &take) {
  for (const std::string &path : options.files) {
    const std::string text = readUnpacked(path, mostTextBytes());
    if (path.find(".jsonl") == std::string::npos) {
      if (const size_t valid = validUtf8(text, 0); valid < text.size())
        say(fmt::format("tokens: note: '{}' has invalid UTF-8 at byte {}; each invalid byte is a character\n", path,
                        valid));
      take(text);
      continue;
    }
    int64_t number = 0;
    forLines(text, [&](std::string_view line) {
      ++number;
      if (line.find_first_not_of(" \t\r") != std::string::npos)
        take(JsonObject(fmt::format("{}:{}", path, number), std::string(line)).text(options.field));
    });
  }
}

static TokenStyle styleNamed(const std::string &name) {
  static const std::map<std::string, TokenStyle> styles = {
      {"bytes", TokenStyle::bytes}, {"words", TokenStyle::words}, {"whole-words", TokenStyle::wholeWords}};
  const auto found = styles.find(name);
  if (found == styles.end())
    throw Error(fmt::format("expected '--style' to be bytes, words or whole-words, but got '{}'", name));
  return found->second;
}

static void learn(const LearnOptions &options) {
  const auto expectAtLeast = [](const char *flag, int64_t least, int64_t value) {
    if (value < least)
      throw Error(fmt::format("expected '{}' to be at least {}, but got {}", flag, least, value));
  };
  expectAtLeast("--merges", 0, options.merges);
  expectAtLeast("--words", 1, options.words);
  expectAtLeast("--min-count", 1, options.leastCount);
  const TokenStyle style = styleNamed(options.style);
  if (style != TokenStyle::bytes && options.split)
    throw Error(fmt::format("--split requires --style bytes; {} are split at white space", options.style));
  BpeSettings settings = {.merges = options.merges, .words = options.words, .leastCount = options.leastCount};
  settings.split = options.split.value_or(settings.split);
  settings.specials = options.specials.value_or(style == TokenStyle::bytes ? std::vector<std::string>{"<|endoftext|>"}
                                                                           : std::vector<std::string>());
  PieceCounts counts(style, settings.split);
  forDocuments(options, [&](std::string_view text) { counts.add(text, chooseThreads(options)); });
  const Vocabulary vocabulary = trainBpe(counts, settings);
  writeVocabulary(options.out, vocabulary);
  writeResult(fmt::format("{} tokens, {} merges, from {} different pieces, in '{}'\n", vocabulary.size(),
                          vocabulary.merges.size(), counts.different(), options.out));
}

namespace {
/// Writes token files; the last one is written at the end of input.
class ShardFiles {
public:
  ShardFiles(const EncodeOptions &options, int64_t vocab) : options(options), vocab(vocab) {}

  void add(const std::vector<int32_t> &tokens) {
    waiting.insert(waiting.end(), tokens.begin(), tokens.end());
    size_t begin = 0;
    for (; options.shardTokens > 0 && std::ssize(waiting) - static_cast<int64_t>(begin) >= options.shardTokens;
         begin += options.shardTokens)
      write(std::span(waiting).subspan(begin, options.shardTokens));
    waiting.erase(waiting.begin(), waiting.begin() + static_cast<int64_t>(begin));
  }
  void finish() {
    if (!waiting.empty() || written == 0)
      write(waiting);
  }
  int64_t files() const { return written; }
  int64_t tokens() const { return all; }

private:
  void write(std::span<const int32_t> tokens) {
    const char *const part = options.validationFirst ? written == 0 ? "_val" : "_train" : "";
    writeShard(options.shardTokens > 0 ? fmt::format("{}{}_{:06}.bin", options.out, part, written) : options.out,
               tokens, vocab);
    ++written;
    all += std::ssize(tokens);
  }

  const EncodeOptions &options;
  const int64_t vocab;
  std::vector<int32_t> waiting;
  int64_t written = 0, all = 0;
};
} // namespace

/// Throws if files of a set of this name exist: those beyond a smaller new set would remain and be trained on.
static void expectNoShards(const std::string &name) {
  const std::filesystem::path path = name;
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const std::string stem = path.filename();
  std::error_code failure;
  for (const auto &entry : std::filesystem::directory_iterator(folder, failure)) {
    std::string rest = entry.path().filename();
    if (!rest.starts_with(stem) || !rest.ends_with(".bin"))
      continue;
    rest = rest.substr(stem.size(), rest.size() - stem.size() - 4);
    for (const std::string_view part : {"_val", "_train"})
      if (rest.starts_with(part))
        rest.erase(0, part.size());
    if (rest.size() > 6 && rest[0] == '_' && rest.find_first_not_of("0123456789", 1) == std::string::npos)
      throw Error(fmt::format("expected no files of a set '{}' yet, but '{}' exists; remove the set, or choose another "
                              "name",
                              name, entry.path().string()));
  }
}

/// The token that the options name; without a name, the vocabulary's, for files only.
static std::optional<int32_t> findSpecial(const EncodeOptions &options, const Vocabulary &vocabulary,
                                          const std::optional<std::string> &name, const std::optional<int32_t> &own) {
  if (!name)
    return options.out.empty() ? std::nullopt : own;
  if (name->empty())
    return {};
  const auto found = vocabulary.specials.find(*name);
  if (found == vocabulary.specials.end())
    throw Error(fmt::format("expected a special token of '{}', but got '{}'", options.tokenizer, *name));
  return found->second;
}

static void encode(const EncodeOptions &options) {
  if (options.shardTokens < 0)
    throw Error(fmt::format("expected '--shard-tokens' to be at least 0, but got {}", options.shardTokens));
  if (!options.out.empty() && options.shardTokens == 0 && !namesShards(options.out))
    throw Error(fmt::format("expected the name of a token file to end in .bin, but got '{}'", options.out));
  if (options.shardTokens > 0)
    expectNoShards(options.out);
  const Tokenizer tokenizer(readVocabulary(options.tokenizer));
  const Vocabulary &vocabulary = tokenizer.vocabulary();
  const std::optional<int32_t> first = findSpecial(options, vocabulary, options.begin, documentMark(vocabulary)),
                               last = findSpecial(options, vocabulary, options.end, documentEnd(vocabulary));
  ShardFiles files(options, tokenizer.size());
  forDocuments(options, [&](std::string_view text) {
    std::vector<int32_t> tokens = tokenizer.encode(text, options.specials, chooseThreads(options));
    if (first)
      tokens.insert(tokens.begin(), *first);
    if (last)
      tokens.push_back(*last);
    if (!options.out.empty())
      return files.add(tokens);
    std::string line;
    for (const int32_t token : tokens)
      line += (line.empty() ? "" : " ") + std::to_string(token);
    writeResult(line + "\n");
  });
  if (options.out.empty())
    return;
  files.finish();
  writeResult(
      fmt::format("{} tokens in {} {}\n", files.tokens(), files.files(), files.files() == 1 ? "file" : "files"));
}

/// The numbers on standard input, separated by white space.
static std::vector<int32_t> readNumbers() {
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  std::vector<int32_t> numbers;
  const char *at = text.data(), *const end = at + text.size();
  while (true) {
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t' || *at == ','))
      ++at;
    if (at == end)
      return numbers;
    int32_t number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc())
      throw Error(fmt::format("expected numbers of tokens on standard input, but got '{}'",
                              std::string(at, std::min<size_t>(end - at, 20))));
    numbers.push_back(number);
    at = next;
  }
}

static void decode(const DecodeOptions &options) {
  const Tokenizer tokenizer(readVocabulary(options.tokenizer));
  if (options.file.empty())
    return writeResult(tokenizer.decode(readNumbers()));
  const TokenShards shards(options.file, tokenizer.size());
  std::vector<int32_t> some;
  for (int64_t at = 0; at < shards.size(); at += std::ssize(some)) {
    some.resize(std::min<int64_t>(shards.size() - at, 1 << 20));
    shards.read(at, std::ssize(some), some.data());
    writeResult(tokenizer.decode(some));
  }
}

/// A token in printable form: bytes other than visible ASCII as \xNN.
static std::string shown(const std::string &bytes) {
  std::string text;
  for (const char byte : bytes)
    text += byte >= ' ' && byte < 0x7f ? std::string(1, byte) : fmt::format("\\x{:02x}", static_cast<uint8_t>(byte));
  return "'" + text + "'";
}

static void tellAbout(const AboutOptions &options) {
  std::error_code ignored;
  if (namesShards(options.path) && !isLlmcTokenizer(options.path)) {
    const TokenShards shards(options.path, int64_t{1} << 32);
    return writeResult(fmt::format("tokens       {}\nbytes        {}\n", shards.size(), shards.bytes()));
  }
  const Vocabulary v = readVocabulary(options.path);
  size_t longest = 0, count = 0;
  for (const std::string &token : v.tokens) {
    longest = std::max(longest, v.specials.contains(token) ? 0 : token.size());
    count += !token.empty();
  }
  std::string text = fmt::format("tokens       {}\nmerges       {}\nlongest      {} bytes\nspecial     ", count,
                                 v.merges.size(), longest);
  for (const auto &[name, id] : v.specials)
    text += fmt::format(" {} {}", shown(name), id);
  const char *const styles[] = {"bytes", "words", "whole words"};
  text += fmt::format("\nstyle        {}\n", styles[static_cast<int>(v.style)]);
  if (v.style == TokenStyle::bytes)
    text += fmt::format("expression   {}\n", v.split.empty() ? "none" : v.split);
  text += fmt::format("hash         {:016x}\n", computeHash(v));
  writeResult(text);
}

} // namespace kiln

using namespace kiln;

namespace {
/// One function for each command.
struct Run {
  void operator()(const LearnOptions &options) const { learn(options); }
  void operator()(const EncodeOptions &options) const { encode(options); }
  void operator()(const DecodeOptions &options) const { decode(options); }
  void operator()(const AboutOptions &options) const { tellAbout(options); }
};
} // namespace

int main(int argc, char **argv) {
  return runProgram("tokens", [=] {
    if (const std::optional<TokensCommand> command = parseTokensCommand(argc, argv, versionText("tokens")))
      std::visit(Run(), *command);
    return 0;
  });
}
