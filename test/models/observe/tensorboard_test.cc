// Files for TensorBoard, read by a reader that shares nothing with the writer: checksums bit by bit, and the wire
// format of protocol buffers field by field. test/oracles/tensorboard_events.py has TensorBoard's own read them.

#include "models/observe/tensorboard.h"
#include "test/temporary_folder.h"

#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>

using namespace kiln;

namespace {

/// CRC-32C one bit at a time, masked.
uint32_t slowMaskedCrc(const std::string &bytes) {
  uint32_t crc = 0xffffffff;
  for (const unsigned char byte : bytes)
    for (int bit = 0; bit < 8; ++bit) {
      const bool feedback = ((crc ^ (byte >> bit)) & 1) != 0;
      crc = (crc >> 1) ^ (feedback ? 0x82f63b78u : 0u);
    }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

template <class T> T numberAt(const std::string &bytes, size_t at) {
  T value{};
  EXPECT_LE(at + sizeof(T), bytes.size());
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

/// The records of a file, whose checksums hold.
std::vector<std::string> recordsOf(const std::string &file) {
  std::vector<std::string> records;
  for (size_t at = 0; at < file.size();) {
    const auto length = numberAt<uint64_t>(file, at);
    EXPECT_EQ(numberAt<uint32_t>(file, at + 8), slowMaskedCrc(file.substr(at, 8)));
    records.push_back(file.substr(at + 12, length));
    EXPECT_EQ(numberAt<uint32_t>(file, at + 12 + length), slowMaskedCrc(records.back()));
    at += length + 16;
  }
  return records;
}

/// The fields of a message: by number the bytes of each, those of numbers as 8 bytes.
std::multimap<int, std::string> fieldsOf(const std::string &message) {
  std::multimap<int, std::string> fields;
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(message.at(at++));
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80)
        return value;
    }
  };
  while (at < message.size()) {
    const uint64_t key = varint();
    std::string bytes(8, '\0');
    if ((key & 7) == 0) {
      const uint64_t value = varint();
      std::memcpy(bytes.data(), &value, 8);
    } else {
      const size_t size = (key & 7) == 1 ? 8 : (key & 7) == 5 ? 4 : varint();
      bytes = message.substr(at, size);
      at += size;
    }
    fields.emplace(key >> 3, bytes);
  }
  return fields;
}
std::string field(const std::string &message, int number) {
  const auto fields = fieldsOf(message);
  return fields.contains(number) ? fields.find(number)->second : "";
}

StepRow example(int64_t step) {
  StepRow row;
  row.step = step;
  row.set("loss", 5.5625 + static_cast<double>(step));
  row.set("val_loss", 4.25);
  row.set("grad_norm_h.0", 0.125);
  row.set("skipped", true);
  row.set("sample_0", std::string("To be → or\nnot"));
  return row;
}

// Check values of the Castagnoli polynomial (RFC 3720, B.4) and of the nine digits.
TEST(TensorBoard, ChecksumsAreThoseOfTheStandard) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(maskedCrc("123456789"), slowMaskedCrc("123456789"));
}

// The bytes of the first record, at a time of 1 s: fixed, so that the test detects a change of the format.
TEST(TensorBoard, RecordsAreTheseBytes) {
  const std::string event = versionEvent(1);
  EXPECT_EQ(event, std::string("\x09\0\0\0\0\0\0\xf0\x3f\x1a\x0d", 11) + "brain.Event:2");
  const std::string record = tfRecord(event);
  EXPECT_EQ(record.size(), event.size() + 16);
  EXPECT_EQ(recordsOf(record), std::vector<std::string>{event});
}

// Every scalar is read back under its tag, at its step, as the nearest f32; texts as those of the text plugin.
TEST(TensorBoard, EveryScalarComesBack) {
  const TemporaryFolder folder;
  std::string path;
  {
    TensorBoardLog log(folder / "a/b", 0);
    path = log.file();
    for (const int64_t step : {1, 300})
      log.write(example(step));
  }
  const std::vector<std::string> records = recordsOf(readText(path));
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(field(records[0], 3), "brain.Event:2");
  for (const int64_t step : {1, 300}) {
    const std::string &event = records[step == 1 ? 1 : 2];
    EXPECT_EQ(numberAt<int64_t>(field(event, 2), 0), step);
    EXPECT_GT(numberAt<double>(field(event, 1), 0), 1.7e9);
    std::map<std::string, float> scalars;
    std::map<std::string, std::string> texts;
    const auto values = fieldsOf(field(event, 5));
    for (const auto &[number, value] : values) {
      EXPECT_EQ(number, 1);
      const std::string tag = field(value, 1);
      if (const std::string scalar = field(value, 2); !scalar.empty()) {
        scalars[tag] = numberAt<float>(scalar, 0);
        continue;
      }
      EXPECT_EQ(field(field(field(value, 9), 1), 1), "text");
      EXPECT_EQ(numberAt<int64_t>(field(field(value, 8), 1), 0), 7); // DT_STRING
      texts[tag] = field(field(value, 8), 8);
    }
    EXPECT_EQ(scalars, (std::map<std::string, float>{{"train/loss", 5.5625f + static_cast<float>(step)},
                                                     {"validation/loss", 4.25f},
                                                     {"train_details/grad_norm_h.0", 0.125f},
                                                     {"train/skipped", 1.0f}}));
    EXPECT_EQ(texts, (std::map<std::string, std::string>{{"train/sample_0", "To be → or\nnot"}}));
  }
}

// A run resumed at step 7 has a new file, which declares events of other files from step 8 on void.
TEST(TensorBoard, AResumedRunBeginsAFile) {
  const TemporaryFolder folder;
  TensorBoardLog first(folder.path, 0), second(folder.path, 7);
  EXPECT_NE(first.file(), second.file());
  const std::vector<std::string> records = recordsOf(readText(second.file()));
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(numberAt<int64_t>(field(records[1], 2), 0), 8);
  EXPECT_EQ(numberAt<int64_t>(field(field(records[1], 7), 1), 0), 1); // START
  EXPECT_EQ(std::filesystem::path(first.file()).filename().string().rfind("events.out.tfevents.", 0), 0u);
}

} // namespace
