// The safetensors format: written tensors are read back, and any damage to a file is an error.

#include "models/data/files.h"
#include "models/data/safetensors.h"
#include "test/expect_error.h"
#include "test/models/file_size_limit.h"
#include "test/temporary_folder.h"

#include <cmath>
#include <cstring>

using namespace kiln;

namespace {

class SafetensorsTest : public testing::Test {
protected:
  void SetUp() override { writeSafetensors(path, {{"a", f32, {2, 3}, a}, {"b", i32, {4}, b}}, {{"format", "pt"}}); }

  TemporaryFolder folder;
  const std::string path = folder / "file.safetensors";
  const float a[6] = {1, 2, 3, 4, 5, 6};
  const int32_t b[4] = {7, 8, 9, 10};
};

TEST_F(SafetensorsTest, ReadsWhatWasWritten) {
  const Safetensors file(path);
  float gotA[6];
  int32_t gotB[4];
  file.read("b", i32, {4}, gotB);
  file.read("a", f32, {2, 3}, gotA);
  EXPECT_EQ(std::memcmp(a, gotA, sizeof a), 0);
  EXPECT_EQ(std::memcmp(b, gotB, sizeof b), 0);
  EXPECT_EQ(file.metadata().at("format"), "pt");
}

// A tensor that a header has twice could be read as either.
TEST_F(SafetensorsTest, ATensorTwiceIsAnError) {
  std::string bytes = readText(path);
  bytes.replace(bytes.find("\"b\":"), 4, "\"a\":");
  writeText(path, bytes);
  expectError([&] { Safetensors file(path); }, {"expected every field once in '" + path + "', but got \"a\" twice"});
}

// By every function with which the models read a file.
TEST_F(SafetensorsTest, WhatIsNoFileIsRefused) {
  expectError([&] { Safetensors file(folder.path); }, {"to be a file, but it is a folder"});
  expectError([&] { readFile(folder.path); }, {"to be a file, but it is a folder"});
}

// The header's length is in the first eight bytes, and the data begin at a multiple of eight, as the format requires.
TEST_F(SafetensorsTest, LaysOutTheHeader) {
  const std::string bytes = readText(path);
  uint64_t length;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  EXPECT_EQ(bytes.size(), 8 + length + 40);
  EXPECT_EQ(bytes[8], '{');
}

// A file cut after any number of its bytes is refused when it is opened.
TEST_F(SafetensorsTest, CutAnywhereItIsRefused) {
  const std::string bytes = readText(path);
  for (size_t size = 0; size < bytes.size(); ++size) {
    writeText(path, bytes.substr(0, size));
    expectError([&] { Safetensors file(path); }, {"expected", path, size < 8 ? "but the file has" : "bytes"});
  }
}

TEST_F(SafetensorsTest, BytesBehindTheEndAreRefused) {
  writeText(path, readText(path) + "x");
  expectError([&] { Safetensors file(path); }, {"expected 40 bytes of tensors", "but got 41"});
}

TEST_F(SafetensorsTest, AHeaderThatIsNoJsonIsRefused) {
  std::string bytes = readText(path);
  bytes[8] = '[';
  writeText(path, bytes);
  expectError([&] { Safetensors file(path); }, {path + "' is no JSON object"});
}

// If the header's length exceeds the file, the reader does not allocate that much memory.
TEST_F(SafetensorsTest, AnAbsurdHeaderLengthIsRefused) {
  std::string bytes = readText(path);
  std::memset(bytes.data(), 0xff, 8);
  writeText(path, bytes);
  expectError([&] { Safetensors file(path); }, {"expected a header of 18446744073709551615 bytes"});
}

// A header that a file does hold is bounded too, and so is its nesting.
TEST_F(SafetensorsTest, AHeaderBeyondReasonIsRefused) {
  const auto refuse = [&](const std::string &header, const char *message) {
    const uint64_t length = header.size();
    writeText(path, std::string(reinterpret_cast<const char *>(&length), 8) + header);
    expectError([&] { Safetensors file(path); }, {message, path});
  };
  refuse("{}" + std::string(64 << 20, ' '), "expected a header of at most 67108864 bytes");
  refuse("{\"a\": " + std::string(100000, '['), "to be nested at most 64 deep");
}

// A tensor with a checksum is compared with it when it is read, and by verify(); one without is not.
TEST_F(SafetensorsTest, ChecksumsFindDamage) {
  const std::vector<HostTensor> tensors = {{"a", f32, {2, 3}, a}, {"b", i32, {4}, b}};
  writeSafetensors(path, tensors, computeChecksums({tensors[0]}));
  EXPECT_NO_THROW(Safetensors(path).verify());
  const std::string whole = readText(path);
  float gotA[6];
  int32_t gotB[4];
  for (size_t at = whole.size() - 40; at < whole.size(); ++at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    writeText(path, bytes);
    const Safetensors file(path);
    EXPECT_NO_THROW(file.read("b", i32, {4}, gotB));
    if (at < whole.size() - 16) {
      expectError([&] { file.read("a", f32, {2, 3}, gotA); }, {"expected tensor 'a'", "the file is damaged"});
      expectError([&] { file.verify(); }, {"expected tensor 'a'"});
    } else {
      EXPECT_NO_THROW(file.verify());
    }
  }
}

// So is a tensor that is converted during reading, in parts or at once.
TEST_F(SafetensorsTest, ChecksumsFindDamageInWhatIsConverted) {
  for (const int64_t count : {4, 65536, 200000}) {
    const std::vector<uint16_t> ones(count, 0x3f80);
    const std::vector<HostTensor> tensors = {{"a", bf16, {count}, ones.data()}};
    writeSafetensors(path, tensors, computeChecksums(tensors));
    std::vector<float> got(count);
    Safetensors(path).read("a", f32, {count}, got.data());
    EXPECT_EQ(got, std::vector<float>(count, 1.0f));
    std::string bytes = readText(path);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    writeText(path, bytes);
    expectError([&] { Safetensors(path).read("a", f32, {count}, got.data()); },
                {"expected tensor 'a'", "the file is damaged"});
  }
}

TEST_F(SafetensorsTest, AnotherShapeIsAnError) {
  const Safetensors file(path);
  float got[6];
  expectError([&] { file.read("a", f32, {3, 2}, got); }, {"expected tensor 'a'", "F32 3x2", "but got F32 2x3"});
}

TEST_F(SafetensorsTest, AnotherTypeIsAnError) {
  const Safetensors file(path);
  float got[4];
  expectError([&] { file.read("b", f32, {4}, got); }, {"F32 4", "but got I32 4"});
}

// Numbers of another floating-point type are converted to nearest even: 1 + 2⁻²⁴ is half-way between two f32, and 1 + 3
// · 2⁻²⁴ too.
TEST_F(SafetensorsTest, ConvertsFloats) {
  const double wide[4] = {1 + 0x1p-24, 1 + 0x3p-24, -0x1p-149, 1e300};
  const uint16_t half[4] = {0x3c01, 0x0001, 0xfc00, 0x8000}, brain[4] = {0x3f81, 0x0001, 0xff80, 0x8000};
  writeSafetensors(path, {{"f64", f64, {4}, wide}, {"f16", f16, {4}, half}, {"bf16", bf16, {4}, brain}});
  const Safetensors file(path);
  const auto read = [&](const char *name) {
    std::vector<float> got(4);
    file.read(name, f32, {4}, got.data());
    return got;
  };
  EXPECT_EQ(read("f64"), (std::vector<float>{1, 1 + 0x1p-22, -0x1p-149, INFINITY}));
  EXPECT_EQ(read("f16"), (std::vector<float>{1 + 0x1p-10, 0x1p-24, -INFINITY, -0.0f}));
  EXPECT_EQ(read("bf16"), (std::vector<float>{1 + 0x1p-7, 0x1p-133, -INFINITY, -0.0f}));
  EXPECT_TRUE(std::signbit(read("f16")[3]) && std::signbit(read("bf16")[3]));
}

// A tensor longer than the conversion buffer.
TEST_F(SafetensorsTest, ConvertsLongTensors) {
  std::vector<double> wide(200001);
  for (size_t i = 0; i < wide.size(); ++i)
    wide[i] = static_cast<double>(i);
  writeSafetensors(path, {{"a", f32, {2, 3}, a}, {"x", f64, {200001}, wide.data()}});
  std::vector<float> got(wide.size());
  Safetensors(path).read("x", f32, {200001}, got.data());
  EXPECT_EQ(got, std::vector<float>(wide.begin(), wide.end()));
}

// Tensors neither share bytes nor leave gaps.
TEST_F(SafetensorsTest, TensorsThatOverlapOrLeaveGapsAreRefused) {
  const auto refuse = [&](const char *second, const char *message) {
    const std::string header = std::string(R"({"a":{"dtype":"I8","shape":[4],"data_offsets":[0,4]},)") +
                               R"("b":{"dtype":"I8","shape":[4],"data_offsets":)" + second + "}}";
    const uint64_t length = header.size();
    writeText(path, std::string(reinterpret_cast<const char *>(&length), 8) + header + "12345678");
    expectError([&] { Safetensors file(path); }, {message, path});
  };
  refuse("[3,8]", "to begin at byte 4, where the one before it ends, but got 3");
  refuse("[5,8]", "to begin at byte 4, where the one before it ends, but got 5");
  refuse("[4,7]", "expected 7 bytes of tensors");
}

TEST_F(SafetensorsTest, AMissingTensorIsAnError) {
  const Safetensors file(path);
  float got[4];
  expectError([&] { file.read("c", f32, {4}, got); }, {"expected a tensor 'c'", "there is none"});
}

// If the disk is full, the error says so, and no partial file is left.
TEST(Safetensors, AFullDiskIsAnError) {
  const TemporaryFolder folder;
  const std::vector<float> values(1000);
  const FileSizeLimit limit(2000);
  expectError([&] { writeSafetensors(folder / "f", {{"a", f32, {1000}, values.data()}}); },
              {"cannot write", folder / "f"});
  EXPECT_FALSE(std::filesystem::exists(folder / "f"));
}

} // namespace
