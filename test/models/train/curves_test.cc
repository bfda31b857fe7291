// Loss curves: reading logs, and the content of a picture.

#include "models/train/curves.h"
#include "test/expect_error.h"
#include "test/temporary_folder.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <regex>
#include <set>

using namespace kiln;

namespace {

class CurvesTest : public testing::Test {
protected:
  std::string run(const std::string &name, const std::string &log) {
    std::filesystem::create_directory(folder / name);
    writeText(folder / (name + "/log.jsonl"), log);
    return folder / name;
  }
  const TemporaryFolder folder;
};

TEST_F(CurvesTest, ReadsARunsLosses) {
  const Curve curve =
      readCurve(run("a", "{\"step\":1,\"loss\":5.5}\n{\"step\":2,\"loss\":4.5,\"val_loss\":4.25}\n") + "/");
  EXPECT_EQ(curve.name, "a");
  ASSERT_EQ(curve.training.size(), 2u);
  EXPECT_EQ(curve.training[1].loss, 4.5);
  ASSERT_EQ(curve.validation.size(), 1u);
  EXPECT_EQ(curve.validation[0].at, 2);
  EXPECT_EQ(curve.validation[0].loss, 4.25);
}

// On the time axis, a resumed run, whose clock restarts, is shifted by the time before. Tokens are summed. Fields other
// than losses are those of the rows that have them.
TEST_F(CurvesTest, ReadsOverSecondsAndTokens) {
  const std::string log = run("b", R"({"step":1,"loss":5,"tokens":10,"seconds":1.5}
{"step":2,"loss":4,"tokens":20,"seconds":2.5,"norm":7}
{"step":3,"loss":3,"tokens":30,"seconds":0.5,"val_norm":6}
)");
  const Curve seconds = readCurve(log, {"loss", Over::seconds}), tokens = readCurve(log, {"norm", Over::tokens});
  ASSERT_EQ(seconds.training.size(), 3u);
  EXPECT_EQ(seconds.training[1].at, 2.5);
  EXPECT_EQ(seconds.training[2].at, 3);
  ASSERT_EQ(tokens.training.size(), 1u);
  EXPECT_EQ(tokens.training[0].at, 30);
  EXPECT_EQ(tokens.training[0].loss, 7);
  ASSERT_EQ(tokens.validation.size(), 1u);
  EXPECT_EQ(tokens.validation[0].at, 60);
  expectError([&] { readCurve(run("old", "{\"step\":1,\"loss\":5}\n"), {"loss", Over::tokens}); }, {"tokens"});
  expectError([&] { readCurve(log, {"none", Over::steps}); }, {"expected steps with 'none' in", "but there are none"});
}

// If the second run has other steps, it is compared with the line between two points of the first run.
TEST_F(CurvesTest, ComparesBetweenPoints) {
  const std::vector<Curve> curves = {{"a", {{1, 4}, {3, 2}}, {}}, {"b", {{2, 3.5}, {3, 2.5}}, {}}};
  const auto pointsOf = [](const std::string &picture) {
    const size_t last = picture.rfind("points=\"") + 8;
    const std::string places = picture.substr(last, picture.find('"', last) - last);
    return std::count(places.begin(), places.end(), ' ');
  };
  EXPECT_EQ(pointsOf(drawCurves(curves, {"loss", Over::seconds})), 2);
  EXPECT_EQ(pointsOf(drawCurves(curves)), 1);
}

// A single run has no differences: its picture has one panel.
TEST_F(CurvesTest, OneRunHasOnePanel) {
  const Curve run = {"run", {{1, 2}, {2, 1}}, {}};
  EXPECT_EQ(drawCurves({run}).find("less that of"), std::string::npos);
  EXPECT_NE(drawCurves({run, run}).find("less that of run"), std::string::npos);
}

TEST_F(CurvesTest, AFolderWithoutStepsIsAnError) {
  expectError([&] { readCurve(folder / "none"); }, {"none/log.jsonl"});
  expectError([&] { readCurve(run("empty", "")); }, {"expected steps in", "but there are none"});
  expectError([&] { readCurve(run("wrong", "{\"step\":1}\n")); }, {"log.jsonl", "loss"});
  expectError([] { drawCurves({}); }, {"expected runs to draw, but got none"});
}

// A run that is writing its log, or was killed at it, has a last line that breaks off: the lines before it are drawn. A
// broken line before others is another matter.
TEST_F(CurvesTest, ALineThatBreaksOffIsLeftOut) {
  const std::string whole = "{\"step\":1,\"loss\":5.5}\n{\"step\":2,\"loss\":4.5}\n";
  EXPECT_EQ(readCurve(run("torn", whole + "{\"step\":3,\"lo")).training.size(), 2u);
  EXPECT_EQ(readCurve(run("zeros", whole + std::string(100, '\0'))).training.size(), 2u);
  EXPECT_EQ(readCurve(run("unended", whole + "{\"step\":3,\"loss\":4}")).training.size(), 3u);
  expectError([&] { readCurve(run("within", "{\"step\":1,\"lo\n" + whole)); }, {"within/log.jsonl"});
}

// Folder names are escaped as text, for any bytes.
TEST_F(CurvesTest, NamesAreText) {
  const std::string picture = drawCurves({{"a<b>&\"c\x01\xff\xEF\xBF\xBE", {{1, 2}}, {}}});
  EXPECT_NE(picture.find("a&#60;b&#62;&#38;&#34;c\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD<"), std::string::npos) << picture;
  EXPECT_EQ(picture.find("<b>"), std::string::npos);
}

// The largest and smallest doubles as losses, equal or not, and the largest countable steps are drawn within the frame.
TEST_F(CurvesTest, EveryPlaceIsANumber) {
  constexpr double most = std::numeric_limits<double>::max();
  const std::vector<CurvePoint> cases[] = {{{1, most}, {2, -most}}, {{1, most}},           {{1, 1e17}}, {{0, 0}},
                                           {{1, 5e-324}},           {{1, 3}, {0x1p53, -3}}};
  for (const std::vector<CurvePoint> &points : cases) {
    const std::string picture = drawCurves({{"a", points, points}, {"b", {{1, -most}, {2, most}}, {}}});
    EXPECT_EQ(picture.find("nan"), std::string::npos) << points[0].loss;
    EXPECT_EQ(picture.find("inf"), std::string::npos) << points[0].loss;
    EXPECT_LT(drawCurves({{"a", points, {}}}).size(), 10000u);
  }
  expectError([&] { readCurve(run("far", R"({"step": 9007199254740993, "loss": 1})")); },
              {"'step'", "from 0 to 9007199254740992"});
}

// A name that is too long shows its ends, cut between characters, and is complete in its tooltip.
TEST_F(CurvesTest, LongNamesAreShort) {
  const std::string ascii = "begin" + std::string(100, 'x') + "end", wide = "ä" + std::string(60, 'y') + "ö";
  const std::string picture = drawCurves({{ascii, {{1, 2}}, {{1, 1e300}}}, {wide, {{1, 2}}, {}}});
  EXPECT_NE(picture.find("<title>" + ascii + "</title>begin" + std::string(22, 'x') + "…" + std::string(24, 'x') +
                         "end 1e+300</text>"),
            std::string::npos)
      << picture;
  EXPECT_NE(picture.find(">ä" + std::string(25, 'y') + "…" + std::string(25, 'y') + "ö</text>"), std::string::npos);
  EXPECT_NE(picture.find(">less that of begin" + std::string(22, 'x') + "…"), std::string::npos);
}

// Every reader of SVG supports six-digit colours. Runs differ in colour, or in the dashes of their lines.
TEST_F(CurvesTest, RunsHaveLinesOfTheirOwn) {
  std::vector<Curve> curves;
  for (int i = 0; i < 30; ++i)
    curves.push_back({"run", {{1, 2}, {2, 1}}, {}});
  const std::string picture = drawCurves(curves);
  const std::regex line(R"x(<polyline fill="none" stroke="(#[0-9a-f]{6})"( stroke-dasharray="[0-9 ]+")? points)x");
  std::set<std::string> lines;
  for (std::sregex_iterator at(picture.begin(), picture.end(), line), end; at != end; ++at)
    lines.insert(at->str());
  EXPECT_EQ(lines.size(), curves.size());
  const std::regex colour(R"x((stroke|fill)="(?!none|#[0-9a-f]{6}"))x");
  EXPECT_FALSE(std::regex_search(picture, colour));
}

// For any number of runs, their names are within the upper frame.
TEST_F(CurvesTest, NamesStayInTheirFrame) {
  for (const size_t count : {1, 4, 15, 16, 60}) {
    const std::string picture = drawCurves(std::vector<Curve>(count, {"run", {{1, 2}}, {}}));
    const size_t at = picture.rfind("y=\"", picture.rfind(">run<"));
    const double y = std::stod(picture.substr(at + 3));
    EXPECT_TRUE(y > 28 && y < 288) << count << " runs: " << y;
  }
}

// A line for each run in both frames, a dot for each validation loss, and the name with the last of them. A run that is
// 0.5 above the first everywhere is horizontal in the lower frame.
TEST_F(CurvesTest, DrawsEachRun) {
  Curve first{"first", {}, {{200, 2}}}, second{"second", {}, {{200, 2.5}}};
  for (int64_t step = 1; step <= 200; ++step) {
    const auto at = static_cast<double>(step);
    first.training.push_back({at, 6.0 - 0.02 * at});
    second.training.push_back({at, first.training.back().loss + 0.5});
  }
  const std::string picture = drawCurves({first, second});
  const auto count = [&](const std::string &what) {
    int n = 0;
    for (size_t at = picture.find(what); at != std::string::npos; at = picture.find(what, at + 1))
      ++n;
    return n;
  };
  EXPECT_EQ(count("<polyline"), 4);
  EXPECT_EQ(count("<circle"), 4);
  EXPECT_EQ(count(">second 2.5000<"), 1);
  const size_t last = picture.rfind("points=\"");
  std::string places = picture.substr(last + 8, picture.find('"', last + 8) - last - 8);
  EXPECT_EQ(std::count(places.begin(), places.end(), ' '), 100); // two steps a point
  const std::string level = places.substr(places.find(','), places.find(' ') - places.find(','));
  for (size_t at = places.find(','); at != std::string::npos; at = places.find(',', at + 1))
    EXPECT_EQ(places.substr(at, level.size()), level);
}

} // namespace
