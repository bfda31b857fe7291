// Files for TensorBoard, read by a reader that shares nothing with the writer: checksums bit by bit, and the wire
// format of protocol buffers field by field. test/oracles/tensorboard_events.py has TensorBoard's own read them.

#include "models/observe/tensorboard.h"
#include "models/observe/trace.h"
#include "test/models/observe/trace_format.h"
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

// --- Traces as files, and tables of them -----------------------------------------------------------------------------

/// A step of two launches after a batch, and a second one of one launch. Launches are added before the step that
/// contains them.
std::vector<Stretch> example() {
  return {{Track::device, "block 0 mlp", "matmul", 10.001, 10.003, 8e6, 4000, "f32[8x8]"},
          {Track::device, "update", "adamw", 10.003, 10.004, 0, 2000, "f32[64]"},
          {Track::data, "batch", "", 10.0002, 10.0008},
          {Track::host, "gradient", "", 10.001, 10.0032},
          {Track::host, "step 1", "", 10.0, 10.005},
          {Track::host, "step 2", "", 10.005, 10.010},
          {Track::device, "block 1 mlp", "matmul", 10.006, 10.009, 4e6, 1000, "f32[4x4]"}};
}

const TraceFacts facts = {"cpu", "time", {1e10, 1e7, "made up"}};

// The trace has the fields that readers require: each span once, on a named track.
TEST(Trace, IsOneThatPerfettoTakes) {
  const nlohmann::json trace = nlohmann::json::parse(chromeTrace(example(), facts));
  EXPECT_EQ(test::expectTraceFormat(trace), (std::map<int, std::string>{{0, "host"}, {1, "device"}, {2, "data"}}));
  int stretches = 0;
  for (const nlohmann::json &event : trace.at("traceEvents"))
    stretches += event.at("ph") == "X";
  EXPECT_EQ(stretches, 7);
}

// A launch has its kernel, its shapes, its rates and its fraction of the machine's peak. 8 MFLOP in 2 ms are 4 GFLOP/s.
// Its 4000 bytes take 0.4 ms at 10 MB/s, a fifth of 2 ms. But its products take 0.8 ms at 10 GFLOP/s.
TEST(Trace, TellsRates) {
  const nlohmann::json trace = nlohmann::json::parse(chromeTrace(example(), facts));
  for (const nlohmann::json &event : trace.at("traceEvents"))
    if (event.at("name") == "block 0 mlp") {
      EXPECT_EQ(event.at("cat"), "matmul");
      EXPECT_NEAR(event.at("ts").get<double>(), 1000, 1e-3);
      EXPECT_NEAR(event.at("dur").get<double>(), 2000, 1e-3);
      const nlohmann::json &args = event.at("args");
      EXPECT_EQ(args.at("kernel"), "matmul");
      EXPECT_EQ(args.at("shapes"), "f32[8x8]");
      EXPECT_NEAR(args.at("GFLOP/s").get<double>(), 4, 1e-5);
      EXPECT_NEAR(args.at("GB/s").get<double>(), 0.002, 1e-8);
      EXPECT_NEAR(args.at("share of the roof").get<double>(), 0.4, 1e-6);
      return;
    }
  FAIL() << "the launch is missing";
}

// A device whose roof is not known has launches without shares.
TEST(Trace, IsSilentAboutAnUnknownRoof) {
  EXPECT_EQ(chromeTrace(example(), {"simulator", "cycles", {}}).find("share of the roof"), std::string::npos);
  EXPECT_LT(Roof().shareOfPeak(1, 1, 1), 0);
}

// Launches of a kernel are summed, and so are those of a label. The longest come first, and totals are those of all.
TEST(ProfileTable, SumsAreThoseOfAllLaunches) {
  const std::vector<ProfileRow> kernels = profileRows(example(), ProfileBy::kernel);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].name, "matmul");
  EXPECT_EQ(kernels[0].launches, 2);
  EXPECT_NEAR(kernels[0].seconds, 0.005, 1e-9);
  EXPECT_EQ(kernels[0].flops, 12e6);
  EXPECT_EQ(kernels[0].bytes, 5000);
  const std::vector<ProfileRow> labels = profileRows(example(), ProfileBy::label, 2);
  ASSERT_EQ(labels.size(), 3u);
  EXPECT_EQ(labels[0].name, "block 1 mlp");
  EXPECT_EQ(labels[2].name, "1 others");
  double seconds = 0;
  int64_t launches = 0;
  for (const ProfileRow &row : labels)
    seconds += row.seconds, launches += row.launches;
  EXPECT_NEAR(seconds, 0.006, 1e-9);
  EXPECT_EQ(launches, 3);
}

// In two steps of 5 ms each, launches take 6 ms and batches 0.6.
TEST(ProfileTable, SaysWhatAStepIsMadeOf) {
  const std::string text = profileText(example(), facts);
  for (const char *part : {"2 steps on cpu: 5.0000 ms a step, of which launches take 60.0 %, making batches 6.0 %, "
                           "all else 34.0 %",
                           "the roof is 10.0 GFLOP/s and 0.0 GB/s (made up)", "all launches"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  EXPECT_EQ(profileText(example(), facts, /*isTime=*/false).find("of which"), std::string::npos);
}

} // namespace
