// What causal attention leaves out: every product on the diagonal is one whose left factor is known to be zero outside
// of a triangle, or whose result is not looked at there.

#include "dialect/dsl/Trace.h"
#include "kernels/attention.h"
#include "lowering/Driver.h"
#include "lowering/Passes.h"
#include "lowering/analysis/Masks.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

#include <gtest/gtest.h>

using namespace kiln;

namespace {

/// A kernel of attention whose operands are these, and how many products it has.
struct Subject {
  const char *name;
  const Kernel &kernel;
  std::vector<size_t> ranks; // of its views, before the scale
  size_t sums;               // which of these is f32 for any type, beside those of rank 3
  int64_t products;
};

class Triangles : public testing::TestWithParam<std::tuple<Subject, Type, const char *>> {
protected:
  /// How many products there are, and how many of them are triangles.
  static std::pair<int64_t, int64_t> productsOf(const std::string &config) {
    const auto &[subject, type, drop] = GetParam();
    mlir::DialectRegistry registry;
    lowering::registerDialects(registry);
    mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
    context.loadAllAvailableDialects();
    Specialisation facts;
    for (size_t i = 0; i < subject.ranks.size(); ++i)
      facts.args.push_back(
          {.type = subject.ranks[i] == 3 || i == subject.sums ? f32 : type, .extents = Shape(subject.ranks[i], 64)});
    facts.args.push_back({.isView = false});
    facts.args.push_back({.type = i64, .extents = {2}});
    for (const Type scalar : {i64, i64, f32})
      facts.args.push_back({.isView = false, .type = scalar});
    Traced traced = trace(context, subject.kernel, facts, "bm=64,bn=64,dropout=" + std::string(drop) + config);
    mlir::PassManager pm(&context);
    pm.addNestedPass<mlir::func::FuncOp>(lowering::createExpandOps());
    pm.addPass(mlir::createCanonicalizerPass());
    EXPECT_TRUE(succeeded(pm.run(*traced.module)));
    int64_t all = 0, triangles = 0;
    traced.module->walk([&](tile::DotOp dot) {
      ++all;
      triangles += lowering::zeroOutside(dot.getA()) || lowering::readInside(dot.getResult());
    });
    return {all, triangles};
  }
};

TEST_P(Triangles, EveryProductOfCausalAttentionIsOne) {
  const int64_t products = std::get<0>(GetParam()).products;
  EXPECT_EQ(productsOf(",causal=1"), std::pair(products, products));
  EXPECT_EQ(productsOf(",causal=0"), std::pair(products, int64_t{0}));
}

const Subject subjects[] = {
    {"forward", attentionKernel, {4, 4, 4, 4, 3, 3, 4}, 4, 2},
    {"backward", attentionBackwardKernel, {4, 4, 4, 4, 4, 3, 3, 4, 3, 4, 4, 4, 4}, 9, 5},
};

std::string nameOfCase(const testing::TestParamInfo<Triangles::ParamType> &info) {
  const auto &[subject, type, drop] = info.param;
  return std::string(subject.name) + "_" + nameOf(type) + "_" + drop;
}

INSTANTIATE_TEST_SUITE_P(Attention, Triangles,
                         testing::Combine(testing::ValuesIn(subjects), testing::Values(f32, bf16),
                                          testing::Values("off", "random")),
                         nameOfCase);

} // namespace
