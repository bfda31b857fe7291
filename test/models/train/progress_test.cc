// Rows of the log, the bar, and the log of a resumed run.

#include "models/train/progress.h"
#include "test/temporary_folder.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace kiln;

namespace {

StepRow row(int64_t step) {
  StepRow r;
  r.step = step;
  r.set("loss", 2.5);
  r.set("lr", 1e-3);
  return r;
}

TEST(RunLog, WritesOneObjectALine) {
  const TemporaryFolder folder;
  {
    RunLog log(folder / "log.jsonl", 0);
    log.write(row(1));
    StepRow second = row(2);
    second.set("val_loss", 2.25);
    log.write(second);
  }
  std::ifstream in(folder / "log.jsonl");
  std::string line;
  std::getline(in, line);
  auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json.at("step"), 1);
  EXPECT_EQ(json.at("loss"), 2.5);
  EXPECT_EQ(json.at("lr"), 1e-3);
  EXPECT_FALSE(json.contains("val_loss"));
  std::getline(in, line);
  EXPECT_EQ(nlohmann::json::parse(line).at("val_loss"), 2.25);
  EXPECT_FALSE(std::getline(in, line));
}

// A run resumed at step 2 drops later rows of the log, a line cut by a crash, and one that is no row.
TEST(RunLog, GoesOnFromAStep) {
  const TemporaryFolder folder;
  {
    RunLog log(folder / "log.jsonl", 0);
    for (int step = 1; step <= 4; ++step)
      log.write(row(step));
  }
  std::ofstream(folder / "log.jsonl", std::ios::app)
      << R"({"step": 1, "x": )" << std::string(100000, '[') << std::string(100000, ']') << "}\n"
      << R"({"step": 2, "lo)";
  {
    RunLog log(folder / "log.jsonl", 2);
  }
  EXPECT_EQ(readText(folder / "log.jsonl"), toJson(row(1)) + "\n" + toJson(row(2)) + "\n");
}

// If the output is no terminal, there are plain lines without control characters.
TEST(Progress, PrintsPlainLinesToAFile) {
  const TemporaryFolder folder;
  std::FILE *out = std::fopen((folder / "out").c_str(), "w");
  {
    Progress progress(0, 2, false, out);
    progress.show(row(1));
    progress.show(row(2));
  }
  std::fclose(out);
  const std::string text = readText(folder / "out");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_NE(text.find("step 2/2  loss 2.5000"), std::string::npos);
}

// Without output, as for all ranks except the first, nothing is shown, and no curve at the end.
TEST(Progress, IsSilentWithoutAnOutput) {
  Progress progress(0, 2, true, nullptr);
  progress.showCurve();
  progress.note("a line");
  progress.show(row(1));
  progress.show(row(2));
}

TEST(Progress, FormatsTimes) {
  EXPECT_EQ(clockText(7), "0:07");
  EXPECT_EQ(clockText(187.4), "3:07");
  EXPECT_EQ(clockText(3765), "1:02:45");
}

TEST(Progress, TheBarFillsUp) {
  EXPECT_EQ(barText(0, 3), "···");
  EXPECT_EQ(barText(0.5, 3), "█▌·");
  EXPECT_EQ(barText(1, 3), "███");
}

} // namespace
