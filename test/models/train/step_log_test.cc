// The rows of a run in its log and llm.c's main.log, and the losses as a line of text.

#include "models/train/log.h"
#include "models/train/progress.h"
#include "test/temporary_folder.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace kiln;

namespace {

StepRow example(int64_t step, bool evaluated) {
  StepRow row;
  row.step = step;
  row.set("loss", 4.12345);
  if (evaluated)
    row.set("val_loss", 4.5);
  row.set("lr", 0.0003);
  row.set("grad_norm", 1.25);
  return row;
}

// Steps count from 0 there. A validation loss is at the number of steps taken.
TEST(MainLog, HasTheLinesOfLlmc) {
  EXPECT_EQ(mainLogLines(example(1, false)), "s:0 trl:4.1235 lr:0.000300 norm:1.25\n");
  EXPECT_EQ(mainLogLines(example(20, true)), "s:19 trl:4.1235 lr:0.000300 norm:1.25\ns:20 tel:4.5000\n");
}

// A resumed run keeps the lines of earlier steps, and no others: an incomplete line is dropped.
TEST(MainLog, GoesOnFromAStep) {
  const TemporaryFolder folder;
  const std::string path = folder / "main.log";
  {
    MainLog log(path, 0);
    for (const int64_t step : {1, 2, 3})
      log.write(example(step, true));
  }
  const std::string two = mainLogLines(example(1, true)) + mainLogLines(example(2, true));
  writeText(path, readText(path) + "s:1 tr");
  {
    MainLog log(path, 2);
  }
  EXPECT_EQ(readText(path), two);
  {
    MainLog log(path, 0);
  }
  EXPECT_EQ(readText(path), "");
}

// Eight falling values in four characters: a column each, the first highest, the last lowest.
TEST(LiveCurve, DrawsAColumnForEachValue) {
  LiveCurve curve;
  for (const double value : {4.0, 3.0, 2.0, 1.0})
    curve.add(value);
  EXPECT_EQ(curve.text(8), "loss 4.0000 ⠑⢄ 1.0000");
}

// As many columns as the width, or as values: means of parts of the whole run.
TEST(LiveCurve, FitsAnyNumberOfValues) {
  LiveCurve curve;
  for (int i = 0; i < 100000; ++i)
    curve.add(100000.0 - i);
  const std::string text = curve.text(10);
  size_t characters = 0;
  for (size_t i = 0; i + 2 < text.size(); ++i)
    characters += text[i] == '\xe2';
  EXPECT_EQ(characters, 10u) << text;
  const double first = std::stod(text.substr(5)), last = std::stod(text.substr(text.rfind(' ')));
  EXPECT_NEAR(first, 97500, 1000); // the mean of a twentieth
  EXPECT_NEAR(last, 2500, 1000);
}

// NaN has no dot; without numbers there is no curve; a single value has a dot at the bottom.
TEST(LiveCurve, LeavesOutWhatIsNoNumber) {
  LiveCurve curve;
  EXPECT_EQ(curve.text(8), "");
  curve.add(NAN);
  EXPECT_EQ(curve.text(8), "");
  curve.add(2);
  EXPECT_EQ(curve.text(8), "loss 2.0000 ⢀ 2.0000");
}

class StepLogTest : public testing::Test {
protected:
  StepRow row(int64_t step) const {
    StepRow made;
    made.step = step;
    made.set("loss", 2.5);
    return made;
  }
  std::string logged() const {
    std::ostringstream text;
    text << std::ifstream(options.out + "/log.jsonl").rdbuf();
    return text.str();
  }

  const TemporaryFolder folder;
  const RunOptions options{.out = folder / "run", .mainLog = true};
  RunFolder held{options};
  StepLog log{held, options, 0};
};

// A row is a line of the log, and of each other sink that accepts rows.
TEST_F(StepLogTest, ARowGoesToAllWhoTakeIt) {
  EXPECT_EQ(log.write(row(1)), std::nullopt);
  EXPECT_EQ(log.write(row(2)), std::nullopt);
  EXPECT_EQ(logged(), toJson(row(1)) + "\n" + toJson(row(2)) + "\n");
  EXPECT_TRUE(std::filesystem::file_size(options.out + "/main.log") > 0);
}

// If the folder was removed, that is reported, and the row is stored for the next run once there is a place for it.
TEST_F(StepLogTest, ARowWithoutAPlaceIsLeft) {
  log.write(row(1));
  std::filesystem::rename(options.out, folder / "elsewhere");
  EXPECT_EQ(
      log.write(row(2)).value_or("").find("expected '" + options.out + "' to stay in place while a run writes to it"),
      0u);
  std::filesystem::create_directory(options.out);
  log.leave(row(2));
  const std::string path = options.out + "/log.jsonl";
  RunLog next(path, 2);
  ASSERT_TRUE(next.left().has_value());
  EXPECT_EQ(toJson(*next.left()), toJson(row(2)));
  next.write(*next.left());
  EXPECT_EQ(logged(), toJson(row(2)) + "\n");
  EXPECT_FALSE(RunLog(path, 2).left().has_value());
}

// A line that is no row is dropped, as an incomplete one in the log is.
TEST_F(StepLogTest, OnlyARowIsLeft) {
  const std::string path = options.out + "/log.jsonl";
  for (const char *line : {R"({"step":2})", R"({"step":2,"loss":[1]})", R"({"step":2,"loss":1,"seconds":"x"})", "[]"}) {
    writeText(path + ".rest", line + std::string("\n"));
    if (const std::optional<StepRow> left = RunLog(path, 2).left())
      EXPECT_TRUE(left->number("loss").has_value()) << line;
  }
  for (const char *line : {R"({"step":2,"loss":null,"seconds":1.0})", R"({"step":2,"loss":1.5,"seconds":1.0})"}) {
    writeText(path + ".rest", line + std::string("\n"));
    const std::optional<StepRow> left = RunLog(path, 2).left();
    ASSERT_TRUE(left.has_value()) << line;
    EXPECT_EQ(toJson(*left), line);
  }
}

// --- Rows of the log, the bar, and the log of a resumed run ----------------------------------------------------------

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

// The row of the step before a resumed run has no time left: none of the run's steps has been measured.
TEST(Progress, TellsNoTimeBeforeTheFirstStep) {
  const TemporaryFolder folder;
  std::FILE *out = std::fopen((folder / "out").c_str(), "w");
  {
    Progress progress(1, 2, false, out);
    StepRow before = row(1);
    before.set("val_loss", 2.5);
    progress.show(before);
    progress.show(row(2));
  }
  std::fclose(out);
  const std::string text = readText(folder / "out"), first = text.substr(0, text.find('\n'));
  EXPECT_NE(first.find("step 1/2"), std::string::npos) << text;
  EXPECT_EQ(first.find("left"), std::string::npos) << text;
  EXPECT_NE(text.find("0:00 left"), std::string::npos) << text;
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
