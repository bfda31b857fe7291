// Specialisation, the cache in memory, and the errors for arguments that do not match.

#include "lowering/Backend.h"
#include "runtime/Compile.h"
#include "runtime/Tensor.h"
#include "test/expect_error.h"
#include "test/runtime/kernels.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <malloc.h>
#include <numeric>
#include <random>
#include <set>
#include <thread>

using namespace kiln;
using namespace kiln::test;

namespace {

class Compiling : public testing::Test {
protected:
  std::shared_ptr<Device> device = Device::open("cpu:generic");
  void TearDown() override { freeze(false); }
};

// row_sums reads the row length: for another number of rows the executable is shared, for another length it is not.
TEST_F(Compiling, SpecialisesOnTheExtentsThatTheKernelAsksFor) {
  const auto executableFor = [&](int64_t rows, int64_t columns) {
    Tensor x(device, f32, {rows, columns}), y(device, f32, {rows});
    return compile(*device, rowSumsKernel, {x.ref(), y.ref()});
  };
  const auto first = executableFor(32, 48);
  EXPECT_EQ(first, executableFor(64, 48));
  EXPECT_NE(first, executableFor(32, 64));
  EXPECT_EQ(first, executableFor(32, 48));
}

// Code for extents that agree, as their common name says, is not that for extents that do not.
TEST_F(Compiling, RelatesExtentsOfOneName) {
  const Kernel copy = kernel("copy", +[](View x, View y) { store(y, {0, 0}, load(x, {0, 0}, {8, 8}) + 1.0); },
                             {"x (M, N)", "y (M, N)"});
  const auto executableFor = [&](const Shape &from, const Shape &to) {
    Tensor x(device, f32, from), y(device, f32, to);
    x.uploadFloats(std::vector<float>(from[0] * from[1], 1));
    launch(*device, copy, {1, 1, 1}, {x.ref(), y.ref()});
    for (int64_t m = 0; m < to[0]; ++m)
      for (int64_t n = 0; n < to[1]; ++n) {
        const bool isInside = m < from[0] && n < from[1];
        EXPECT_EQ(y.downloadFloats()[m * to[1] + n], isInside ? 2 : 1) << m << ", " << n;
      }
    return compile(*device, copy, {x.ref(), y.ref()});
  };
  const auto equal = executableFor({5, 7}, {5, 7});
  EXPECT_EQ(equal, executableFor({3, 8}, {3, 8}));
  const auto firstOnly = executableFor({5, 7}, {5, 3}), none = executableFor({5, 3}, {7, 8});
  EXPECT_NE(equal, firstOnly);
  EXPECT_NE(equal, none);
  EXPECT_NE(firstOnly, none);
  Tensor x(device, f32, {5, 7}), y(device, f32, {5, 3});
  EXPECT_EQ(errorOf([&] { device->launch(*equal, {1, 1, 1}, {x.ref(), y.ref()}); }),
            "kernel 'copy': expected 'y' to have the extent of dimension 1 of 'x' in dimension 1, as it was compiled "
            "for, but got f32[5x3] and f32[5x7]; extents of other names in its registration may differ");
}

// Frozen, code for extents that differ serves launches in which they agree by chance, but not the other way round.
TEST_F(Compiling, FrozenItTakesCodeThatReliesOnLess) {
  const Kernel copy =
      kernel("copy", +[](View x, View y) { store(y, {0}, load(x, {0}, {8}) + 1.0); }, {"x (N)", "y (N)"});
  Tensor x(device, f32, {4}), longer(device, f32, {6}), y(device, f32, {4});
  const auto general = compile(*device, copy, {longer.ref(), y.ref()});
  freeze(true);
  EXPECT_EQ(general, compile(*device, copy, {x.ref(), y.ref()}));
  const Kernel other =
      kernel("copy", +[](View x, View y) { store(y, {0}, load(x, {0}, {8}) + 1.0); }, {"x (N)", "y (N)"});
  freeze(false);
  compile(*device, other, {x.ref(), y.ref()});
  freeze(true);
  EXPECT_NE(errorOf([&] { compile(*device, other, {longer.ref(), y.ref()}); }).find("freeze()"), std::string::npos);
}

// A launch passes any view in place of an argument that the config does not use. Its extents are no fact.
TEST_F(Compiling, RelatesNoExtentsOfUnusedArguments) {
  const Kernel copy = kernel("copy", +[](View x, View y, View) { store(y, {0}, load(x, {0}, {8}) + 1.0); },
                             {"x (N)", "y (N)", "other (N)"});
  const auto executableFor = [&](int64_t other) {
    Tensor x(device, f32, {4}), y(device, f32, {4}), unused(device, f32, {other});
    return compile(*device, copy, {x.ref(), y.ref(), unused.ref()});
  };
  const auto first = executableFor(7);
  EXPECT_EQ(first, executableFor(4));
  EXPECT_EQ(first, executableFor(8));
}

// A trace that requests more static extents than an earlier one must not make that executable serve other extents.
TEST_F(Compiling, KeepsApartTracesThatAskForDifferentExtents) {
  const Kernel branching = kernel(
      "branching", +[](View x, View y) {
        const int64_t rows = x.extent(0) == 1 ? 1 : x.extent(1);
        store(y, {0}, full(f32, {}, rows));
      });
  const auto run = [&](int64_t m, int64_t n) {
    Tensor x(device, f32, {m, n}), y(device, f32, {1});
    launch(*device, branching, {1, 1, 1}, {x.ref(), y.ref()});
    return y.downloadFloats()[0];
  };
  EXPECT_EQ(run(1, 5), 1);
  EXPECT_EQ(run(2, 5), 5);
  EXPECT_EQ(run(2, 7), 7);
  EXPECT_EQ(run(1, 9), 1);
  EXPECT_EQ(run(2, 5), 5);
}

// Requests with ever new extents, which only another trace of the kernel reads, do not fill the memory.
TEST_F(Compiling, ManyExtentsThatOnlyAnotherTraceReadsFillNoMemory) {
  const Kernel branching = kernel(
      "branching", +[](View x, View y) {
        const int64_t rows = x.extent(0) == 1 ? 1 : x.extent(1);
        store(y, {0}, full(f32, {}, rows));
      });
  Tensor x(device, f32, {2, 5}), y(device, f32, {1});
  std::set<const Executable *> served;
  const auto heldAfter = [&](int64_t rows, int64_t from, int64_t to) {
    for (int64_t columns = from; columns < to; ++columns) {
      TensorRef ref = x.ref();
      ref.extents = {rows, columns};
      served.insert(compile(*device, branching, {ref, y.ref()}).get());
    }
    return static_cast<int64_t>(::mallinfo2().uordblks);
  };
  heldAfter(2, 5, 6);
  const int64_t few = heldAfter(1, 1, 3000), many = heldAfter(1, 3000, 20000);
  EXPECT_LE(served.size(), 3u); // by whether the number of columns is a multiple of 16
  EXPECT_LT(many - few, 17000 * 64) << "bytes for 17000 numbers of columns";
}

// Two kernels with equal name, line and address are distinguished.
TEST_F(Compiling, KnowsAKernelByIdentity) {
  using Function = void (*)(View);
  const Function functions[] = {[](View x) { store(x, {0}, full(f32, {}, 1.0)); },
                                [](View x) { store(x, {0}, full(f32, {}, 2.0)); }};
  float expected = 1;
  for (const Function function : functions) {
    const Kernel same = kernel("same", function);
    Tensor x(device, f32, {1});
    launch(*device, same, {1, 1, 1}, {x.ref()});
    EXPECT_EQ(x.downloadFloats()[0], expected++);
  }
}

// The warps and stages of a config are in no key of a target that ignores them: the second specialisation is read from
// the disk. Fields that the kernel reads change its code.
struct WarpsConfig {
  int warps = 4, stages = 2, block = 16;
};
TEST_F(Compiling, WarpsAndStagesAreInNoKeyOfTheCpu) {
  const Kernel warped = kernel("warped", +[](View x, WarpsConfig cfg) { store(x, {0}, full(f32, {cfg.block}, 3.0)); },
                               {field("warps", &WarpsConfig::warps), field("stages", &WarpsConfig::stages),
                                field("block", &WarpsConfig::block)});
  const auto compileAs = [&](const std::string &config) {
    Tensor x(device, f32, {64});
    const int64_t before = compileStatistics().compiled;
    compile(*device, warped, {x.ref()}, config);
    return compileStatistics().compiled - before;
  };
  compileAs("warps=4");
  EXPECT_EQ(compileAs("warps=8"), 0);
  EXPECT_EQ(compileAs("warps=16,stages=5"), 0);
  const auto gpu = Device::open("simulator:sm_80");
  const auto text = [&](const std::string &config) {
    Tensor x(gpu, f32, {64});
    return codeOf(*gpu, {&warped, config, {}, {x.ref()}});
  };
  EXPECT_NE(text("warps=4"), text("warps=8"));
}

// Names of arguments are not part of the cache key: the second kernel is loaded from disk.
TEST_F(Compiling, NamesOfArgumentsAreInNoKey) {
  const auto compileAs = [&](const char *x, const char *y) {
    const Kernel named = kernel("renamed", addInPlace, {x, y}, {field("block", &AddConfig::block)});
    Tensor a(device, f32, {16}), b(device, f32, {16});
    compile(*device, named, {a.ref(), b.ref()});
  };
  compileAs("x", "y");
  const CompileStatistics before = compileStatistics();
  compileAs("sum", "addend");
  EXPECT_EQ(compileStatistics().compiled, before.compiled);
  EXPECT_EQ(compileStatistics().fromDisk, before.fromDisk + 1);
}

/// The line of storeZero's store; an edit above a kernel changes it.
Loc place = {"moved.cc", 0};
void storeZero(View x) { store(x, {0}, full(f32, {}, 0.0), {}, place); }

/// How often a kernel is compiled again after an edit has moved its line at `place`.
int64_t compilationsOfAMove(const std::shared_ptr<Device> &device, Type type, void (*function)(View)) {
  const Tensor x(device, type, {1});
  compile(*device, kernel("moved", function), {x.ref()});
  place.line = static_cast<int>(std::random_device()() >> 2); // one that no earlier run has left in the cache
  const int64_t before = compileStatistics().compiled;
  compile(*device, kernel("moved", function), {x.ref()});
  return compileStatistics().compiled - before;
}

// Source lines are in the key only if the code reports them: for a CPU, an edit above a kernel compiles nothing.
TEST_F(Compiling, LinesAreInTheKeyOfCodeThatTellsThem) {
  for (const char *name : {"cpu:generic", "simulator:sm_80"}) {
    const std::shared_ptr<Device> on = Device::open(name);
    EXPECT_EQ(compilationsOfAMove(on, f32, storeZero), on->backend().tellsLines() ? 1 : 0) << name;
  }
}

/// A loop that may wait at a line that an edit changes.
void waitForOne(View x) {
  for (Tile tries : repeat_while([&] { return atomic_load(x, {0}) == 0; }, place)) {
  }
}

// The error for a wait that cannot end has the line of the present source, on all devices.
TEST_F(Compiling, LinesOfWaitsAreInTheKey) { EXPECT_EQ(compilationsOfAMove(device, i32, waitForOne), 1); }

// A finding of the simulator has the line of the kernel from which the code was generated.
TEST_F(Compiling, FindingsAreAtTheKernelsLine) {
  const std::shared_ptr<Device> simulator = Device::open("simulator:sm_80");
  const Kernel racing = kernel("racing", +[](View x) { store(x, {0}, program_id(0), {}, {"racing.cc", 42}); });
  Tensor x(simulator, i64, {1});
  launch(*simulator, racing, {2, 1, 1}, {x.ref()});
  expectError([&] { simulator->synchronize(); }, {"racing.cc:42"});
}

// A view that overlaps another must not use code that was compiled for disjoint ones: x[1:] += x[:-1] in one program
// reads all before it writes.
TEST_F(Compiling, SpecialisesOnOverlap) {
  Tensor x(device, f32, {17}), y(device, f32, {17});
  const auto whole = compile(*device, addKernel, {x.ref().slice(0, 0, 16), y.ref().slice(0, 0, 16)});
  const auto shifted = compile(*device, addKernel, {x.ref().slice(0, 0, 16), x.ref().slice(0, 1, 16)});
  EXPECT_NE(whole, shifted);
}

// The overlap of two views that the kernel only reads does not matter: one executable serves both cases, also at
// launch. The overlap of written views matters.
TEST_F(Compiling, OverlapOfWhatIsOnlyReadMakesNoDifference) {
  const Kernel sum =
      kernel("sum_of_two", +[](View x, View y, View z) { store(z, {0}, load(x, {0}, {16}) + load(y, {0}, {16})); });
  Tensor x(device, f32, {17}), y(device, f32, {17}), z(device, f32, {17});
  std::vector<float> numbers(17);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  x.uploadFloats(numbers);
  const std::vector<Arg> apart = {x.ref().slice(0, 0, 16), y.ref().slice(0, 0, 16), z.ref().slice(0, 0, 16)},
                         shifted = {x.ref().slice(0, 0, 16), x.ref().slice(0, 1, 16), z.ref().slice(0, 0, 16)},
                         inPlace = {x.ref().slice(0, 0, 16), y.ref().slice(0, 0, 16), x.ref().slice(0, 1, 16)};
  const auto executable = compile(*device, sum, apart);
  EXPECT_EQ(executable, compile(*device, sum, shifted));
  EXPECT_NE(executable, compile(*device, sum, inPlace));
  device->launch(*executable, {1}, shifted);
  EXPECT_EQ(z.downloadFloats()[3], 3 + 4);
  EXPECT_THROW(device->launch(*executable, {1}, inPlace), Error);
}

// For a `varying` argument, a GPU's code serves all extents and strides.
TEST_F(Compiling, OneExecutableServesWhatIsNotTold) {
  const std::shared_ptr<Device> gpu = Device::open("simulator:sm_80");
  const Kernel firsts = kernel("firsts", +[](View x, View y) { store(y, {0}, sum(load(x, {0, 0}, {2, 16}), 1)); });
  const Target elastic = {.name = "gpu", .facts = GpuFacts{}, .elastic = true};
  const auto executableFor = [&](int64_t count, bool specialised) {
    Tensor x(gpu, f32, {2, count}), y(gpu, f32, {2});
    const Arg argument = specialised ? Arg(x) : elastic.varying(x);
    return compile(*gpu, firsts, {argument, y.ref()});
  };
  EXPECT_NE(executableFor(48, true), executableFor(47, true));
  EXPECT_EQ(executableFor(48, false), executableFor(47, false));
  EXPECT_EQ(executableFor(47, true), executableFor(48, false)); // of which as little is known
}

TEST_F(Compiling, CompilesOnceWhenManyThreadsAsk) {
  const Kernel fresh = kernel("fresh", addInPlace, {field("block", &AddConfig::block)});
  Tensor x(device, f32, {16}), y(device, f32, {16});
  std::vector<std::shared_ptr<const Executable>> executables(8);
  std::vector<std::thread> threads;
  const CompileStatistics before = compileStatistics();
  for (auto &executable : executables)
    threads.emplace_back([&] { EXPECT_NO_THROW(executable = compile(*device, fresh, {x.ref(), y.ref()})); });
  for (std::thread &thread : threads)
    thread.join();
  for (const auto &executable : executables)
    EXPECT_EQ(executable, executables[0]);
  const CompileStatistics after = compileStatistics();
  EXPECT_EQ(after.compiled + after.fromDisk - before.compiled - before.fromDisk, 1);
}

TEST_F(Compiling, CompilesDifferentKernelsOnManyThreads) {
  Tensor x(device, f32, {16}), y(device, f32, {16});
  std::vector<std::thread> threads;
  for (int block = 1; block <= 8; ++block)
    threads.emplace_back([&, block] {
      EXPECT_NO_THROW(compile(*device, addKernel, {x.ref(), y.ref()}, "block=" + std::to_string(block)));
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST_F(Compiling, RefusesToCompileWhenFrozen) {
  Tensor x(device, f32, {16}), y(device, f32, {16});
  compile(*device, addKernel, {x.ref(), y.ref()}, "block=2");
  freeze();
  EXPECT_NO_THROW(compile(*device, addKernel, {x.ref(), y.ref()}, "block=2"));
  EXPECT_EQ(errorOf([&] { compile(*device, addKernel, {x.ref(), y.ref()}, "block=32"); }),
            "kernel 'add' requires compilation, which freeze() forbids; new arguments: f32[16], f32[16] with config "
            "'block=32'");
}

// --- Messages -------------------------------------------------------------------------------------------------------

TEST_F(Compiling, TellsTheNumberOfArguments) {
  Tensor x(device, f32, {16});
  EXPECT_EQ(errorOf([&] { compile(*device, addKernel, {x.ref()}); }), "kernel 'add': expected 2 arguments, but got 1");
}

TEST_F(Compiling, TellsATensorFromAScalar) {
  Tensor x(device, f32, {16});
  EXPECT_EQ(errorOf([&] { compile(*device, addKernel, {x.ref(), 1.0f}); }),
            "kernel 'add': expected 'y' to be a tensor, but got f32 scalar");
  EXPECT_EQ(errorOf([&] { compile(*device, scaleKernel, {x.ref(), x.ref()}); }),
            "kernel 'scale': expected 's' to be a scalar, but got f32[16]");
}

TEST_F(Compiling, TellsOfATensorWithoutMemory) {
  Tensor x(device, f32, {16});
  EXPECT_EQ(errorOf([&] { compile(*device, addKernel, {x.ref(), TensorRef::dense(nullptr, f32, {4, 2})}); }),
            "kernel 'add': expected 'y' to have memory, but got f32[4x2] without");
}

// An executable launched with arguments that it was not compiled for.
TEST_F(Compiling, TellsOfArgumentsOfAnotherSpecialisation) {
  Tensor x(device, f32, {4, 48}), y(device, f32, {4}), wide(device, f32, {4, 64}), half(device, bf16, {4, 48});
  const auto executable = compile(*device, rowSumsKernel, {x.ref(), y.ref()});
  EXPECT_EQ(errorOf([&] { device->launch(*executable, {4, 1, 1}, {wide.ref(), y.ref()}); }),
            "kernel 'row_sums': expected 'x' to be f32[?x48], as it was compiled for, but got f32[4x64]");
  EXPECT_EQ(errorOf([&] { device->launch(*executable, {4, 1, 1}, {half.ref(), y.ref()}); }),
            "kernel 'row_sums': expected 'x' to be f32[?x48], as it was compiled for, but got bf16[4x48]");
}

TEST_F(Compiling, TellsTheNamesOfConfigFields) {
  Tensor x(device, f32, {16}), y(device, f32, {16});
  const std::string text = errorOf([&] { compile(*device, addKernel, {x.ref(), y.ref()}, "blok=4"); });
  EXPECT_NE(text.find("blok"), std::string::npos) << text;
  EXPECT_NE(text.find("block"), std::string::npos) << text;
}

// An error of the kernel itself names its line, and does not affect later compilations.
TEST_F(Compiling, TellsTheLineOfAMistakeInAKernel) {
  Tensor x(device, f32, {16, 16}), y(device, f32, {16});
  for (int attempt = 0; attempt < 2; ++attempt) {
    const std::string text = errorOf([&] { compile(*device, addKernel, {x.ref(), y.ref()}); });
    EXPECT_NE(text.find("kernels.h:"), std::string::npos) << text;
  }
  EXPECT_NO_THROW(compile(*device, addKernel, {y.ref(), y.ref()}));
}

TEST_F(Compiling, TellsOfAGridThatIsNone) {
  Tensor x(device, f32, {16}), y(device, f32, {16});
  EXPECT_EQ(errorOf([&] { launch(*device, addKernel, {-1, 1, 1}, {x.ref(), y.ref()}); }),
            "kernel 'add': expected a grid of extents from 0 to 2^40 and less than 2^63 programs, but got -1x1x1");
}

// --- Plans ----------------------------------------------------------------------------------------------------------

/// workspace[0:16] += x twice, then x += workspace.
Plan doubling(const Tensor &x) {
  const Arg region = Arg::workspace(64, f32, {16});
  Plan plan;
  plan.workspaceBytes = 128;
  plan.launches = {{&addKernel, "", {1, 1, 1}, {region, x.ref()}},
                   {&addKernel, "", {1, 1, 1}, {region, x.ref()}},
                   {&addKernel, "", {1, 1, 1}, {x.ref(), region}}};
  return plan;
}

TEST_F(Compiling, RunsThePlansLaunchesInOrderOverOneWorkspace) {
  Tensor x(device, f32, {16}), workspace(device, i8, {128});
  x.uploadFloats(std::vector<float>(16, 1));
  run(*device, doubling(x), workspace);
  EXPECT_EQ(x.downloadFloats(), std::vector<float>(16, 3));
}

TEST_F(Compiling, TellsOfAWorkspaceThatIsTooSmall) {
  Tensor x(device, f32, {16}), workspace(device, i8, {100});
  EXPECT_EQ(errorOf([&] { run(*device, doubling(x), workspace); }), "expected a workspace of 128 bytes, but got 100");
  EXPECT_EQ(errorOf([&] { run(*device, doubling(x)); }), "expected a workspace of 128 bytes, but got 0");
}

TEST_F(Compiling, TellsOfARegionOutsideThePlansWorkspace) {
  Tensor x(device, f32, {16}), workspace(device, i8, {128});
  Plan plan = doubling(x);
  plan.launches[1].args[0].workspaceOffset = 65;
  EXPECT_EQ(errorOf([&] { run(*device, plan, workspace); }),
            "kernel 'add': expected 'x' to lie in the plan's workspace of 128 bytes, but got f32[16] at byte 65");
}

// --- Preparing a plan: its launches' code is compiled before anything runs, several kernels at a time ----------------

class Preparing : public testing::Test {
protected:
  std::shared_ptr<Device> device = Device::open("cpu:generic");
  Tensor x{device, f32, {16}}, y{device, f32, {16}}, matrix{device, f32, {16, 16}};
  // A kernel of this test alone: nothing of it is in memory.
  const Kernel fresh = kernel("fresh", addInPlace, {field("block", &AddConfig::block)});

  void SetUp() override { setCompileThreads(4); }
  void TearDown() override { freeze(false); }

  Launch adding(int block) const { return {&fresh, "block=" + std::to_string(block), {1, 1, 1}, {x.ref(), y.ref()}}; }
  /// Does not compile: the kernel indexes `matrix` with one coordinate.
  Launch failing() const { return {&fresh, "", {1, 1, 1}, {matrix.ref(), y.ref()}}; }

  static int64_t made() {
    const CompileStatistics statistics = compileStatistics();
    return statistics.compiled + statistics.fromDisk;
  }
};

// Every specialisation of a plan is compiled once, for any number of launches and threads; none is missing.
TEST_F(Preparing, MakesEachSpecialisationOnceAndLeavesNone) {
  Plan plan;
  for (int repeat = 0; repeat < 3; ++repeat)
    for (int block = 1; block <= 6; ++block)
      plan.launches.push_back(adding(block));
  const int64_t before = made();
  prepare(*device, plan);
  EXPECT_EQ(made() - before, 6);
  freeze();
  EXPECT_NO_THROW(run(*device, plan));
}

// Extents that a trace reads decide which launches share it: row_sums makes the row length static.
TEST_F(Preparing, SharesASpecialisationBetweenLaunchesThatDifferInWhatIsNotAskedFor) {
  const Kernel sums = kernel("fresh_row_sums", rowSums);
  Tensor tall(device, f32, {32, 16}), wide(device, f32, {16, 48}), out(device, f32, {32});
  Plan plan;
  for (const Tensor *in : {&matrix, &tall, &wide, &matrix})
    plan.launches.push_back({&sums, "", {16, 1, 1}, {in->ref(), out.ref()}});
  const int64_t before = made();
  prepare(*device, plan);
  EXPECT_EQ(made() - before, 2);
}

// The error of the first failing launch is thrown, even if a later one fails earlier. The first launch needs too much
// scratch memory, which shows at the end of its compilation; the second has a mistake.
TEST_F(Preparing, ThrowsTheFirstErrorInTheOrderOfTheLaunches) {
  Plan plan;
  plan.launches = {adding(11), adding(1 << 24), adding(12), failing()};
  for (int attempt = 0; attempt < 8; ++attempt) {
    const std::string text = errorOf([&] { prepare(*device, plan); });
    EXPECT_NE(text.find("scratch"), std::string::npos) << text;
  }
  std::swap(plan.launches[1], plan.launches[3]);
  const std::string text = errorOf([&] { prepare(*device, plan); });
  EXPECT_NE(text.find("kernels.h:"), std::string::npos) << text;
  EXPECT_EQ(text.find("scratch"), std::string::npos) << text;
}

// A plan with a launch that does not compile changes nothing.
TEST_F(Preparing, RunsNothingWhenALaunchDoesNotCompile) {
  x.uploadFloats(std::vector<float>(16, 1));
  y.uploadFloats(std::vector<float>(16, 2));
  Plan plan;
  plan.launches = {adding(16), failing()};
  errorOf([&] { run(*device, plan); });
  EXPECT_EQ(x.downloadFloats(), std::vector<float>(16, 1));
}

// Several threads may prepare plans that overlap; each ends with everything it needs, made once.
TEST_F(Preparing, ServesManyThreadsAtOnce) {
  Plan plan;
  for (int block = 21; block <= 26; ++block)
    plan.launches.push_back(adding(block));
  Plan reversed = plan;
  std::reverse(reversed.launches.begin(), reversed.launches.end());
  const int64_t before = made();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] { EXPECT_NO_THROW(prepare(*device, i % 2 ? plan : reversed)); });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(made() - before, 6);
}

// A prepared plan needs neither the caches nor the plan, and runs any number of times.
TEST_F(Preparing, APreparedPlanLooksNothingUp) {
  x.uploadFloats(std::vector<float>(16, 1));
  y.uploadFloats(std::vector<float>(16, 2));
  PreparedPlan ready;
  ready.run(); // nothing
  ready = prepare(*device, {.launches = {adding(16), adding(8)}});
  forgetCompiled();
  const CompileStatistics before = compileStatistics();
  ready.run();
  ready.run();
  const CompileStatistics after = compileStatistics();
  EXPECT_EQ(before.compiled + before.fromDisk + before.fromMemory, after.compiled + after.fromDisk + after.fromMemory);
  std::vector<float> want(8, 9); // y is added to all of x by one launch, and to its first half by another, twice
  want.resize(16, 5);
  EXPECT_EQ(x.downloadFloats(), want);
}

// Nothing may be compiled after freeze(), by prepare() neither.
TEST_F(Preparing, RefusesToCompileWhenFrozen) {
  freeze();
  Plan plan;
  plan.launches = {adding(31)};
  EXPECT_EQ(errorOf([&] { prepare(*device, plan); }),
            "kernel 'fresh' requires compilation, which freeze() forbids; new arguments: f32[16], f32[16] with "
            "config 'block=31'");
}

// prepare() uses the workspace's address like run(), because it is part of the specialisation.
TEST_F(Preparing, TellsOfAWorkspaceThatIsTooSmall) {
  Plan plan;
  plan.launches = {{&fresh, "", {1, 1, 1}, {Arg::workspace(0, f32, {16}), x.ref()}}};
  plan.workspaceBytes = 64;
  EXPECT_EQ(errorOf([&] { prepare(*device, plan); }), "expected a workspace of 64 bytes, but got 0");
}

} // namespace
