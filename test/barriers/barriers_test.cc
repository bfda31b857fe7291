// Barriers deleted from a few kernels: each is reported where it stands. `kiln-barriers` does the same with all kernels
// of a GPT-2 step.

#include "kernels/layernorm.h"
#include "kernels/matmul.h"
#include "runtime/Compile.h"
#include "runtime/Tensor.h"
#include "test/barriers/deletions.h"

#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::test;

namespace {

class Barriers : public testing::Test {
protected:
  Tensor tensor(const Shape &extents, Type type = f32) { return {device, type, extents}; }
  /// Each deletion with another verdict, and what was said.
  std::string otherThan(Deletion::Verdict verdict) const {
    std::string text;
    for (const Deletion &each : device->deletions())
      if (each.verdict != verdict)
        text += each.ordering.place + ": " + each.ordering.instruction + ": " + each.said + "\n";
    return text;
  }

  const std::shared_ptr<DeletingDevice> device =
      std::make_shared<DeletingDevice>(SimulatorDevice::open("simulator:sm_80"));
};

// A deletion is seen at the line of the access that the barrier lets wait: reductions of rows across warps, and a
// product whose sum takes four steps, so that the last one reads bytes that the epilogue writes.
TEST_F(Barriers, AreReportedWhereTheyStand) {
  const Tensor x = tensor({5, 300}), gamma = tensor({300}), beta = tensor({300}), out = tensor({5, 300});
  const Tensor mean = tensor({5}), rstd = tensor({5});
  run(*device, planLayerNorm(device->target(), x.ref(), gamma.ref(), beta.ref(), out.ref(), mean.ref(), rstd.ref()));
  const Tensor a = tensor({40, 112}), b = tensor({112, 33}), c = tensor({40, 33});
  run(*device, planMatmul(device->target(), kiln::Layout::nn, a.ref(), b.ref(), c.ref()));
  EXPECT_GE(device->deletions().size(), 6U);
  EXPECT_EQ(otherThan(Deletion::Verdict::reported), "");
}

/// Every program adds up a row; the one that comes last adds up what all have left. x (P, 128), sums (P, 128), count
/// (1) i32, out (128).
void lastAdds(View x, View sums, View count, View out) {
  Tile p = program_id();
  store(sums, {p, 0}, load(x, {p, 0}, {128}) + load(x, {p, 128}, {128})); // (128)
  Tile before = atomic_add(count, {0}, 1, Order::acq_rel);                // scalar
  when(before == num_programs() - 1, [&] { store(out, {0}, sum(load(sums, {0, 0}, {4, 128}), 0)); });
}
const Kernel lastAddsKernel = kernel("last_adds", lastAdds);

// A fence stands at the line of an atomic addition, and what it orders at others: all that counts is that it is missed.
TEST_F(Barriers, AndFencesOfAnAtomicAdditionAreMissed) {
  const Tensor x = tensor({4, 256}), sums = tensor({4, 128}), count = tensor({1}, i32), out = tensor({128});
  launch(*device, lastAddsKernel, 4, {x.ref(), sums.ref(), count.ref(), out.ref()});
  int fences = 0;
  for (const Deletion &each : device->deletions()) {
    fences += each.ordering.instruction.starts_with("fence");
    EXPECT_NE(each.verdict, Deletion::Verdict::silent) << each.ordering.instruction << " at " << each.ordering.place;
  }
  EXPECT_EQ(fences, 2);
}

// Memory is after a launch what the whole kernel made of it.
TEST_F(Barriers, AreThereWhenTheKernelRuns) {
  Tensor x = tensor({4, 256}), sums = tensor({4, 128}), count = tensor({1}, i32), out = tensor({128});
  x.uploadFloats(std::vector<float>(1024, 1));
  launch(*device, lastAddsKernel, 4, {x.ref(), sums.ref(), count.ref(), out.ref()});
  EXPECT_EQ(out.downloadFloats(), std::vector<float>(128, 8));
  EXPECT_EQ(count.downloadFloats(), std::vector<float>(1, 4));
}

// Orderings are instructions, with a predicate or without, and have the place of the last `.loc` before them.
TEST(Orderings, HaveTheirInstructionAndPlace) {
  const std::string ptx =
      "\t.loc\t1 7 3\n\tbar.sync \t0;\n\t// bar.sync in a comment\n\t.loc\t2 9 1, inlined_at 1 8 1\n"
      "\t@%p1 fence.acq_rel.gpu;\n\tcp.async.wait_group 0;\n\tcp.async.cg.shared.global [%r1], [%rd1], 16;\n"
      "\t.file\t1 \"a.cc\"\n\t.file\t2 \"b.h\"\n";
  const std::vector<Ordering> found = orderingsOf(ptx);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].place, "a.cc:7");
  EXPECT_EQ(found[1].place, "b.h:9");
  EXPECT_EQ(found[1].instruction, "fence.acq_rel.gpu;");
  EXPECT_EQ(found[2].line, 5U);
  EXPECT_EQ(without(ptx, 1).substr(0, 15), "\t.loc\t1 7 3\n\n\t/");
}

} // namespace
