// Deletes barriers from a few kernels: the simulator reports each at its line. Changes copies to rings, and waits for
// them: the simulator reports each change. `kiln-barriers` does so with all kernels of a GPT-2 step.

#include "kernels/attention.h"
#include "kernels/layernorm.h"
#include "kernels/matmul.h"
#include "runtime/Compile.h"
#include "runtime/Tensor.h"
#include "test/barriers/edits.h"

#include <gtest/gtest.h>

#include <limits>

using namespace kiln;
using namespace kiln::test;

namespace {

class Barriers : public testing::Test {
protected:
  Tensor tensor(const Shape &extents, Type type = f32) { return {device, type, extents}; }
  /// Each edit for which `is` holds, and the report about it.
  std::string those(const std::function<bool(const Verdict &)> &is) const {
    std::string text;
    for (const Verdict &each : device->verdicts())
      if (is(each))
        text += each.edit.place + ": " + each.edit.instruction + " " + each.edit.what + ": " + each.said + "\n";
    return text;
  }

  /// A tensor of bf16 with small integers, and, `beyond` the end of each row, NaN.
  Tensor filled(Shape extents, int64_t beyond = 0) {
    const int64_t inside = extents.back();
    const int64_t columns = extents.back() += beyond;
    Tensor made = tensor(extents, bf16);
    std::vector<float> values(static_cast<size_t>(made.count()));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<int64_t>(i) % columns < inside ? static_cast<float>(i * 37 % 15) - 7
                                                             : std::numeric_limits<float>::quiet_NaN();
    made.uploadFloats(values);
    return made;
  }

  const std::shared_ptr<EditingDevice> device =
      std::make_shared<EditingDevice>(SimulatorDevice::open("simulator:sm_80"), /*copies=*/true);
};

// A deletion is reported at the line of the access that the barrier delays: reductions of rows across warps, and a
// product whose sum takes four steps, so that the last one reads bytes that the epilogue writes.
TEST_F(Barriers, AreReportedWhereTheyStand) {
  const Tensor x = tensor({5, 300}), gamma = tensor({300}), beta = tensor({300}), out = tensor({5, 300});
  const Tensor mean = tensor({5}), rstd = tensor({5});
  run(*device, planLayerNorm(device->target(), x.ref(), gamma.ref(), beta.ref(), out.ref(), mean.ref(), rstd.ref()));
  const Tensor a = tensor({40, 112}), b = tensor({112, 33}), c = tensor({40, 33});
  const MatmulConfig tiles{.bm = 64, .bn = 64, .bk = 32, .precision = Precision::tf32}; // of four warps
  run(*device, planMatmul(device->target(), kiln::Layout::nn, a.ref(), b.ref(), c.ref(), false, tiles));
  EXPECT_GE(device->verdicts().size(), 6U);
  EXPECT_EQ(
      those([](const Verdict &each) { return each.edit.what == "deleted" && each.kind != Verdict::Kind::reported; }),
      "");
}

// Narrow products with a ring in each layout, and attention, at extents that tiles do not divide, with fewer iterations
// than stages and with more.
TEST_F(Barriers, AndRingsAreSeenToBeWrong) {
  const int64_t M = 80, N = 48;
  for (const kiln::Layout layout : {kiln::Layout::nn, kiln::Layout::nt, kiln::Layout::tn})
    for (const int64_t K : {176, 16, 48, 0})
      for (const int64_t beyond : {0, 16}) {
        const Shape rowsOfA = layout == kiln::Layout::tn ? Shape{K, M} : Shape{M, K},
                    rowsOfB = layout == kiln::Layout::nt ? Shape{N, K} : Shape{K, N};
        const Tensor a = filled(rowsOfA, beyond), b = filled(rowsOfB, beyond), c = tensor({M, N});
        run(*device, planMatmul(device->target(), layout, a.ref().slice(1, 0, rowsOfA[1]),
                                b.ref().slice(1, 0, rowsOfB[1]), c.ref(), false, MatmulConfig{64, 64, 32}));
      }
  // A block has as many keys as queries, so the number of iterations without a mask may be odd. The barrier after them
  // orders the slot that the last of an odd number leaves.
  AttentionConfig square;
  square.bm = square.bn = 64;
  for (const int64_t T : {208, 16, 80}) {
    const Shape heads = {1, 2, T, 32};
    const Tensor q = filled(heads), k = filled(heads), v = filled(heads), o = tensor(heads, bf16),
                 lse = tensor({1, 2, T});
    run(*device, planAttention(device->target(), q.ref(), k.ref(), v.ref(), o.ref(), lse.ref(), 0.25F, {}, square));
  }
  std::map<std::string, int> kinds;
  for (const Verdict &each : device->verdicts())
    ++kinds[each.edit.what];
  for (const char *what : {"deleted", "one more pending", "behind the barrier", "to the next slot", "all bytes"})
    EXPECT_GE(kinds[what], 4) << what;
  // A program of attention has at least one iteration, so its first copies are always used.
  EXPECT_EQ(those([](const Verdict &each) {
              const bool isFirst = each.kernel == "attention" && each.edit.what == "in every round";
              return each.kind == Verdict::Kind::silent && !isFirst;
            }),
            "");
}

/// Every program sums a row; the last program to finish sums the results of all. x (P, 128), sums (P, 128), count (1)
/// i32, out (128).
void lastAdds(View x, View sums, View count, View out) {
  Tile p = program_id();
  store(sums, {p, 0}, load(x, {p, 0}, {128}) + load(x, {p, 128}, {128})); // (128)
  Tile before = atomic_add(count, {0}, 1, Order::acq_rel);                // scalar
  if_(before == num_programs() - 1, [&] { store(out, {0}, sum(load(sums, {0, 0}, {4, 128}), 0)); });
}
const Kernel lastAddsKernel = kernel("last_adds", lastAdds);

// An order is at the line of an atomic addition, and the accesses that it orders are at other lines. So any report
// counts.
TEST_F(Barriers, AndOrdersOfAnAtomicAdditionAreMissed) {
  const Tensor x = tensor({4, 256}), sums = tensor({4, 128}), count = tensor({1}, i32), out = tensor({128});
  launch(*device, lastAddsKernel, 4, {x.ref(), sums.ref(), count.ref(), out.ref()});
  std::map<std::string, int> kinds;
  for (const Verdict &each : device->verdicts()) {
    ++kinds[each.edit.what];
    EXPECT_NE(each.kind, Verdict::Kind::silent) << each.edit.instruction << " at " << each.edit.place;
  }
  EXPECT_EQ(kinds["releases nothing"], 1);
  EXPECT_EQ(kinds["acquires nothing"], 1);
}

/// With a count for each column, of which a thread has several: one fence orders them.
void lastAddsColumns(View x, View sums, View counts, View out) {
  Tile p = program_id();
  store(sums, {p, 0}, load(x, {p, 0}, {512}) + load(x, {p, 512}, {512}));     // (512)
  Tile before = atomic_add(counts, {0}, full(i32, {512}, 1), Order::acq_rel); // (512)
  if_(all(before == num_programs() - 1), [&] { store(out, {0}, sum(load(sums, {0, 0}, {4, 512}), 0)); });
}
const Kernel lastAddsColumnsKernel = kernel("last_adds_columns", lastAddsColumns);

// Fences replace the orders of several atomics. Each thread fences its own stores, so no barrier comes before
// them.
TEST_F(Barriers, AndFencesOfManyAtomicAdditionsAreMissed) {
  const Tensor x = tensor({4, 1024}), sums = tensor({4, 512}), counts = tensor({512}, i32), out = tensor({512});
  launch(*device, lastAddsColumnsKernel, 4, {x.ref(), sums.ref(), counts.ref(), out.ref()});
  int fences = 0;
  for (const Verdict &each : device->verdicts())
    if (each.edit.instruction.starts_with("fence")) {
      ++fences;
      EXPECT_NE(each.kind, Verdict::Kind::silent) << each.edit.instruction << " at " << each.edit.place;
    }
  EXPECT_EQ(fences, 2);
}

// After a launch, memory equals the result of the unedited kernel.
TEST_F(Barriers, AreThereWhenTheKernelRuns) {
  Tensor x = tensor({4, 256}), sums = tensor({4, 128}), count = tensor({1}, i32), out = tensor({128});
  x.uploadFloats(std::vector<float>(1024, 1));
  launch(*device, lastAddsKernel, 4, {x.ref(), sums.ref(), count.ref(), out.ref()});
  EXPECT_EQ(out.downloadFloats(), std::vector<float>(128, 8));
  EXPECT_EQ(count.downloadFloats(), std::vector<float>(1, 4));
}

// Edits are instructions, with or without a predicate, and have the source line of the last `.loc` before them.
TEST(Edits, HaveTheirInstructionAndPlace) {
  const std::string ptx =
      "\t.loc\t1 7 3\n\tbar.sync \t0;\n\t// bar.sync in a comment\n\t.loc\t2 9 1, inlined_at 1 8 1\n"
      "\t@%p1 fence.acq_rel.gpu;\n\tcp.async.wait_all;\n\tcp.async.cg.shared.global [%r1], [%rd1], 16;\n"
      "\t.file\t1 \"a.cc\"\n\t.file\t2 \"b.h\"\n";
  const std::vector<Edit> found = editsOf(ptx);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].place, "a.cc:7");
  EXPECT_EQ(found[1].place, "b.h:9");
  EXPECT_EQ(found[1].instruction, "fence.acq_rel.gpu;");
  EXPECT_EQ(found[2].line, 5U);
  EXPECT_EQ(edited(ptx, found[0]).substr(0, 15), "\t.loc\t1 7 3\n\n\t/");
}

// Each half of an order can be deleted.
TEST(Edits, OfAnOrder) {
  const std::string ptx = ".file\t1 \"a.cc\"\n.loc\t1 7 3\n\t@%p1 atom.acq_rel.gpu.global.add.u32 %r1, [%rd1], 1;\n"
                          "\tred.release.gpu.global.add.u32 [%rd1], 1;\n\tld.acquire.gpu.global.b32 %r1, [%rd1];\n"
                          "\tld.relaxed.gpu.global.b32 %r1, [%rd1];\n";
  std::map<std::string, std::string> texts;
  for (const Edit &edit : editsOf(ptx))
    for (const auto &[line, text] : edit.lines)
      texts[edit.what] += text + "\n";
  EXPECT_EQ(texts["releases nothing"], "\t@%p1 atom.acquire.gpu.global.add.u32 %r1, [%rd1], 1;\n"
                                       "\tred.relaxed.gpu.global.add.u32 [%rd1], 1;\n");
  EXPECT_EQ(texts["acquires nothing"], "\t@%p1 atom.release.gpu.global.add.u32 %r1, [%rd1], 1;\n"
                                       "\tld.relaxed.gpu.global.b32 %r1, [%rd1];\n");
}

// Other wrong edits of copies; a ring of three slots has the size that its buffer states.
TEST(Edits, OfARing) {
  const std::string ptx = "// kiln.shared k 0 96 a.cc:7\n.file\t1 \"x/a.cc\"\n.loc\t1 7 3\n"
                          "\t@%p1 cp.async.cg.shared.global [%r1 + 8], [%rd1], 16, %r2;\n"
                          "\tcp.async.wait_group 1;\n\t// begin\n\tbar.sync \t0;\n\tld.shared.b32 %r3, [%r1];\n";
  std::map<std::string, std::string> texts;
  for (const Edit &edit : editsOf(ptx))
    for (const auto &[line, text] : edit.lines)
      texts[edit.what] += text + "\n";
  EXPECT_EQ(texts["to the next slot"], "@%p1 cp.async.cg.shared.global [%r1 + 40], [%rd1], 16, %r2;\n");
  EXPECT_EQ(texts["all bytes"], "@%p1 cp.async.cg.shared.global [%r1 + 8], [%rd1], 16;\n");
  EXPECT_EQ(texts["in every round"], "cp.async.cg.shared.global [%r1 + 8], [%rd1], 16, %r2;\n");
  EXPECT_EQ(texts["one more pending"], "\tcp.async.wait_group 2;\n");
  EXPECT_EQ(texts["behind the barrier"], "\n\tbar.sync \t0;\n\tcp.async.wait_group 1;\n");
}

} // namespace
