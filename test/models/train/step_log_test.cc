// A run's rows: in its log and other sinks, and the errors if they cannot be written.

#include "models/train/step_log.h"
#include "test/temporary_folder.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

using namespace kiln;

namespace {

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
  EXPECT_EQ(logged(), jsonOf(row(1)) + "\n" + jsonOf(row(2)) + "\n");
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
  const StepLog next(held, options, 2);
  EXPECT_EQ(logged(), jsonOf(row(2)) + "\n");
}

} // namespace
