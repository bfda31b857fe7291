// Traces as files, and tables of them.

#include "models/observe/trace.h"
#include "test/models/observe/trace_format.h"

using namespace kiln;

namespace {

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
