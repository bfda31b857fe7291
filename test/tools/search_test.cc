// The search of a tuner with a scripted measure, so that nothing depends on time; the expressions of --grid; and the
// names of --sweep.

#include "tools/kilnc/Expression.h"
#include "tools/kilnc/Tune.h"

#include "test/expect_error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

namespace kiln::tools {
namespace {

enum class Order { rows, columns };
struct Config {
  int bm = 32, bk = 16;
  bool turned = false;
  Order order = Order::rows;
};
static void product(View, View, Tile, Config) {}

static const std::vector<Field> fields = {
    field("bm", &Config::bm, "rows").among({16, 32, 64}), field("bk", &Config::bk, "step").among({8, 16}).changing(),
    field("turned", &Config::turned).among({false, true}),
    field("order", &Config::order, {"rows", "columns"}, "of programs").among({"columns"})};
static const Kernel tunedKernel =
    kernel("product", product, {"a (M, K)", "out (M, N)", "n"}, fields, [](const Config &cfg, const Target &target) {
      return !(cfg.bm == 64 && cfg.turned && target.name == "small");
    });

// Every combination of the candidates and defaults of fields that do not change results; the default first, then those
// with one field that differs.
TEST(Candidates, CombineTheFields) {
  const Candidates all = candidatesOf(tunedKernel, "", Target{"large", CpuFacts()}, false);
  ASSERT_EQ(all.configs.size(), 3u * 2 * 2);
  EXPECT_EQ(all.refused, 0);
  EXPECT_EQ(all.configs[0], "bm=32,turned=0,order=rows");
  EXPECT_EQ(all.configs[1], "bm=16,turned=0,order=rows");
  EXPECT_EQ(all.configs[3], "bm=32,turned=1,order=rows");
}

// The constraint of the registration leaves configs out; a fixed field keeps its value.
TEST(Candidates, ObeyTheConstraintAndFixedFields) {
  const Candidates constrained = candidatesOf(tunedKernel, "", Target{"small", CpuFacts()}, false);
  EXPECT_EQ(constrained.configs.size(), 10u);
  EXPECT_EQ(constrained.refused, 2);
  const Candidates fixed = candidatesOf(tunedKernel, "bm=64,order=rows", Target{"large", CpuFacts()}, false);
  EXPECT_EQ(fixed.configs, (std::vector<std::string>{"bm=64,order=rows,turned=0", "bm=64,order=rows,turned=1"}));
  expectError([&] { candidatesOf(tunedKernel, "bm=64,bk=8,order=rows,turned=1", Target{"large", CpuFacts()}, false); },
              {"expected a field with candidates that --config leaves open"});
}

// Fields that change results vary on request only, and are known by it.
TEST(Candidates, ChangeResultsOnRequest) {
  const Candidates all = candidatesOf(tunedKernel, "turned=0,order=rows", Target{"large", CpuFacts()}, true);
  EXPECT_EQ(all.configs.size(), 6u);
  expectError([&] { candidatesOf(tunedKernel, "bm=32,turned=0,order=rows", Target{"large", CpuFacts()}, false); },
              {"all fields with candidates are `.changing()`: pass --vary-results"});
  EXPECT_TRUE(changesResults(tunedKernel, "bm=16,bk=8", "bm=32,bk=16"));
  EXPECT_FALSE(changesResults(tunedKernel, "bm=16,bk=16", "bm=32,bk=16"));
}

// A candidate that is no value of its field is an error of the registration.
TEST(Candidates, AreValuesOfTheirField) {
  expectError([&] { kernel("product", product, {"a", "out", "n"}, {field("bm", &Config::bm).among({"wide"})}); },
              {"wide"});
}

/// Searches among values that are true up to noise, which a script draws; how often each was measured.
struct Script {
  std::vector<double> values;
  std::map<size_t, int> measured;
  unsigned state = 1;
  double operator()(size_t i) {
    ++measured[i];
    state = state * 1664525 + 1013904223;
    return values[i] * (1 + 0.02 * (state >> 16 & 255) / 255.0);
  }
};

// With 2 % of noise the fastest of well separated candidates is chosen; much slower ones are measured about twice.
TEST(Search, DropsThoseBehind) {
  Script script{{100, 500, 80, 95, 140, 60, 300}};
  const std::vector<Ranked> ranked =
      search(script.values.size(), {}, [&](size_t i) { return script(i); }, [] { return true; });
  ASSERT_EQ(ranked.size(), script.values.size());
  EXPECT_EQ(ranked[0].index, 5u);
  EXPECT_EQ(ranked[0].rounds, 9);
  EXPECT_LE(script.measured[1], 4);
  EXPECT_EQ(script.measured[6], 2);
  EXPECT_EQ(script.measured[0], 27) << "the default is measured to the end";
}

// A candidate whose first measurement was disturbed, as on a busy machine, gets a second one, and may win.
TEST(Search, LooksAgainAtThoseSlowAtFirst) {
  Script script{{100, 70, 120}};
  const auto measure = [&](size_t i) { return script(i) * (i == 1 && script.measured[i] == 1 ? 20 : 1); };
  const std::vector<Ranked> ranked = search(3, {}, measure, [] { return true; });
  EXPECT_EQ(ranked[0].index, 1u);
  EXPECT_LT(ranked[0].value, 75);
}

/// Other programs double times: for a while, then not, at random.
struct BusyScript : Script {
  bool isBusy = false;
  double operator()(size_t i) {
    const double value = Script::operator()(i);
    isBusy ^= (state >> 8 & 7) == 0;
    return isBusy ? 2 * value : value;
  }
};

// On a machine that is busy half of the time, nearly every search finds the same config, and says that times vary.
TEST(Search, FindsTheFastestOnABusyMachine) {
  int found = 0, varied = 0;
  for (unsigned seed = 1; seed <= 50; ++seed) {
    BusyScript script{{.values = {100, 90, 70, 75, 140, 60, 300}, .measured = {}, .state = seed}};
    const auto ranked = search(7, {}, [&](size_t i) { return script(i); }, [] { return true; });
    found += ranked[0].index == 5;
    varied += ranked[0].varied > 1.5;
  }
  EXPECT_GE(found, 45);
  EXPECT_GE(varied, 25);
}

// Candidates that differ by less than the noise of nine rounds get more rounds, and only those.
TEST(Search, MeasuresLongerWhatIsNotDecided) {
  Script script{{200, 100, 101.5, 150}};
  const auto measure = [&](size_t i) { return script(i) * (1 + 0.2 * (script.state >> 8 & 255) / 255.0); };
  const auto ranked = search(4, {}, measure, [] { return true; });
  EXPECT_EQ(ranked[0].index, 1u);
  EXPECT_GT(ranked[0].rounds, 9);
  EXPECT_LE(script.measured[3], 12);
  int left = 60;
  EXPECT_LT(search(4, {}, measure, [&] { return left-- > 0; })[0].rounds, 30) << "as far as time allows";
}

// Candidates of equal speed do not take the whole budget.
TEST(Search, EndsWithEquals) {
  Script script{{100, 100, 100}};
  const auto ranked = search(3, {}, [&](size_t i) { return script(i); }, [] { return true; });
  EXPECT_LT(ranked[0].rounds, 40);
}

// An exhaustive search measures every candidate in all rounds.
TEST(Search, MayBeExhaustive) {
  Script script{{100, 500, 80}};
  const auto ranked = search(3, {.exhaustive = true}, [&](size_t i) { return script(i); }, [] { return true; });
  for (const Ranked &each : ranked)
    EXPECT_EQ(each.rounds, 9);
  EXPECT_EQ(script.measured[1], 27);
}

// After these rounds, only those that may be the fastest are measured further.
TEST(Search, IsExhaustiveForNineRounds) {
  Script script{{200, 100, 101.5, 150}};
  const auto measure = [&](size_t i) { return script(i) * (1 + 0.2 * (script.state >> 8 & 255) / 255.0); };
  const auto ranked = search(4, {.exhaustive = true}, measure, [] { return true; });
  EXPECT_GT(ranked[0].rounds, 9);
  EXPECT_EQ(script.measured[3], 27);
}

// Two rounds are two rounds, decided or not.
TEST(Search, EndsAfterTheRoundsAskedFor) {
  Script script{{100, 100.5}};
  EXPECT_EQ(search(2, {.rounds = 2}, [&](size_t i) { return script(i); }, [] { return true; })[0].rounds, 2);
}

// Exact measures are taken once, and of equals the first wins.
TEST(Search, MeasuresExactValuesOnce) {
  const std::vector<double> values = {7, 5, 5, 9};
  int count = 0;
  const auto ranked = search(4, {.isExact = true}, [&](size_t i) { return ++count, values[i]; }, [] { return true; });
  EXPECT_EQ(count, 4);
  EXPECT_EQ(ranked[0].index, 1u);
  EXPECT_EQ(ranked[1].index, 2u);
}

// Without time only the default is measured.
TEST(Search, EndsWithTheBudget) {
  int left = 3;
  const auto ranked = search(9, {}, [&](size_t i) { return 1.0 + static_cast<double>(i); }, [&] { return left-- > 0; });
  ASSERT_EQ(ranked.size(), 4u);
  EXPECT_EQ(ranked[0].index, 0u);
  EXPECT_EQ(search(9, {}, [](size_t) { return 1.0; }, [] { return false; }).size(), 1u);
}

/// Configs of two fields, and what a walk visits among them.
struct Valley {
  std::vector<std::string> configs = {"x=64,y=64"};
  std::set<size_t> visited;
  std::function<double(double x, double y)> value;
  Valley() {
    for (const int x : {1, 2, 4, 8, 16, 32, 64})
      for (const int y : {128, 64, 32, 16, 8, 4, 2, 1})
        if (x != 64 || y != 64)
          configs.push_back("y=" + std::to_string(y) + ",x=" + std::to_string(x));
  }
  std::vector<double> visit(const std::vector<size_t> &batch) {
    std::vector<double> values;
    for (const size_t i : batch) {
      EXPECT_TRUE(visited.insert(i).second) << "each once";
      auto fields = fieldsOf(configs[i]);
      values.push_back(value(std::stod(fields["x"]), std::stod(fields["y"])));
    }
    return values;
  }
  /// The best config that the walk visits.
  std::string walkedTo(const std::function<bool()> &hasTime = [] { return true; }) {
    walk(Space(configs), [&](const auto &batch) { return visit(batch); }, hasTime);
    const auto valueOf = [&](size_t i) {
      auto fields = fieldsOf(configs[i]);
      return value(std::stod(fields["x"]), std::stod(fields["y"]));
    };
    return configs[*std::min_element(visited.begin(), visited.end(),
                                     [&](size_t a, size_t b) { return valueOf(a) < valueOf(b); })];
  }
};

// In a valley that both fields make, the walk reaches the bottom after less than half of the configs.
TEST(Walk, ReachesTheBottomOfAValley) {
  Valley valley;
  valley.value = [](double x, double y) {
    return 1 + std::abs(std::log2(x) - 2) + std::abs(std::log2(x) + std::log2(y) - 3);
  };
  EXPECT_EQ(valley.walkedTo(), "y=2,x=4");
  EXPECT_LT(valley.visited.size(), valley.configs.size() / 2);
}

// A second start finds the far valley that is deeper than the default's.
TEST(Walk, BeginsFarFromTheDefault) {
  Valley valley;
  valley.value = [](double x, double y) { return x * y > 64 ? 10 + std::abs(x - 32) : 1 + std::abs(x * y - 2); };
  EXPECT_LT(valley.walkedTo(), "y=3");
}

// Infinity, as for a config that does not compile, ends no walk; holes are passed.
TEST(Walk, PassesConfigsWithoutAValue) {
  Valley valley;
  std::erase_if(valley.configs, [](const std::string &config) { return config.ends_with("x=16"); });
  valley.value = [](double x, double y) { return x == 32 && y > 1 ? INFINITY : x + std::abs(y - 8); };
  EXPECT_EQ(valley.walkedTo(), "y=8,x=1");
}

// Few configs are all visited, in one batch. Without time the walk ends after its first batch.
TEST(Walk, VisitsAllOfFewAndEndsInTime) {
  Valley few;
  few.configs.resize(16);
  few.value = [](double x, double) { return x; };
  few.walkedTo();
  EXPECT_EQ(few.visited.size(), 16u);
  Valley valley;
  valley.value = few.value;
  valley.walkedTo([] { return false; });
  EXPECT_EQ(valley.visited.size(), 3u);
  EXPECT_TRUE(valley.visited.count(0)) << "the default";
}

// Values that are no numbers are neighbours of each other; numbers have two at most.
TEST(Space, HasNeighboursInOneField) {
  const Space space({"n=1,order=rows", "n=2,order=rows", "n=4,order=rows", "n=8,order=rows", "n=2,order=columns",
                     "n=2,order=none", "n=16,order=none"});
  EXPECT_EQ(space.neighboursOf(0), std::vector<size_t>({1}));
  EXPECT_EQ(space.neighboursOf(2), std::vector<size_t>({1, 3}));
  std::vector<size_t> ofSecond = space.neighboursOf(1);
  std::sort(ofSecond.begin(), ofSecond.end());
  EXPECT_EQ(ofSecond, std::vector<size_t>({0, 2, 4, 5}));
  EXPECT_EQ(space.neighboursOf(6), std::vector<size_t>({5})) << "4 and 8 have no config with `none`";
}

TEST(Expression, MultipliesAndDividesUp) {
  float memory[1] = {};
  const std::vector<Arg> args = {TensorRef::dense(memory, f32, {100, 7}), TensorRef::dense(memory, f32, {33, 65}), 5};
  const auto gridOf = [&](const std::string &text) { return evaluateGrid(text, tunedKernel, args, "bm=16"); };
  EXPECT_EQ(gridOf("out.0/bm, out.1/bk"), Grid(3, 5));
  EXPECT_EQ(gridOf("a.0*n/bm,1,7"), Grid(32, 1, 7));
  EXPECT_EQ(gridOf("8"), Grid(8));
  EXPECT_EQ(evaluate("--flops", "2*a.0*a.1*out.1", tunedKernel, args, ""), 2 * 100 * 7 * 65);
  expectError([&] { gridOf("ot.0/bm"); }, {"did you mean 'out.0'?"});
  expectError([&] { gridOf("out.0/turned"); }, {"expected a divisor above 0 in --grid"});
  expectError([&] { gridOf("1,1,1,1"); }, {"expected --grid to be one to three numbers"});
  expectError([&] { gridOf("-1"); }, {"expected a number from 0 in --grid"});
}

// A range includes its end if its steps reach it; a list is used unchanged.
TEST(Sweep, HasTheSizesOfARangeOrList) {
  EXPECT_EQ(Sweep::parse("M=256:2048:*2").sizes, (std::vector<int64_t>{256, 512, 1024, 2048}));
  EXPECT_EQ(Sweep::parse("M=256:2047:*2").sizes, (std::vector<int64_t>{256, 512, 1024}));
  EXPECT_EQ(Sweep::parse("M=1:9:+4").sizes, (std::vector<int64_t>{1, 5, 9}));
  EXPECT_EQ(Sweep::parse("M, K = 7, 3").sizes, (std::vector<int64_t>{7, 3}));
  EXPECT_EQ(Sweep::parse("M, K = 7, 3").names, (std::vector<std::string>{"M", "K"}));
  EXPECT_EQ(Sweep::parse("").sizes.size(), 1u);
}

// A range that would not end is refused.
TEST(Sweep, RefusesRangesWithoutAnEnd) {
  expectError([] { Sweep::parse("M=1:8:*1"); }, {"expected a factor of at least 2 in --sweep, but got '*1'"});
  expectError([] { Sweep::parse("M=1:8:+0"); }, {"expected sizes that are numbers from 1 in --sweep, but got '0'"});
  expectError([] { Sweep::parse("M=1:1000000:+1"); }, {"expected at most 1000 sizes"});
  EXPECT_EQ(Sweep::parse("M=4611686018427387904:9223372036854775807:*2").sizes.size(), 1u);
}

// A name is replaced as an extent and as a whole word, but not as a parameter's name, in an argument's extent or as a
// part of a word.
TEST(Sweep, ReplacesNamesThatStandForSizes) {
  const Sweep sweep = Sweep::parse("M,n=8");
  EXPECT_EQ(sweep.replacedIn("f32[MxKxn], M=i32[M], n, Mn", 8), "f32[8xKx8], M=i32[8], 8, Mn");
  EXPECT_EQ(sweep.replacedIn("M.0/bm, n/bn", 8), "M.0/bm, 8/bn");
  EXPECT_EQ(sweep.replacedIn("2*M*n*a.1", 8), "2*8*8*a.1");
}

} // namespace
} // namespace kiln::tools
