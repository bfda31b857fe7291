// Explains the loops of a compiled kernel.

#include "lowering/cpu/CpuBackend.h"

#include "dialect/tile/TileDialect.h"
#include "lowering/Abi.h"
#include "lowering/Diagnostics.h"
#include "lowering/cpu/Evaluator.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>
#include <set>

using namespace mlir;

namespace kiln::lowering::cpu {

static std::string counted(int64_t count, const char *one, const char *many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

namespace {
/// Explains one kernel.
class LoopExplainer {
public:
  explicit LoopExplainer(Explanation &explanation) : explanation(explanation) {}
  void run(ModuleOp module);

private:
  /// The operations of a loop, without those of loops in it.
  struct Counts {
    int64_t loads = 0, stores = 0, masked = 0, products = 0, scalars = 0;
    VectorType widest;
    void add(Operation *op);
    bool isEmpty() const { return loads + stores + products + scalars == 0; }
    std::string text() const;
  };

  static int64_t bitsOf(VectorType type) {
    return type ? type.getNumElements() * int64_t{type.getElementTypeBitWidth()} : 0;
  }
  static bool isMasked(Operation *op) {
    return isa<vector::MaskedLoadOp, vector::MaskedStoreOp, vector::GatherOp, vector::ScatterOp>(op);
  }
  static int64_t maskedIn(Region &region) {
    int64_t count = 0;
    region.walk([&](Operation *op) { count += isMasked(op); });
    return count;
  }
  /// Adds a text about a line once, even if it is true of several loops.
  void tell(Location where, const std::string &text) {
    if (explained.insert({sourceLine(where), text}).second)
      explanation.add(where, text);
  }
  void explain(scf::ForOp loop);
  void explain(scf::IfOp branch);
  void explainOutside(ModuleOp module);

  Explanation &explanation;
  std::set<std::pair<std::string, std::string>> explained;
  int64_t loops = 0, maskedLoops = 0, maxBits = 0;
};
} // namespace

void LoopExplainer::Counts::add(Operation *op) {
  loads += isa<vector::LoadOp, vector::MaskedLoadOp, vector::GatherOp>(op);
  stores += isa<vector::StoreOp, vector::MaskedStoreOp, vector::ScatterOp>(op);
  masked += isMasked(op);
  products += isa<vector::FMAOp, math::FmaOp, amx::TileMulFOp, amx::TileMulIOp>(op) ||
              (op->getName().getDialectNamespace() == "x86vector" && op->getName().stripDialect().contains("dot"));
  scalars += isa<memref::LoadOp, memref::StoreOp>(op);
  for (const Type type : llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes())) {
    const auto vector = dyn_cast<VectorType>(type);
    if (!vector || vector.getRank() != 1 || !vector.getElementType().isIntOrFloat() ||
        vector.getElementType().isInteger(1))
      continue;
    const bool isFloat = isa<FloatType>(vector.getElementType()); // integers compute positions and masks
    if (bitsOf(vector) > bitsOf(widest) ||
        (bitsOf(vector) == bitsOf(widest) && isFloat && !isa<FloatType>(widest.getElementType())))
      widest = vector;
  }
}

/// `vectors of 8 f32, 4 loads and 4 stores, 8 of them with masks, 4 products`.
std::string LoopExplainer::Counts::text() const {
  std::string type = "no vectors";
  if (widest) {
    type = "vectors of " + std::to_string(widest.getNumElements()) + " ";
    llvm::raw_string_ostream(type) << widest.getElementType();
  }
  std::string text = type;
  if (loads + stores)
    text += ", " + counted(loads, "load", "loads") + " and " + counted(stores, "store", "stores");
  if (masked)
    text += masked == loads + stores ? " with masks" : ", " + std::to_string(masked) + " of them with masks";
  if (products)
    text += ", " + counted(products, "multiply-add", "multiply-adds");
  if (scalars)
    text += ", " + counted(scalars, "access of one element", "accesses of one element");
  return text;
}

void LoopExplainer::explain(scf::ForOp loop) {
  Counts counts;
  loop.getBody()->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<scf::ForOp>(op))
      return WalkResult::skip();
    counts.add(op);
    return WalkResult::advance();
  });
  if (counts.isEmpty())
    return; // contains only other loops
  ++loops;
  maskedLoops += counts.masked > 0;
  const auto begin = getConstantIntValue(loop.getLowerBound()), end = getConstantIntValue(loop.getUpperBound()),
             step = getConstantIntValue(loop.getStep());
  std::string text = "loop";
  if (begin && end && step && *step > 0)
    text += " of " + counted((*end - *begin + *step - 1) / *step, "iteration", "iterations");
  if (step)
    text += ", step " + std::to_string(*step);
  int64_t carried = 0;
  for (const Value value : loop.getInitArgs())
    carried += isa<VectorType>(value.getType());
  text += ": " + counts.text();
  if (carried)
    text += ", " + counted(carried, "vector", "vectors") + " carried in registers";
  tell(loop.getLoc(), text);
}

void LoopExplainer::explain(scf::IfOp branch) {
  if (branch.getElseRegion().empty())
    return;
  const int64_t first = maskedIn(branch.getThenRegion()), second = maskedIn(branch.getElseRegion());
  if (first == 0 && second > 0)
    tell(branch.getLoc(), "two versions: without masks for tiles that lie within the view, with masks for others");
}

/// Explains the operations outside of loops, grouped by line and block.
void LoopExplainer::explainOutside(ModuleOp module) {
  using Key = std::pair<Block *, std::string>;
  llvm::MapVector<Key, std::pair<Location, Counts>, std::map<Key, unsigned>> places;
  module.walk([&](Operation *op) {
    Counts alone;
    alone.add(op);
    maxBits = std::max(maxBits, bitsOf(alone.widest));
    if (alone.isEmpty() || op->getParentOfType<scf::ForOp>())
      return;
    const Key key(op->getBlock(), sourceLine(op->getLoc()));
    places.try_emplace(key, op->getLoc(), Counts()).first->second.second.add(op);
  });
  for (const auto &[key, place] : places)
    tell(place.first, "outside of loops: " + place.second.text());
}

void LoopExplainer::run(ModuleOp module) {
  std::string name;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto function = dyn_cast<func::FuncOp>(op); function && name.empty())
      name = function.getName();
    if (auto loop = dyn_cast<scf::ForOp>(op))
      explain(loop);
    else if (auto branch = dyn_cast<scf::IfOp>(op))
      explain(branch);
  });
  explainOutside(module);
  int64_t scratch = 0;
  module.walk([&](LLVM::GlobalOp global) {
    if (const auto value = dyn_cast_or_null<IntegerAttr>(global.getValueOrNull());
        value && global.getName().ends_with(abi::scratchSuffix))
      scratch = value.getInt();
  });
  explanation.add("kernel '" + name + "': vectors of up to " + std::to_string(maxBits) + " bits");
  explanation.add("loops: " + std::to_string(loops) + ", of which " + std::to_string(maskedLoops) + " with masks");
  explanation.add("scratch memory: " + std::to_string(scratch) + " bytes a program");
}

void explainLoops(ModuleOp module, Explanation &explanation) { LoopExplainer(explanation).run(module); }

// --- Products --------------------------------------------------------------------------------------------------------

namespace {
/// Shapes below which a product of tiles is slow. Times of 480×480×480 in f32 on a Zen 5, relative to tiles of
/// 64×64×64: with 8 columns (half a vector) 2.5, with 4 columns 9. With 8 rows 1.5, with 2 rows 8. With 8 steps 1.3,
/// with 4 steps 2. Measured by `kilnc --kernel=matmul --config=bm=64,bn=8,bk=64 --run --repeat=20`, on one thread.
struct ProductShape {
  int64_t rows = 16;          // b is packed for every tile of rows
  int64_t steps = 16;         // the results are read and written for every tile of steps
  int64_t filledQuarters = 3; // of the lanes of the vectors of a row of results
};
constexpr ProductShape least;
} // namespace

void explainProducts(ModuleOp module, const CpuTarget &target, Explanation &explanation) {
  const int64_t lanes = Machine{target.vectorBits, target.registers}.lanes();
  module.walk([&](tile::DotOp dot) {
    const ArrayRef<int64_t> shape = tile::shapeOf(dot.getType());
    const int64_t M = shape[shape.size() - 2], N = shape.back(), K = tile::shapeOf(dot.getA().getType()).back();
    const auto wide = static_cast<int64_t>(llvm::alignTo(N, lanes));
    SmallVector<std::string> reasons;
    const auto reason = [&](const char *text, auto... numbers) {
      reasons.push_back(llvm::formatv(text, numbers...).str());
    };
    if (4 * N < least.filledQuarters * wide)
      reason("a row of results fills {0} of {1} lanes: choose a multiple of {2} columns", N, wide, lanes);
    if (M < least.rows)
      reason("b is packed for {0}: choose {1} rows or more", counted(M, "row", "rows"), least.rows);
    if (K < least.steps && dot->getParentOfType<LoopLikeOpInterface>())
      reason("the loop reads and writes the results once for {0} of K: choose {1} or more", counted(K, "step", "steps"),
             least.steps);
    if (!reasons.empty())
      explanation.add(
          dot.getLoc(),
          llvm::formatv("slow product of {0}x{1} and {1}x{2}: {3}", M, K, N, llvm::join(reasons, "; ")).str());
  });
}

} // namespace kiln::lowering::cpu
