// HellaSwag's files.

#include "models/data/hellaswag.h"
#include "test/expect_error.h"
#include "test/temporary_folder.h"

using namespace kiln;

namespace {

const std::string two = "A: one\n2\na\nb\nc\nd\nB: two\r\n0\r\ne\nf\ng\nh";

// Lines with either kind of line end, and JSON lines, give equal tasks.
TEST(HellaSwag, ReadsLinesAndJson) {
  const TemporaryFolder folder;
  writeText(folder / "x.txt", two);
  writeText(folder / "x.jsonl", R"({"ctx": "A: one", "label": "2", "endings": ["a", "b", "c", "d"]})"
                                "\n"
                                R"({"ind": 7, "ctx": "B: two", "label": 0, "endings": ["e", "f", "g", "h"]})"
                                "\n");
  for (const char *name : {"x.txt", "x.jsonl"}) {
    const std::vector<HellaSwagTask> tasks = readHellaSwag(folder / name);
    ASSERT_EQ(tasks.size(), 2u);
    EXPECT_EQ(tasks[0].context, "A: one");
    EXPECT_EQ(tasks[0].endings, (std::array<std::string, 4>{"a", "b", "c", "d"}));
    EXPECT_EQ(tasks[0].right, 2);
    EXPECT_EQ(tasks[1].context, "B: two");
    EXPECT_EQ(tasks[1].endings[3], "h");
    EXPECT_EQ(tasks[1].right, 0);
  }
}

TEST(HellaSwag, FilesThatAreNoneAreErrors) {
  const TemporaryFolder folder;
  const std::string lines = folder / "x.txt", json = folder / "x.jsonl";
  writeText(lines, two + "\nmore\n");
  expectError([&] { readHellaSwag(lines); }, {"expected 6 lines for each task of '" + lines + "', but got 13 lines"});
  writeText(lines, "A\n4\na\nb\nc\nd\n");
  expectError([&] { readHellaSwag(lines); },
              {"the right ending's number, from 0 to 3, in " + lines + ":2, but got '4'"});
  writeText(lines, "");
  expectError([&] { readHellaSwag(lines); }, {"expected tasks in", "but there are none"});
  writeText(json, R"({"ctx": "A", "label": "1", "endings": ["a", "b", "c"]})");
  expectError([&] { readHellaSwag(json); }, {"field 'endings' in '" + json + ":1' to be a list of 4 texts"});
  writeText(json, R"({"ctx": "A", "label": "x", "endings": ["a", "b", "c", "d"]})");
  expectError([&] { readHellaSwag(json); }, {"but got 'x'"});
}

} // namespace
