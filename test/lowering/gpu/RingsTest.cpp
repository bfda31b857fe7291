// Counts of rings: for every number of iterations about the number of stages, every product multiplies what it would
// without a ring, every slot that is read holds a tile that was waited for, and nobody fills a slot that is in use.
// RingWalk interprets the passes' result; the simulator then runs what becomes of it.

#include "dialect/dsl/Trace.h"
#include "dialect/simt/SimtDialect.h"
#include "kernels/attention.h"
#include "kernels/matmul.h"
#include "lowering/Driver.h"
#include "test/lowering/gpu/RingWalk.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

using namespace kiln;
using namespace kiln::test;
using mlir::ModuleOp;
using mlir::OwningOpRef;

namespace {

/// A kernel whose main loop goes over extent `axis` of argument `view`, `step` an iteration.
struct Subject {
  const char *name;
  const Kernel &kernel;
  std::string config;
  std::vector<size_t> ranks; // of its views, bf16 but for the narrow ones
  unsigned view = 0;
  int64_t axis = 0, step = 32;
  const char *backend = "sm_80";
};

const Subject subjects[] = {
    {"nn", matmulKernel, "bm=64,bn=64,bk=32", {2, 2, 2}, 0, 1},
    {"nt", matmulKernel, "bm=64,bn=64,bk=32,tb=1", {2, 2, 2}, 0, 1},
    {"tn", matmulKernel, "bm=64,bn=64,bk=32,ta=1", {2, 2, 2}, 0, 0},
    {"nn_groups", matmulKernel, "bm=64,bn=64,bk=32", {2, 2, 2}, 0, 1, 32, "sm_90a"},
    {"nt_groups", matmulKernel, "bm=64,bn=64,bk=32,tb=1", {2, 2, 2}, 0, 1, 32, "sm_90a"},
    {"tn_groups", matmulKernel, "bm=64,bn=64,bk=32,ta=1", {2, 2, 2}, 0, 0, 32, "sm_90a"},
    {"attention", attentionKernel, "bm=32,bn=32,causal=0", {4, 4, 4, 4, 3, 3, 4}, 0, 2},
    {"attention_groups", attentionKernel, "bm=64,bn=32,causal=0", {4, 4, 4, 4, 3, 3, 4}, 0, 2, 32, "sm_90a"},
    {"queries_groups",
     attentionBackwardQueriesKernel,
     "bm=64,bn=32,causal=0",
     {4, 4, 4, 4, 4, 3, 3, 4, 3, 4},
     0,
     2,
     32,
     "sm_90a"},
    {"keys_groups",
     attentionBackwardKeysKernel,
     "bm=32,bn=64,causal=0",
     {4, 4, 4, 4, 3, 3, 4, 3, 4, 4},
     0,
     2,
     32,
     "sm_90a"},
};

class Rings : public testing::TestWithParam<Subject> {
protected:
  Rings() : context(registry(), mlir::MLIRContext::Threading::DISABLED) { context.loadAllAvailableDialects(); }

  static const mlir::DialectRegistry &registry() {
    static const mlir::DialectRegistry all = [] {
      mlir::DialectRegistry made;
      lowering::registerDialects(made);
      return made;
    }();
    return all;
  }

  /// The kernel for the subject's backend with so many stages, as it is at a stage of the compiler.
  OwningOpRef<ModuleOp> at(const char *stage, int64_t stages) {
    Specialisation facts;
    for (const size_t rank : GetParam().ranks) {
      ArgFacts view{.type = rank == 3 ? f32 : bf16,
                    .extents = Shape(rank, 64),
                    .innerStride = 1,
                    .alignment = 64,
                    .stridesBy16 = true,
                    .extentBy16 = true,
                    .fits32 = true};
      facts.args.push_back(view);
    }
    for (int second = 0; second < static_cast<int>(facts.args.size()); ++second)
      for (int first = 0; first < second; ++first)
        facts.disjoint.emplace(first, second);
    if (GetParam().ranks.size() > 3) { // the scale, and what dropout would take
      facts.args.push_back({.isView = false});
      facts.args.push_back({.type = i64, .extents = {2}});
      for (const Type type : {i64, i64, f32})
        facts.args.push_back({.isView = false, .type = type});
    }
    Traced traced = trace(context, GetParam().kernel, facts, GetParam().config);
    auto func = *traced.module->getOps<mlir::func::FuncOp>().begin();
    func->setAttr("tile.stages", mlir::IntegerAttr::get(mlir::IntegerType::get(&context, 64), stages));
    mlir::PassManager pm(&context);
    lowering::buildPipeline(pm, *lowering::openBackend(GetParam().backend), stage);
    EXPECT_TRUE(succeeded(pm.run(*traced.module)));
    return std::move(traced.module);
  }

  static Walked walk(ModuleOp module, int64_t sum) {
    const auto extent = [&](unsigned view, int64_t axis) {
      return view == GetParam().view && axis == GetParam().axis ? sum : int64_t{64};
    };
    return RingWalk(extent).run(module);
  }
  /// Lengths of the sum that take so many iterations: whole ones, and a last one in part.
  static std::vector<int64_t> lengths(int64_t iterations) {
    const int64_t whole = iterations * GetParam().step;
    return iterations ? std::vector<int64_t>{whole, whole - 16} : std::vector<int64_t>{0};
  }
  /// Whether any number of iterations shows a fault, or other products than `want`.
  static bool isSeen(ModuleOp module, ModuleOp want, int64_t stages) {
    for (int64_t iterations = 0; iterations <= 2 * stages + 1; ++iterations) {
      const Walked got = walk(module, iterations * GetParam().step);
      if (!got.faults.empty() || got.products != walk(want, iterations * GetParam().step).products)
        return true;
    }
    return false;
  }

  mlir::MLIRContext context;
};

TEST_P(Rings, HoldTheTileOfTheIteration) {
  for (int64_t stages = 2; stages <= 5; ++stages) {
    const auto before = at("layouts", stages), after = at("exchanges", stages);
    for (int64_t iterations = 0; iterations <= 2 * stages + 1; ++iterations)
      for (const int64_t length : lengths(iterations)) {
        SCOPED_TRACE(fmt::format("{} stages, {} iterations, length {}", stages, iterations, length));
        const Walked got = walk(*after, length), want = walk(*before, length);
        EXPECT_EQ(got.faults, std::vector<std::string>{});
        EXPECT_EQ(got.products, want.products);
        EXPECT_EQ(got.products.empty(), iterations == 0);
        for (const auto &[left, right] : got.products)
          EXPECT_TRUE(left || right) << "nobody knows what is multiplied";
        EXPECT_EQ(got.copies, 2 * iterations);
      }
  }
}

/// The loop that has a ring.
mlir::scf::ForOp ringLoop(ModuleOp module) {
  mlir::scf::ForOp found;
  module.walk([&](simt::WaitCopiesOp wait) {
    if (auto loop = wait->getParentOfType<mlir::scf::ForOp>())
      found = loop;
  });
  return found;
}
/// The first operation of a kind in a block; null where there is none.
template <class Op> Op firstIn(mlir::Block &block) {
  const auto all = block.getOps<Op>();
  return all.empty() ? Op() : *all.begin();
}

// Each edit of the result is seen: the walk is no test otherwise.
TEST_P(Rings, AreSeenToBeWrong) {
  for (int64_t stages = 2; stages <= 4; ++stages) {
    const auto before = at("layouts", stages);
    const auto expectSeen = [&](const char *what, const std::function<void(mlir::scf::ForOp)> &edit) {
      SCOPED_TRACE(fmt::format("{} stages, {}", stages, what));
      auto module = at("exchanges", stages);
      edit(ringLoop(*module));
      EXPECT_TRUE(isSeen(*module, *before, stages));
    };
    const auto addTo = [](mlir::Operation *op, unsigned operand, int64_t bytes) {
      mlir::OpBuilder builder(op);
      const mlir::Value number = mlir::arith::ConstantIntOp::create(builder, op->getLoc(), bytes, 32);
      op->setOperand(operand, mlir::arith::AddIOp::create(builder, op->getLoc(), op->getOperand(operand), number));
    };
    expectSeen("one more pending", [](mlir::scf::ForOp loop) {
      auto wait = firstIn<simt::WaitCopiesOp>(*loop.getBody());
      wait.setPending(wait.getPending() + 1);
    });
    expectSeen("no wait", [](mlir::scf::ForOp loop) { firstIn<simt::WaitCopiesOp>(*loop.getBody()).erase(); });
    expectSeen("no commit in the loop",
               [](mlir::scf::ForOp loop) { firstIn<simt::CommitCopiesOp>(*loop.getBody()).erase(); });
    expectSeen("no commit before the loop",
               [](mlir::scf::ForOp loop) { firstIn<simt::CommitCopiesOp>(*loop->getBlock()).erase(); });
    expectSeen("no barriers in the loop", [](mlir::scf::ForOp loop) {
      for (auto barrier : llvm::make_early_inc_range(loop.getBody()->getOps<simt::BarrierOp>()))
        barrier.erase();
    });
    expectSeen("the barriers before the wait", [](mlir::scf::ForOp loop) {
      for (auto barrier : llvm::make_early_inc_range(loop.getBody()->getOps<simt::BarrierOp>()))
        barrier->moveBefore(firstIn<simt::WaitCopiesOp>(*loop.getBody()));
    });
    expectSeen("another slot is filled", [&](mlir::scf::ForOp loop) {
      auto fetch = firstIn<simt::FetchOp>(*loop.getBody());
      addTo(fetch, 1 + fetch.getOffsets().size() + 1, static_cast<int64_t>(fetch.getSharedLayout().getBytes()));
    });
    expectSeen("no wait behind the loop", [](mlir::scf::ForOp loop) {
      for (mlir::Operation *op = loop->getNextNode(); op; op = op->getNextNode())
        if (auto wait = mlir::dyn_cast<simt::WaitCopiesOp>(op))
          return wait.erase();
    });
    const bool isForGroups = llvm::StringRef(GetParam().name).ends_with("groups");
    const auto unchanged = at("exchanges", stages);
    mlir::Block &iteration = *ringLoop(*unchanged).getBody();
    ASSERT_EQ(isForGroups, firstIn<simt::MultiplyOp>(iteration) || firstIn<simt::MultiplyRowsOp>(iteration));
    if (isForGroups) {
      expectSeen("not shown",
                 [](mlir::scf::ForOp loop) { firstIn<simt::WaitCopiesOp>(*loop.getBody()).setShown(false); });
      expectSeen("one more product pending", [](mlir::scf::ForOp loop) {
        auto wait = firstIn<simt::WaitMultiplyOp>(*loop.getBody());
        wait.setPending(wait.getPending() + 1);
      });
      expectSeen("no wait for products", [](mlir::scf::ForOp loop) {
        for (auto wait : llvm::make_early_inc_range(loop.getBody()->getOps<simt::WaitMultiplyOp>())) {
          wait->replaceAllUsesWith(wait.getAcc());
          wait.erase();
        }
      });
    }
    expectSeen("a fetch too many",
               [](mlir::scf::ForOp loop) { firstIn<simt::FetchOp>(*loop.getBody()).getPredicateMutable().clear(); });
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Rings, testing::ValuesIn(subjects),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
