// Objects made of hand-written loops: they load, compute what they say, and need nothing that lowering/Abi.h lacks.

#include "test/lowering/Loaded.h"

#include "dialect/dsl/Types.h"
#include "lowering/Backend.h"
#include "lowering/cpu/CpuTarget.h"

#include "llvm/Object/ObjectFile.h"
#include "gtest/gtest.h"

#include <map>
#include <numeric>
#include <set>

using namespace kiln;
using kiln::test::ArgumentBlock, kiln::test::Loaded, kiln::test::objectOf;

static constexpr const char *x86v3 = "x86-64-v3";

/// Copies rows through scratch: row i of `out` becomes row i of `in` times the scalar, when the flag is set. The
/// program adds 1000 times its z index, so that the grid is seen.
static constexpr const char *scaleRows = R"mlir(
func.func @scale(%in: memref<?x8xf32, strided<[?, 1]>>, %out: memref<?x8xf32, strided<[?, 1]>>, %s: f32, %flag: i1)
    attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows64 = tile.dim %in, 0 : memref<?x8xf32, strided<[?, 1]>>
  %rows = arith.index_cast %rows64 : i64 to index
  %z = tile.program_id 2
  %zf = arith.sitofp %z : i64 to f32
  %k = arith.constant 1000.0 : f32
  %add = arith.mulf %zf, %k : f32
  %vs = vector.broadcast %s : f32 to vector<8xf32>
  %va = vector.broadcast %add : f32 to vector<8xf32>
  scf.if %flag {
    scf.for %i = %c0 to %rows step %c1 {
      %buffer = memref.alloca() {alignment = 64 : i64} : memref<1x8xf32>
      %x = vector.load %in[%i, %c0] : memref<?x8xf32, strided<[?, 1]>>, vector<8xf32>
      %y = math.fma %x, %vs, %va : vector<8xf32>
      vector.store %y, %buffer[%c0, %c0] : memref<1x8xf32>, vector<8xf32>
      %t = vector.load %buffer[%c0, %c0] : memref<1x8xf32>, vector<8xf32>
      vector.store %t, %out[%i, %c0] : memref<?x8xf32, strided<[?, 1]>>, vector<8xf32>
    }
  }
  return
}
)mlir";

static ArgumentBlock scaleBlock(float *in, float *out, bool flag, int64_t z) {
  ArgumentBlock block(1, 1, z);
  block.pointer(in).integer(3).integer(10).pointer(out).integer(3).integer(8).real(2.0f).integer(flag);
  return block;
}

static void expectScaled(const Loaded &kernel) {
  std::vector<float> in(30), out(24, -1.0f);
  std::iota(in.begin(), in.end(), 0.0f);
  kernel.run(scaleBlock(in.data(), out.data(), true, 3)); // the last program, z = 2, leaves its result
  for (int row = 0; row < 3; ++row)
    for (int column = 0; column < 8; ++column)
      EXPECT_EQ(out[row * 8 + column], in[row * 10 + column] * 2 + 2000) << row << ", " << column;
}

TEST(Object, LoadsAndRuns) { expectScaled(Loaded(objectOf(scaleRows), "scale")); }

TEST(Object, RunsWhenMadeForAvx2) { expectScaled(Loaded(objectOf(scaleRows, x86v3), "scale")); }

TEST(Object, ReadsBoolScalars) {
  const Loaded kernel(objectOf(scaleRows), "scale");
  std::vector<float> in(30, 1.0f), out(24, -1.0f);
  kernel.run(scaleBlock(in.data(), out.data(), false, 1));
  EXPECT_EQ(out, std::vector<float>(24, -1.0f));
}

TEST(Object, SaysItsScratchBytes) {
  // One row of 8 floats in the smallest unit of 64 bytes.
  EXPECT_EQ(Loaded(objectOf(scaleRows), "scale").scratchBytes(), 64);
}

/// Every program writes its three indices, found from its number alone, to its own row.
TEST(Object, DecodesTheProgramNumber) {
  const Loaded kernel(objectOf(R"mlir(
func.func @ids(%out: memref<?xi64, strided<[1]>>) attributes {tile.kernel} {
  %x = tile.program_id 0
  %y = tile.program_id 1
  %z = tile.program_id 2
  %nx = tile.num_programs 0
  %ny = tile.num_programs 1
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : i64
  %zy = arith.muli %z, %ny : i64
  %yz = arith.addi %zy, %y : i64
  %yzx = arith.muli %yz, %nx : i64
  %p = arith.addi %yzx, %x : i64
  %at64 = arith.muli %p, %c3 : i64
  %at = arith.index_cast %at64 : i64 to index
  %at1 = arith.addi %at, %c1 : index
  %at2 = arith.addi %at, %c2 : index
  memref.store %x, %out[%at] : memref<?xi64, strided<[1]>>
  memref.store %y, %out[%at1] : memref<?xi64, strided<[1]>>
  memref.store %z, %out[%at2] : memref<?xi64, strided<[1]>>
  return
}
)mlir"),
                      "ids");
  std::vector<int64_t> out(3 * 5 * 4 * 3, -1), want;
  for (int64_t z = 0; z < 3; ++z)
    for (int64_t y = 0; y < 4; ++y)
      for (int64_t x = 0; x < 5; ++x)
        want.insert(want.end(), {x, y, z});
  ArgumentBlock block(5, 4, 3);
  kernel.run(block.pointer(out.data()).integer(int64_t(out.size())));
  EXPECT_EQ(out, want);
}

/// Loops that fill and copy byte by byte: what LLVM likes to turn into memset and memcpy.
static constexpr const char *fillAndCopy = R"mlir(
func.func @fill(%a: memref<?xi8, strided<[1]>>, %b: memref<?xi8, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i8
  %n64 = tile.dim %a, 0 : memref<?xi8, strided<[1]>>
  %n = arith.index_cast %n64 : i64 to index
  %scratch = memref.alloca() : memref<4096xi8>
  %c4096 = arith.constant 4096 : index
  scf.for %i = %c0 to %c4096 step %c1 {
    memref.store %zero, %scratch[%i] : memref<4096xi8>
  }
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %scratch[%i] : memref<4096xi8>
    memref.store %x, %a[%i] : memref<?xi8, strided<[1]>>
  }
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %a[%i] : memref<?xi8, strided<[1]>>
    memref.store %x, %b[%i] : memref<?xi8, strided<[1]>>
  }
  return
}
)mlir";

static std::set<std::string> undefinedSymbols(const std::vector<char> &bytes) {
  const llvm::StringRef text(bytes.data(), bytes.size());
  const auto object = llvm::cantFail(llvm::object::ObjectFile::createELFObjectFile({text, "kernel"}));
  std::set<std::string> names;
  for (const llvm::object::SymbolRef &symbol : object->symbols())
    if (llvm::cantFail(symbol.getFlags()) & llvm::object::SymbolRef::SF_Undefined)
      names.insert(llvm::cantFail(symbol.getName()).str());
  names.erase(""); // the first entry of every symbol table
  return names;
}

TEST(Object, CallsNoLibraryToFillAndCopy) {
  for (const char *cpu : {"native", x86v3}) {
    const std::vector<char> object = objectOf(fillAndCopy, cpu);
    EXPECT_EQ(undefinedSymbols(object), std::set<std::string>()) << cpu;
    std::vector<int8_t> a(1000, 1), b(1000, 2);
    ArgumentBlock block;
    Loaded(object, "fill").run(block.pointer(a.data()).integer(1000).pointer(b.data()).integer(1000));
    EXPECT_EQ(a, std::vector<int8_t>(1000, 0));
    EXPECT_EQ(b, std::vector<int8_t>(1000, 0));
  }
}

/// A kernel that would need libm is refused with the name of the function.
TEST(Object, RefusesCallsOfLibraries) {
  try {
    objectOf(R"mlir(
func.func @k(%a: memref<?xf32, strided<[1]>>, %x: f32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %y = llvm.intr.pow(%x, %x) : (f32, f32) -> f32
  memref.store %y, %a[%c0] : memref<?xf32, strided<[1]>>
  return
}
)mlir");
    FAIL() << "compiled";
  } catch (const Error &error) {
    EXPECT_EQ(error.fault, Fault::internal);
    EXPECT_NE(std::string(error.what()).find("it calls 'powf'"), std::string::npos) << error.what();
  }
}

/// Stages come in order, and each is the text of that stage.
TEST(Object, ShowsItsStages) {
  std::vector<std::string> stages;
  std::map<std::string, std::string> text;
  objectOf(scaleRows, "cpu", [&](const std::string &stage, const std::string &content) {
    stages.push_back(stage);
    text[stage] = content;
  });
  EXPECT_EQ(stages, (std::vector<std::string>{"tile", "loops", "llvm-dialect", "llvm", "asm"}));
  EXPECT_NE(text["tile"].find("tile.program_id"), std::string::npos);
  EXPECT_NE(text["loops"].find("scf.for"), std::string::npos);
  EXPECT_EQ(text["llvm-dialect"].find("scf.for"), std::string::npos);
  EXPECT_NE(text["llvm"].find("define void @scale(ptr"), std::string::npos);
  EXPECT_NE(text["asm"].find("scale:"), std::string::npos);
}

/// A CPU uses an instruction for products only if it has it and is faster by it: bf16 is widened on Intel's CPUs
/// without AMX, although they have the instruction for pairs.
TEST(Cpu, UsesUnitsThatAreFaster) {
  const char *withoutAmx = "-amx-tile,-amx-bf16,-amx-int8";
  const struct {
    const char *cpu, *features;
    bool pairs, quads, tiles, permutes;
  } cases[] = {{"znver3", "", false, false, false, true},
               {"znver4", "", true, true, false, true},
               {"znver5", "", true, true, false, true},
               {"x86-64-v3", "", false, false, false, true},
               {"x86-64-v4", "", false, false, false, false},
               {"skylake-avx512", "", false, false, false, false},
               {"cascadelake", "", false, true, false, false},
               {"cooperlake", "", false, true, false, false},
               {"icelake-server", "", false, true, false, true},
               {"sapphirerapids", "", false, true, true, true},
               {"sapphirerapids", withoutAmx, false, true, false, true},
               {"emeraldrapids", "", false, true, true, true},
               {"emeraldrapids", withoutAmx, false, true, false, true},
               {"graniterapids", "", false, true, true, true}};
  for (const auto &each : cases) {
    const lowering::cpu::CpuTarget got = lowering::cpu::cpuNamed(each.cpu, each.features);
    EXPECT_EQ(got.bf16Pairs, each.pairs) << each.cpu << each.features;
    EXPECT_EQ(got.i8Quads, each.quads) << each.cpu << each.features;
    EXPECT_EQ(got.tiles, each.tiles) << each.cpu << each.features;
    EXPECT_EQ(got.fastPermutes, each.permutes) << each.cpu << each.features;
  }
}

/// Where there is AMX, every test of products runs on its tiles; else those of "cpu:amx" alone do, by emulation.
TEST(Object, ForTheCpuUsesTheProcessorsTiles) {
  if (!lowering::cpu::hostCpu().tiles)
    GTEST_SKIP() << "the processor has no AMX, or the system does not let us use it: products on tiles are emulated";
  EXPECT_EQ(lowering::openBackend("cpu")->key(), lowering::openBackend("cpu:amx")->key());
}
