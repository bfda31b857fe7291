// Files of tokens, and files that are packed.

#include "models/data/files.h"
#include "models/data/shards.h"
#include "test/expect_error.h"
#include "test/temporary_folder.h"

#include <bzlib.h>
#include <filesystem>
#include <numeric>
#include <zlib.h>

using namespace kiln;

namespace {

std::vector<int32_t> counting(int64_t count, int32_t from = 0) {
  std::vector<int32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), from);
  return tokens;
}

std::vector<int32_t> readAll(const TokenStream &stream, int64_t begin, int64_t count) {
  std::vector<int32_t> tokens(count);
  stream.read(begin, count, tokens.data());
  return tokens;
}

// Several files are one stream, in the order of their names, even if one is empty or has wider tokens than the others.
TEST(Shards, AreOneStream) {
  const TemporaryFolder folder;
  writeShard(folder / "a_0.bin", counting(100), 50257);
  writeShard(folder / "a_1.bin", {}, 50257);
  writeShard(folder / "a_2.bin", counting(7, 100), 70000);
  writeShard(folder / "a_3.bin", counting(50, 107), 65536);
  writeShard(folder / "b_0.bin", counting(3), 256);
  EXPECT_EQ(readText(folder / "a_0.bin").size(), 1024u + 200);
  EXPECT_EQ(readText(folder / "a_2.bin").size(), 1024u + 28);
  const TokenShards shards(folder / "a_*.bin", 157);
  ASSERT_EQ(shards.size(), 157);
  EXPECT_EQ(readAll(shards, 0, 157), counting(157));
  for (const int64_t begin : {0, 99, 100, 106, 107, 156})
    EXPECT_EQ(readAll(shards, begin, 157 - begin), counting(157 - begin, static_cast<int32_t>(begin)));
  EXPECT_EQ(readAll(StreamPart(std::make_shared<TokenShards>(folder / "a_*.bin", 157), 90, 30), 5, 20),
            counting(20, 95));
}

// The header is llm.c's: 20240520, 1, the tokens.
TEST(Shards, HaveTheHeaderOfLlmc) {
  const TemporaryFolder folder;
  writeShard(folder / "x.bin", counting(3, 500), 50257);
  const std::string file = readText(folder / "x.bin");
  const auto number = [&](size_t at) { return *reinterpret_cast<const int32_t *>(file.data() + at); };
  EXPECT_EQ(number(0), 20240520);
  EXPECT_EQ(number(4), 1);
  EXPECT_EQ(number(8), 3);
  EXPECT_EQ(file.substr(12, 1012), std::string(1012, '\0'));
  EXPECT_EQ(file.substr(1024), std::string("\xf4\x01\xf5\x01\xf6\x01", 6));
}

// Other tokens, another order and another length have another hash.
TEST(Shards, HashesDiffer) {
  const TemporaryFolder folder;
  const auto hashOf = [&](const std::vector<int32_t> &tokens) {
    writeShard(folder / "x.bin", tokens, 50257);
    return TokenShards(folder / "x.bin", 50257).hash();
  };
  const uint64_t one = hashOf(counting(10));
  EXPECT_EQ(hashOf(counting(10)), one);
  EXPECT_NE(hashOf(counting(10, 1)), one);
  EXPECT_NE(hashOf(counting(11)), one);
}

// A file that changes while a run reads it is an error that names it, and no signal.
TEST(Shards, FilesThatBecomeOthersAreErrors) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.bin";
  writeShard(path, counting(5000), 50257);
  const TokenShards shards(path, 50257);
  EXPECT_EQ(readAll(shards, 4990, 10), counting(10, 4990));
  std::filesystem::resize_file(path, 1024);
  expectError([&] { readAll(shards, 0, 10); }, {"expected '" + path + "' to have 11024 bytes", "but it has 1024"});
  std::filesystem::remove(path);
  expectError([&] { readAll(shards, 0, 10); }, {"expected a file '" + path + "', but there is none"});
}

// An invalid token at the beginning of a file is found at once, and one further on when it is read.
TEST(Shards, TokensThatAreNoneAreErrors) {
  const TemporaryFolder folder;
  std::vector<int32_t> tokens(2'000'000, 7);
  tokens[1'999'000] = 300;
  writeShard(folder / "late.bin", tokens, 65536);
  const TokenShards late(folder / "late.bin", 256);
  EXPECT_EQ(readAll(late, 1'998'000, 1000), std::vector<int32_t>(1000, 7));
  expectError([&] { readAll(late, 1'998'500, 1000); },
              {"expected tokens below 256 in '" + (folder / "late.bin") + "', but got 300"});
  tokens[1000] = 400;
  writeShard(folder / "early.bin", tokens, 65536);
  expectError([&] { TokenShards(folder / "early.bin", 256); }, {"expected tokens below 256", "but got 400"});
}

TEST(Shards, FilesThatAreNoneAreErrors) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.bin";
  const auto refused = [&](std::initializer_list<std::string> parts) {
    expectError([&] { TokenShards(path, 100); }, parts);
  };
  refused({"no file of tokens is named '" + path + "'"});
  writeText(path, "");
  refused({"expected a header of 1024 bytes in '" + path + "', but it has 0"});
  writeShard(path, counting(60), 100);
  const std::string whole = readText(path);
  writeText(path, whole.substr(0, whole.size() - 1));
  refused({"expected 60 tokens in 1144 bytes of '" + path + "', but it has 1143"});
  writeText(path, whole + "x");
  refused({"but it has 1145"});
  std::string other = whole;
  other[0] ^= 1;
  writeText(path, other);
  refused({"expected tokens (20240520, version 1; or 20240801, version 7)", "but got 20240521, version 1"});
  writeShard(path, counting(60, 41), 200);
  refused({"expected tokens below 100 in '" + path + "', but got 100"});
  writeShard(path, std::vector<int32_t>{-1}, 70000);
  refused({"but got 4294967295"});
  expectError([&] { TokenShards(folder.path, 100); },
              {"expected '" + folder.path + "' to be a file, but it is a folder"});
}

std::string gzipped(const std::string &text) {
  std::string packed(compressBound(text.size()) + 64, '\0');
  z_stream stream = {};
  deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(text.data()));
  stream.avail_in = text.size();
  stream.next_out = reinterpret_cast<Bytef *>(packed.data());
  stream.avail_out = packed.size();
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string bzipped(const std::string &text) {
  std::string packed(text.size() + text.size() / 100 + 600, '\0');
  auto size = static_cast<unsigned>(packed.size());
  BZ2_bzBuffToBuffCompress(packed.data(), &size, const_cast<char *>(text.data()), text.size(), 9, 0, 0);
  packed.resize(size);
  return packed;
}

// Files of one part and of several, longer than the decompression buffer, empty ones, and uncompressed ones.
TEST(Compressed, UnpacksWhatWasPacked) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 200000; ++i)
    text += std::to_string(i * 7919LL % 100003) + "\n";
  ASSERT_GT(text.size(), size_t{1} << 20);
  for (const std::string &some : {text, std::string(), std::string("a")}) {
    writeText(folder / "x.gz", gzipped(some));
    EXPECT_EQ(readUnpacked(folder / "x.gz"), some);
    writeText(folder / "x.gz", gzipped(some) + gzipped("b") + gzipped(some));
    EXPECT_EQ(readUnpacked(folder / "x.gz"), some + "b" + some);
    writeText(folder / "x.bz2", bzipped(some));
    EXPECT_EQ(readUnpacked(folder / "x.bz2"), some);
    writeText(folder / "x.bz2", bzipped(some) + bzipped("b") + bzipped(some));
    EXPECT_EQ(readUnpacked(folder / "x.bz2"), some + "b" + some);
    writeText(folder / "x", some);
    EXPECT_EQ(readUnpacked(folder / "x"), some);
  }
}

// A file that is truncated anywhere, has another format, or decompresses to more than the available memory.
TEST(Compressed, TornFilesAreErrors) {
  const TemporaryFolder folder;
  const std::string text = "tone le rita, tone le rita, mi lo", zeros(5000, '\0');
  for (const auto &[name, packed] : {std::pair{"x.gz", gzipped(text)}, {"x.bz2", bzipped(text)}}) {
    for (size_t size = 0; size < packed.size(); ++size) {
      writeText(folder / name, packed.substr(0, size));
      expectError([&] { readUnpacked(folder / name); },
                  {"expected a whole", "'" + (folder / name) + "' is cut off after"});
    }
    writeText(folder / name, text);
    expectError([&] { readUnpacked(folder / name); }, {"expected a whole", "is damaged"});
    writeText(folder / name, packed + "junk");
    expectError([&] { readUnpacked(folder / name); }, {"expected a whole"});
  }
  writeText(folder / "x.gz", gzipped(zeros));
  expectError([&] { readUnpacked(folder / "x.gz", 4999); },
              {"expected at most 4999 bytes in", "but it unpacks to more"});
  EXPECT_EQ(readUnpacked(folder / "x.gz", 5000), zeros);
}

} // namespace
