// The command line of `tokens`: training a tokenizer, encoding, decoding, and information.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
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

/// Reads the command line; see parseCommands() in models/train/flags.h.
std::optional<TokensCommand> parseTokensCommand(int argc, const char *const *argv, const std::string &version = "");

/// Each command does as its options say. Throws Error.
void learn(const LearnOptions &options);
void encode(const EncodeOptions &options);
void decode(const DecodeOptions &options);
void tellAbout(const AboutOptions &options);

} // namespace kiln
