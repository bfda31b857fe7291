// Measures the simulator's speed on one core, with its checks off and on. It runs a GEMM by mma.sync with asynchronous
// copies in two stages, a warpgroup's products by wgmma, loops of loads and stores of shared memory, and float
// arithmetic. Also the time to parse a text, the gain of a second core, and the cost of checks for accesses of every
// width.

#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/Launch.h"
#include "runtime/simulator/ptx/Parser.h"
#include "tools/kiln-bench/bench.h"

#include <array>
#include <ctime>
#include <fmt/format.h>

using namespace kiln;
using namespace kiln::simulator;

static const char *const head = ".version 8.0\n.target sm_80\n.address_size 64\n";

// --- The product ---------------------------------------------------------------------------------------------------

static constexpr int M = 256, N = 256, K = 1024, tile = 64, stageBytes = 2 * tile * tile * 2;
static constexpr double products = double{M} * N * K / (16 * 8 * 16);

/// Copies the tiles of A and B of step %step to its stage: 16 bytes per thread, eight times; the chunks of a row are
/// rotated by the row's number.
static std::string copyTiles() {
  std::string text = fmt::format("setp.lt.u32 %g, %step, {};\n", K / tile) +
                     "and.b32 %t0, %step, 1; mad.lo.u32 %t1, %t0, 16384, %copyto; mul.wide.u32 %q0, %step, 128;\n"
                     "add.u64 %q1, %a, %q0; mul.wide.u32 %q0, %step, 32768; add.u64 %q2, %b, %q0;\n";
  for (int i = 0; i < 4; ++i)
    text += fmt::format("@%g cp.async.cg.shared.global [%t1+{}], [%q1+{}], 16;\n"
                        "@%g cp.async.cg.shared.global [%t1+{}], [%q2+{}], 16;\n",
                        2048 * i, 32768 * i, 8192 + 2048 * i, 8192 * i);
  return text + "cp.async.commit_group;\n";
}

/// 8 products of 16 × 8 × 16 from the rows k … k + 15 of a stage.
static std::string multiplySlice(int slice) {
  std::string text;
  for (int m = 0; m < 2; ++m)
    text += fmt::format("xor.b32 %t3, %rowa, {}; add.u32 %t3, %t3, %t2;\n"
                        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%x{}, %x{}, %x{}, %x{}}}, [%t3+{}];\n",
                        slice << 5, 4 * m, 4 * m + 1, 4 * m + 2, 4 * m + 3, 2048 * m);
  for (int n = 0; n < 2; ++n)
    text += fmt::format("xor.b32 %t3, %rowb, {}; add.u32 %t3, %t3, %t2;\n"
                        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {{%y{}, %y{}, %y{}, %y{}}}, [%t3+{}];\n",
                        n << 5, 4 * n, 4 * n + 1, 4 * n + 2, 4 * n + 3, 8192 + 2048 * slice);
  for (int m = 0; m < 2; ++m)
    for (int n = 0; n < 4; ++n) {
      const int c = 16 * m + 4 * n;
      text += fmt::format("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%c{0}, %c{1}, %c{2}, %c{3}}}, "
                          "{{%x{4}, %x{5}, %x{6}, %x{7}}}, {{%y{8}, %y{9}}}, {{%c{0}, %c{1}, %c{2}, %c{3}}};\n",
                          c, c + 1, c + 2, c + 3, 4 * m, 4 * m + 1, 4 * m + 2, 4 * m + 3, 2 * n, 2 * n + 1);
    }
  return text;
}

/// C = A · B in f32 from f16: a block of 4 warps computes 64 × 64 elements, each warp 32 × 32 of them.
static std::string productText() {
  std::string text =
      std::string(head) +
      ".extern .shared .align 1024 .b8 stages[];\n"
      ".visible .entry product(.param .u64 pa, .param .u64 pb, .param .u64 pc) {\n"
      ".reg .b64 %a, %b, %out, %q<4>; .reg .b32 %id, %lane, %warp, %step, %copyto, %rowa, %rowb, %t<8>;\n"
      ".reg .b32 %x<8>, %y<8>; .reg .f32 %c<32>; .reg .pred %p, %g;\n"
      "ld.param.u64 %a, [pa]; ld.param.u64 %b, [pb]; ld.param.u64 %out, [pc];\n"
      "mov.u32 %id, %tid.x; and.b32 %lane, %id, 31; shr.u32 %warp, %id, 5;\n";
  // A thread copies chunk tid % 8 of rows tid / 8 + 16 i.
  text += "shr.u32 %t0, %id, 3; and.b32 %t1, %id, 7; and.b32 %t2, %t0, 7; xor.b32 %t2, %t2, %t1; shl.b32 %t2, %t2, 4;\n"
          "mad.lo.u32 %t2, %t0, 128, %t2; mov.u32 %copyto, stages; add.u32 %copyto, %copyto, %t2;\n"
          "mov.u32 %t3, %ctaid.y; mad.lo.u32 %t3, %t3, 64, %t0; mul.wide.u32 %q0, %t3, 2048; add.u64 %a, %a, %q0;\n"
          "mul.wide.u32 %q0, %t1, 16; add.u64 %a, %a, %q0; add.u64 %b, %b, %q0;\n"
          "mul.wide.u32 %q0, %t0, 512; add.u64 %b, %b, %q0; mov.u32 %t3, %ctaid.x; mul.wide.u32 %q0, %t3, 128;\n"
          "add.u64 %b, %b, %q0;\n";
  // The rows of A and B of a lane's matrices.
  text +=
      "and.b32 %t0, %lane, 15; shr.u32 %t1, %lane, 4; and.b32 %t2, %lane, 7; shr.u32 %t3, %warp, 1; and.b32 %t4, "
      "%warp, 1;\n"
      "mad.lo.u32 %t5, %t3, 32, %t0; shl.b32 %t5, %t5, 7; xor.b32 %t6, %t1, %t2; shl.b32 %t6, %t6, 4; add.u32 "
      "%rowa, %t5, %t6;\n"
      "shl.b32 %t5, %t0, 7; mad.lo.u32 %t6, %t4, 4, %t1; xor.b32 %t6, %t6, %t2; shl.b32 %t6, %t6, 4; add.u32 %rowb, "
      "%t5, %t6;\n";
  for (int i = 0; i < 32; ++i)
    text += fmt::format("mov.f32 %c{}, 0f00000000;\n", i);
  text += "mov.u32 %step, 0;\n" + copyTiles() + "mov.u32 %step, 1;\nloop:\n" + copyTiles() +
          "cp.async.wait_group 1;\nbar.sync 0;\nsub.u32 %t0, %step, 1; and.b32 %t0, %t0, 1; mov.u32 %t1, stages; "
          "mad.lo.u32 %t2, %t0, 16384, %t1;\n";
  for (int slice = 0; slice < 4; ++slice)
    text += multiplySlice(slice);
  text += fmt::format("bar.sync 0;\nadd.u32 %step, %step, 1; setp.le.u32 %p, %step, {};\n@%p bra loop;\n"
                      "cp.async.wait_all;\n",
                      K / tile);
  // Rows lane / 4 + 8 i, columns 2 (lane % 4) + 8 n of a warp's part.
  text += "shr.u32 %t3, %warp, 1; and.b32 %t4, %warp, 1; mov.u32 %t0, %ctaid.y; shl.b32 %t0, %t0, 6; mad.lo.u32 %t0, "
          "%t3, 32, %t0; shr.u32 %t1, %lane, 2; add.u32 "
          "%t0, %t0, %t1;\n"
          "mov.u32 %t1, %ctaid.x; shl.b32 %t1, %t1, 6; mad.lo.u32 %t1, %t4, 32, %t1; and.b32 %t2, %lane, 3; mad.lo.u32 "
          "%t1, %t2, 2, %t1;\n"
          "mad.lo.u32 %t0, %t0, 256, %t1; mul.wide.u32 %q0, %t0, 4; add.u64 %out, %out, %q0;\n";
  for (int m = 0; m < 2; ++m)
    for (int n = 0; n < 4; ++n)
      for (int half = 0; half < 2; ++half)
        text += fmt::format("st.global.v2.f32 [%out+{}], {{%c{}, %c{}}};\n", (16 * m + 8 * half) * 1024 + 32 * n,
                            16 * m + 4 * n + 2 * half, 16 * m + 4 * n + 2 * half + 1);
  return text + "ret;\n}\n";
}

// --- Loops ---------------------------------------------------------------------------------------------------------

static constexpr int unrolled = 16;

/// Repeats the body `turns` times, in 128 threads.
static std::string loopText(const std::string &body, int turns) {
  return std::string(head) +
         ".visible .entry loop(.param .u64 out) {\n.shared .align 16 .b8 place[32768];\n.reg .b64 %q; .reg .b32 %t, "
         "%n, "
         "%at, %r<16>; .reg .f32 %f<16>; .reg .pred %p;\nmov.u32 %t, %tid.x; mov.u32 %at, place; mad.lo.u32 %at, %t, "
         "4, "
         "%at; mov.u32 %n, 0;\n" +
         [] {
           std::string zeros;
           for (int i = 0; i < unrolled; ++i)
             zeros += fmt::format("st.shared.u32 [%at+{}], 0; mov.f32 %f{}, 0f3f800000;\n", 512 * i, i);
           return zeros;
         }() +
         "again:\n" + body +
         fmt::format("add.u32 %n, %n, 1; setp.lt.u32 %p, %n, {};\n@%p bra again;\nret;\n}}\n", turns);
}

static std::string sharedBody() {
  std::string text;
  for (int i = 0; i < unrolled; ++i)
    text += fmt::format("ld.shared.u32 %r{0}, [%at+{1}]; add.u32 %r{0}, %r{0}, 1; st.shared.u32 [%at+{1}], %r{0};\n", i,
                        512 * i);
  return text;
}

/// Accesses of a thread in an iteration, and their bytes.
static int stridedCount(int bytes) { return bytes == 16 ? 8 : unrolled; }
static int stridedBytes(int bytes, int stride) {
  const int next = stride == bytes ? 128 * bytes : bytes;
  return 127 * stride + (stridedCount(bytes) - 1) * next + bytes;
}

/// Repeats loads, additions and stores of `bytes` bytes `turns` times in 128 threads, in shared or global memory.
/// Threads are `stride` bytes apart. A thread's accesses are adjacent, or a row of all threads apart if the threads'
/// are adjacent.
static std::string stridedText(bool isShared, int bytes, int stride, int turns) {
  const std::string type = bytes == 16 ? "v4.u32" : fmt::format("u{}", 8 * bytes),
                    first = bytes < 4    ? "%h0"
                            : bytes == 8 ? "%w0"
                                         : "%r0",
                    data = bytes == 16 ? "{%r0, %r1, %r2, %r3}" : first,
                    sum = fmt::format("add.u{0} {1}, {1}, 1;\n",
                                      bytes < 4    ? 16
                                      : bytes == 8 ? 64
                                                   : 32,
                                      first);
  const int count = stridedCount(bytes), next = stride == bytes ? 128 * bytes : bytes;
  const char *const space = isShared ? "shared" : "global";
  std::string stores, body;
  for (int i = 0; i < count; ++i) {
    const std::string store = fmt::format("st.{}.{} [%at+{}], {};\n", space, type, i * next, data);
    stores += store;
    body += fmt::format("ld.{}.{} {}, [%at+{}];\n", space, type, data, i * next) + sum + store;
  }
  const std::string begin =
      isShared ? fmt::format(".shared .align 16 .b8 place[{}]; .reg .b32 %at; mov.u32 %at, place;\n"
                             "mad.lo.u32 %at, %t, {}, %at;\n",
                             stridedBytes(bytes, stride), stride)
               : fmt::format(".reg .b64 %at, %q; ld.param.u64 %at, [out]; mul.wide.u32 %q, %t, {}; add.u64 %at, %at, "
                             "%q;\n",
                             stride);
  return std::string(head) +
         ".visible .entry loop(.param .u64 out) {\n"
         ".reg .b64 %w<1>; .reg .b32 %t, %n, %r<4>; .reg .b16 %h<1>; .reg .pred %p;\n"
         "mov.u16 %h0, 0; mov.u64 %w0, 0; mov.u32 %r0, 0; mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, 0;\n"
         "mov.u32 %n, 0; mov.u32 %t, %tid.x;\n" +
         begin + stores + "again:\n" + body +
         fmt::format("add.u32 %n, %n, 1; setp.lt.u32 %p, %n, {};\n@%p bra again;\nret;\n}}\n", turns);
}

static std::string floatBody() {
  std::string text;
  for (int i = 0; i < unrolled; ++i)
    text += fmt::format("fma.rn.f32 %f{0}, %f{0}, 0f3f000000, %f{1}; mul.f32 %f{0}, %f{0}, 0f3f400000; add.f32 %f{0}, "
                        "%f{0}, %f{1};\n",
                        i, (i + 1) % unrolled);
  return text;
}

static constexpr int warpgroupProducts = 4;

/// Repeats a step of 64 × 64 × 64 by a warpgroup `turns` times: 4 products with both operands in shared memory.
static std::string warpgroupText(int turns) {
  std::string accumulators,
      text = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry loop(.param .u64 out) {\n"
             ".shared .align 1024 .b8 place[16384];\n.reg .b32 %t, %n, %at; .reg .b64 %da, %db; .reg .f32 %c<32>; .reg "
             ".pred "
             "%p;\nmov.u32 %t, %tid.x; mov.u32 %at, place; mad.lo.u32 %at, %t, 16, %at; mov.u32 %n, 0;\n";
  for (int i = 0; i < 8; ++i)
    text += fmt::format("st.shared.v4.b32 [%at+{}], {{0, 0, 0, 0}};\n", 2048 * i);
  for (int i = 0; i < 32; ++i) {
    text += fmt::format("mov.f32 %c{}, 0f00000000;\n", i);
    accumulators += fmt::format("{}%c{}", i ? ", " : "", i);
  }
  text += "fence.proxy.async.shared::cta;\nbar.sync 0;\nagain:\nwgmma.fence.sync.aligned;\n";
  for (int i = 0; i < warpgroupProducts; ++i) { // rows of 128 bytes, swizzled; groups of eight are 1024 bytes apart
    const uint64_t a = uint64_t{1} << 62 | uint64_t{64} << 32 | uint64_t{1} << 16 | static_cast<uint64_t>(2 * i);
    text += fmt::format("mov.b64 %da, {}; mov.b64 %db, {};\nwgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{{}}}, "
                        "%da, %db, 1, 1, 1, 0, 0;\n",
                        a, a + 8192 / 16, accumulators);
  }
  return text + fmt::format("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\nadd.u32 %n, %n, 1; "
                            "setp.lt.u32 %p, %n, {};\n@%p bra again;\nret;\n}}\n",
                            turns);
}

// --- Measuring -----------------------------------------------------------------------------------------------------

namespace {
/// A kernel with its memory, for repeated launches.
struct Ready {
  Ready(const std::string &text, const char *kernel)
      : program(buildProgram(std::make_shared<ptx::Module>(ptx::parse(text)), kernel, memory)) {}

  void run(const Extents &grid, uint32_t shared, bool checked, int threads) {
    Findings findings;
    launch(*program, grid, {128, 1, 1}, shared, reinterpret_cast<const char *>(arguments.data()), memory, findings,
           {.checks = Checks::named(checked ? "all" : "-all"), .threads = threads});
    if (!findings.empty())
      throw Error(fmt::format("the simulator found in a right kernel: {}", findings.list().front().text),
                  Fault::internal);
  }
  Memory memory;
  std::shared_ptr<const Program> program;
  std::array<uint64_t, 3> arguments = {};
};
} // namespace

static void addPair(bench::Setting &setting, const std::string &shape, const std::string &metric, double off, double on,
                    double wantOff, double wantOn, bool moreIsBetter) {
  for (const auto &[name, value, want] : {std::tuple("off", off, wantOff), std::tuple("on", on, wantOn)})
    setting.report.add({.shape = fmt::format("{}, checks {}", shape, name),
                        .metric = metric,
                        .value = value,
                        .peer = "budget",
                        .peerValue = want,
                        .ratio = moreIsBetter ? value / want : want / value,
                        .dtype = "ptx"});
}

static void benchProduct(bench::Setting &setting) {
  Ready ready(productText(), "product");
  std::array<void *, 3> arrays = {ready.memory.allocate(M * K * 2), ready.memory.allocate(K * N * 2),
                                  ready.memory.allocate(M * N * 4)};
  for (size_t i = 0; i < 3; ++i)
    ready.arguments[i] = reinterpret_cast<uint64_t>(arrays[i]);
  for (size_t i = 0; i < 2; ++i)
    std::fill_n(static_cast<uint16_t *>(arrays[i]), M * K, uint16_t{0x3c00}); // ones
  const auto run = [&](bool checked, int threads) {
    return [&ready, checked, threads] { ready.run({N / tile, M / tile, 1}, 2 * stageBytes, checked, threads); };
  };
  const std::vector<double> seconds =
      setting.measure({run(false, 1), run(true, 1), run(false, 2), run(true, 2)}, setting.quick ? 0 : 0.1);
  if (static_cast<const float *>(arrays[2])[M * N - 1] != K)
    throw Error("the simulator's product is wrong", Fault::internal);
  addPair(setting, fmt::format("product {}x{}x{}", M, N, K), "mma_per_us", products / seconds[0] / 1e6,
          products / seconds[1] / 1e6, 2.2, 1.1, true);
  addPair(setting, "two threads over one", "times", seconds[0] / seconds[2], seconds[1] / seconds[3], 1.8, 1.8, true);
}

static void benchLoop(bench::Setting &setting, const std::string &shape, const std::string &body, double wantOff,
                      double wantOn) {
  const int turns = setting.quick ? 2 : 500;
  Ready ready(loopText(body, turns), "loop");
  const std::vector<double> seconds =
      setting.measure({[&] { ready.run({1, 1, 1}, 0, false, 1); }, [&] { ready.run({1, 1, 1}, 0, true, 1); }});
  const double instructions = 4.0 * turns * (3 * unrolled + 3);
  addPair(setting, shape, "ns", seconds[0] / instructions * 1e9, seconds[1] / instructions * 1e9, wantOff, wantOn,
          false);
}

/// This thread's CPU time in seconds.
static double processorSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// The cost of the checks: CPU time with them over that without, interleaved.
static void benchChecks(bench::Setting &setting, bool isShared, int bytes, int stride) {
  Ready ready(stridedText(isShared, bytes, stride, setting.quick ? 2 : 200), "loop");
  ready.arguments[0] = reinterpret_cast<uint64_t>(ready.memory.allocate(stridedBytes(bytes, stride)));
  std::vector<double> ratios;
  for (int round = 0; round < setting.rounds(); ++round) {
    std::array<double, 2> seconds = {};
    for (const bool checked : {false, true}) {
      const double begin = processorSeconds();
      for (int i = 0; i < (setting.quick ? 1 : 20); ++i)
        ready.run({1, 1, 1}, 0, checked, 1);
      seconds[checked] = processorSeconds() - begin;
    }
    ratios.push_back(seconds[1] / seconds[0]);
  }
  const double times = bench::median(ratios), want = 3;
  setting.report.add({.shape = fmt::format("{}, {} bytes a thread, {} apart, checks on over off",
                                           isShared ? "shared" : "global", bytes, stride),
                      .metric = "times",
                      .value = times,
                      .peer = "budget",
                      .peerValue = want,
                      .ratio = want / times,
                      .dtype = "ptx"});
}

static void benchWarpgroup(bench::Setting &setting) {
  const int turns = setting.quick ? 2 : 200;
  Ready ready(warpgroupText(turns), "loop");
  const std::vector<double> seconds =
      setting.measure({[&] { ready.run({1, 1, 1}, 0, false, 1); }, [&] { ready.run({1, 1, 1}, 0, true, 1); }});
  const double scale = 1e6 / (warpgroupProducts * turns);
  addPair(setting, "wgmma m64n64k16", "us", seconds[0] * scale, seconds[1] * scale, 5, 20, false);
}

void bench::benchSimulator(Setting &setting) {
  setting.report.section("the simulator: products, instructions of a warp, reading a kernel; baseline: their budgets");
  benchProduct(setting);
  benchWarpgroup(setting);
  benchLoop(setting, "shared loads, adds and stores", sharedBody(), 30, 120);
  benchLoop(setting, "float arithmetic", floatBody(), 3.5, 3.5);
  for (const bool isShared : {true, false})
    for (const int bytes : {1, 2, 4, 8, 16}) {
      benchChecks(setting, isShared, bytes, bytes);
      benchChecks(setting, isShared, bytes, 128 + std::max(bytes, 4)); // accesses of a word have no bank conflicts then
    }
  const std::string text = productText();
  const double seconds = setting.measure({[&] { Ready(text, "product"); }})[0];
  setting.report.add({.shape = "reading and decoding the product",
                      .metric = "ms",
                      .value = seconds * 1e3,
                      .peer = "budget",
                      .peerValue = 0.3,
                      .ratio = 0.3 / (seconds * 1e3),
                      .dtype = "ptx"});
}
