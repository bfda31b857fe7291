// The command line of `tokens`: learning a vocabulary, encoding and decoding, and what there is to say about them.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace kiln {

/// Which documents: a text is one; of JSON lines each has one in a field; both may be packed (.gz, .bz2).
struct DocumentOptions {
  std::vector<std::string> files;
  std::string field = "text";
  int threads = 0; // 0: as many as there are cores
};

struct LearnOptions : DocumentOptions {
  std::string out;             // folder of the tokenizer
  std::string style = "bytes"; // words, whole-words
  int64_t merges = 30000, words = 30000, leastCount = 2;
  std::optional<std::string> split;                 // of bytes; gpt2 when not given
  std::optional<std::vector<std::string>> specials; // <|endoftext|> of bytes; words have theirs already
};

struct EncodeOptions : DocumentOptions {
  std::string tokenizer;            // bytes, a folder or a file
  std::string out;                  // files of tokens; none: numbers to standard output
  int64_t shardTokens = 0;          // of each file; 0: all in one
  bool validationFirst = false;     // the first file validates
  bool specials = false;            // their names in a text are they
  std::optional<std::string> begin; // special token before each document; in files documentMark()
  std::optional<std::string> end;   // and behind it; in files documentEnd()
};

struct DecodeOptions {
  std::string tokenizer, file; // a .bin; none: numbers from standard input
};

struct AboutOptions {
  std::string path; // a tokenizer, or files of tokens
};

using TokensCommand = std::variant<LearnOptions, EncodeOptions, DecodeOptions, AboutOptions>;

/// Reads the command line; see models/train/flags.h.
std::optional<TokensCommand> parseTokensCommand(int argc, const char *const *argv, const std::string &version = "");

/// Each does what its options say. Throws Error.
void learn(const LearnOptions &options);
void encode(const EncodeOptions &options);
void decode(const DecodeOptions &options);
void tellAbout(const AboutOptions &options);

} // namespace kiln
