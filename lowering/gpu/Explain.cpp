// Explains a compiled kernel: layouts, widths of accesses, conversions and products from the stage `layouts`, shared
// memory and barriers from the stage `exchanges`.

#include "lowering/gpu/GpuBackend.h"

#include "dialect/simt/SimtDialect.h"
#include "dialect/simt/layout/Convert.h"
#include "dialect/simt/layout/SharedAccess.h"
#include "dialect/tile/AccessRules.h"
#include "dialect/tile/TileDialect.h"
#include "lowering/Diagnostics.h"
#include "lowering/gpu/Accesses.h"
#include "lowering/gpu/SharedPlace.h"
#include "lowering/gpu/Threads.h"

#include "mlir/Analysis/Liveness.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace kiln::lowering::gpu {

using simt::TileLayout;

namespace {

template <class... Values> std::string format(const char *text, Values &&...values) {
  return llvm::formatv(text, std::forward<Values>(values)...).str();
}

int64_t bytesOf(RankedTensorType tile) { return std::max(8u, tile.getElementTypeBitWidth()) / 8; }

/// `f32 64x32`.
std::string textOf(Type type) {
  std::string element;
  llvm::raw_string_ostream(element) << getElementTypeOrSelf(type);
  return element + " " + tile::shapeText(type);
}

/// `1 word`, `2 words`.
std::string counted(int64_t count, StringRef noun) { return format("{} {}{}", count, noun, count == 1 ? "" : "s"); }

/// ` of x`, or ` to x`: the argument that a view is; empty if it has no name.
std::string ofView(Value view, StringRef word) {
  const auto name = dyn_cast<NameLoc>(view.getLoc());
  return name ? format(" {} {}", word, name.getName().strref()) : "";
}

TileLayout layoutOf(Value tile) { return simt::layoutOf(tile).getLayout(); }

/// The cache hint, if there is one; copies to shared memory bypass L1.
std::string cacheText(Operation *op) {
  const auto hint = op->getAttrOfType<StringAttr>(tile::cacheName);
  if (!hint)
    return "";
  if (isa<simt::FetchOp>(op))
    return hint == "stream" ? ", first to leave the second-level cache" : ", last to leave the second-level cache";
  return hint == "stream" ? ", past the first-level cache, first to leave the second" : ", last to leave the caches";
}

std::string accessText(tile::AccessOp op) {
  const RankedTensorType tile = op.getTile().getType();
  const int64_t vector = getVector(op), bytes = vector * bytesOf(tile);
  const std::string why = whyNarrow(op);
  return format("{} at a time, {} a thread{}", counted(bytes, "byte"),
                counted(simt::layoutOf(tile).getLayout().numStored() / vector, "time"),
                why.empty() ? "" : ", because " + why) +
         cacheText(op);
}

std::string product(tile::DotOp op) {
  const auto a = cast<RankedTensorType>(op.getA().getType());
  const ArrayRef<int64_t> leading = a.getShape().drop_back(2);
  const std::string batch =
      leading.empty() ? "" : format(", of {} pairs of matrices", ShapedType::getNumElements(leading));
  if (op->hasAttr("simt.mma"))
    return format("tensor cores, mma.sync.m16n8k{}, sums of {} products{}{}", 256 / multipliedBits(op),
                  a.getShape().back(), isSplit(op) ? ", each as three products of parts of its factors" : "",
                  op->hasAttr("tile.coarse") ? ", coarse ones of each instruction" : "") +
           batch;
  return "multiply-adds of each thread" + batch + ", not tensor cores: " + whyNoTensorCore(op);
}

std::string conversion(simt::ConvertOp op) {
  const TileLayout from = layoutOf(op.getSource()), to = layoutOf(op.getResult());
  const auto bits = static_cast<unsigned>(8 * bytesOf(op.getType()));
  const simt::ConvertPlan plan = simt::planConvert(from, to, bits, {});
  if (plan.isShared())
    return "through shared memory, because elements leave their warps";
  const int64_t shuffles = plan.shuffle().shuffles(bits) * from.shape().repeats();
  if (shuffles == 0)
    return plan.tier == simt::Tier::select ? "selects between a thread's registers" : "free: registers change names";
  return counted(shuffles, "shuffle");
}

std::string reduction(Value source, int64_t axis) {
  unsigned lanes = 0, warps = 0;
  for (const simt::AxisBit &bit : layoutOf(source).axisBits(static_cast<unsigned>(axis)))
    (bit.part == simt::Hw::lane ? lanes : warps) += bit.part == simt::Hw::lane || bit.part == simt::Hw::warp;
  std::string text = "in registers";
  if (lanes)
    text += format(", then between {} lanes by shuffles", 1u << lanes);
  if (warps)
    text += format(", then between {} warps through shared memory", 1u << warps);
  return text;
}

/// The explanation of an operation, in addition to its layout.
std::string detail(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::string>(op)
      .Case([](tile::AccessOp access) { return accessText(access); })
      .Case([](tile::DotOp dot) { return product(dot); })
      .Case([](simt::ConvertOp convert) { return conversion(convert); })
      .Case([](tile::ReduceOp reduce) { return reduction(reduce.getSource(), reduce.getAxis()); })
      .Case([](tile::ScanOp scan) { return reduction(scan.getSources()[0], scan.getAxis()); })
      .Case([](tile::SortOp sort) { return reduction(sort.getSource(), sort.getAxis()); })
      .Default(std::string());
}

/// The tile that an operation produces or stores.
Value tileOf(Operation *op) {
  if (auto access = dyn_cast<tile::AccessOp>(op))
    return access.getTile();
  if (auto sort = dyn_cast<tile::SortOp>(op))
    return sort.getResult();
  return op->getNumResults() == 1 && isa<RankedTensorType>(op->getResult(0).getType()) ? op->getResult(0) : Value();
}

void explainOperation(Operation *op, Explanation &explanation) {
  const Value tile = tileOf(op);
  auto reduce = dyn_cast<tile::ReduceOp>(op);
  if ((!tile && !reduce) || isa<arith::ConstantOp>(op) || (op->getNumRegions() && !isa<tile::ScanOp>(op)))
    return;
  const std::string what = detail(op);
  std::string text = op->getName().getStringRef().str();
  if (tile)
    text += " " + textOf(tile.getType());
  if (auto access = dyn_cast<tile::AccessOp>(op))
    text += ofView(access.getView(), access.writesView() ? "to" : "of");
  text += what.empty() ? "" : ": " + what;
  if (tile)
    text += "; " + layoutOf(tile).text();
  explanation.add(op->getLoc(), text);
}

// --- The kernel as a whole -------------------------------------------------------------------------------------------

/// The number of 32-bit registers of a thread's part of a value.
int64_t wordsOf(Value value) {
  const simt::LayoutAttr layout = simt::layoutOf(value);
  return layout ? llvm::divideCeil(layout.getLayout().numStored() * bytesOf(cast<RankedTensorType>(value.getType())), 4)
                : 0;
}

/// The most words of tiles that are live between two operations, and the position. Operations are taken to work in
/// place, and tiles that follow from positions or from fewer elements to be computed where they are used. ptxas also
/// needs registers for addresses and intermediate results, up to five for each element of a softmax; but it may compute
/// values again. So a warning requires a third more words than registers. Of 15 configs of softmax, layernorm and
/// matmul, the six with a warning spill 540 bytes or more in `ptxas -v`, and the nine others 484 or less, four of them
/// none.
void explainRegisters(func::FuncOp func, Explanation &explanation) {
  Liveness liveness(func);
  int64_t most = 0;
  Operation *where = nullptr;
  func.walk([&](Operation *op) {
    const LivenessBlockInfo *const block = liveness.getLiveness(op->getBlock());
    if (!block)
      return;
    int64_t words = 0;
    for (const Value value : block->currentlyLiveValues(op))
      if (block->getEndOperation(value, op) != op &&
          !isa_and_nonnull<arith::ConstantOp, tile::BroadcastOp, tile::SplatOp, tile::IotaOp>(value.getDefiningOp()))
        words += wordsOf(value);
    if (words > most)
      most = words, where = op;
  });
  if (!where)
    return;
  const int64_t warps = warpsOf(func), ctas = minCtasPerSm(func), registers = registersOfThread(warps, ctas);
  const std::string held = format("a thread holds at most {} of tiles at once", counted(most, "word")),
                    line = sourceLine(where->getLoc());
  explanation.add(format("registers: {}, at {}; it has {}", held, line, registers));
  if (3 * most > 4 * registers)
    explanation.warn(where->getLoc(),
                     format("{} and has {} registers, so that others spill to local memory: choose {}{}smaller tiles",
                            held, registers, ctas > 1 ? "fewer resident CTAs, " : "",
                            warps < maxWarps ? "more warps or " : ""));
}

/// Counts of the passes' choices.
void explainCounts(func::FuncOp func, Explanation &explanation) {
  int64_t accesses = 0, whole = 0, products = 0, tensorCore = 0, conversions = 0, shuffled = 0, shared = 0;
  func.walk([&](Operation *op) {
    if (auto dot = dyn_cast<tile::DotOp>(op)) {
      ++products;
      tensorCore += dot->hasAttr("simt.mma");
    } else if (auto convert = dyn_cast<simt::ConvertOp>(op)) {
      const std::string how = conversion(convert);
      ++conversions;
      shared += StringRef(how).starts_with("through");
      shuffled += StringRef(how).contains("shuffle");
    } else if (auto access = dyn_cast<tile::AccessOp>(op)) {
      ++accesses;
      whole += whyNarrow(access).empty();
    }
  });
  explanation.add(format("accesses: {}, of which {} move 16 bytes at a time", accesses, whole));
  explanation.add(format("products: {}, of which {} on tensor cores", products, tensorCore));
  explanation.add(
      format("conversions: {}, of which {} through shared memory and {} by shuffles", conversions, shared, shuffled));
}

/// Instructions that access a shared-memory layout.
std::string sharedLayoutTraffic(const TileLayout &layout, simt::SharedLayoutAttr sharedLayout, simt::Movement by) {
  const auto op = static_cast<simt::SharedOp>(by);
  const simt::SharedAccess access =
      op == simt::SharedOp::vector ? simt::vectorAccess(layout, sharedLayout.getMap(), sharedLayout.getBits())
                                   : *simt::matrixAccess(layout, sharedLayout.getMap(), sharedLayout.getBits(), op);
  const int64_t repeats = layout.shape().repeats(), times = repeats * access.instructions();
  const unsigned matrices = 1u << access.matrix.size();
  const unsigned bytes = (sharedLayout.getBits() << (access.element.size() + access.matrix.size())) / 8;
  const std::string how =
      op == simt::SharedOp::vector
          ? format("{} {} a thread", counted(times, "time"), counted(bytes, "byte"))
          : format("{} {} by {}", counted(times, "time"), matrices == 1 ? "1 matrix" : format("{} matrices", matrices),
                   op == simt::SharedOp::rows ? "rows" : "columns");
  return format("{}, {} a warp, {} at best", how, counted(repeats * access.wavefronts(), "wavefront"),
                llvm::divideCeil(times * bytes * simt::numLanes, 128));
}

template <class OpTy> void explainTraffic(OpTy op, StringRef what, Value tile, Explanation &explanation) {
  const auto type = cast<RankedTensorType>(tile.getType());
  std::string how;
  if (op.getSharedLayout()) {
    how = sharedLayoutTraffic(layoutOf(tile), *op.getSharedLayout(), *op.getMovement());
  } else {
    const SharedTraffic traffic = trafficOf(layoutOf(tile), bytesOf(type), *op.getStrides(), /*alignment=*/16);
    how = format("{} {} a thread, {} a warp, {} at best", counted(traffic.instructions, "time"),
                 counted(traffic.vectorBytes, "byte"), counted(traffic.wavefronts, "wavefront"), traffic.ideal);
  }
  auto place = op.getBuffer().template getDefiningOp<simt::BufferOp>();
  explanation.add(op->getLoc(), format("{} {} in shared memory at byte {}: {}", what, textOf(type),
                                       place ? place.getOffset().value_or(0) : 0, how));
}

/// `the load of x`.
std::string loadText(Operation *op) { return "the load" + ofView(cast<tile::AccessOp>(op).getView(), "of"); }

/// The copy in a loop's iteration, and if a loop over tiles is around that loop, the first copy of a tile.
void explainFetch(simt::FetchOp op, Explanation &explanation) {
  const ArrayRef<int64_t> slot = op.getSlot();
  const int64_t ahead = slot[0], stages = slot[1], distance = slot.size() > 2 ? slot[2] : stages - 1;
  if (!isa<scf::ForOp>(op->getParentOp()))
    return;
  if (ahead == 0)
    explanation.add(op->getLoc(),
                    op.getBuffer().getDefiningOp<simt::BufferOp>().getIdle()
                        ? "the first copies for the next tile begin before this tile's results are stored"
                        : "the first copies for a tile begin after the previous tile's results are stored");
  if (ahead == distance)
    explanation.add(
        op->getLoc(),
        format("copies {}{} {} ahead, to one of {} slots of {} bytes, {} bytes at a time",
               textOf(RankedTensorType::get(op.getSharedLayout().getShape(), op.getSharedLayout().getElement())),
               ofView(op.getView(), "of"), counted(ahead, "iteration"), stages, op.getSharedLayout().getBytes(),
               op.getVector() * op.getSharedLayout().getBits() / 8) +
            cacheText(op));
}

/// Whether the passes chose the layout of each of its tiles. They do not in a file that is lowered in part.
bool hasLayouts(func::FuncOp func) {
  const auto lacksLayout = [](Type type) { return isa<RankedTensorType>(type) && !simt::layoutOf(type); };
  return func->hasAttr("tile.kernel") && !func.walk([&](Operation *op) {
                                                return llvm::any_of(op->getResultTypes(), lacksLayout) ||
                                                               llvm::any_of(op->getOperandTypes(), lacksLayout)
                                                           ? WalkResult::interrupt()
                                                           : WalkResult::advance();
                                              })
                                              .wasInterrupted();
}

} // namespace

void explainLayouts(ModuleOp module, Explanation &explanation) {
  module.walk([&](func::FuncOp func) {
    if (!hasLayouts(func))
      return;
    const int64_t warps = warpsOf(func);
    explanation.add(
        format("kernel '{}': {} threads a program, {}", func.getName().str(), 32 * warps, counted(warps, "warp")));
    explanation.add("layouts: the bits of a register, a lane and a warp from the lowest on; d1:4 is a step of 4 along "
                    "dimension 1, * a copy");
    explainCounts(func, explanation);
    func.walk([&](Operation *op) { explainOperation(op, explanation); });
  });
}

void explainExchanges(ModuleOp module, Explanation &explanation) {
  module.walk([&](func::FuncOp func) {
    if (!hasLayouts(func))
      return;
    explainRegisters(func, explanation);
    int64_t barriers = 0;
    func.walk([&](Operation *op) {
      if (auto barrier = dyn_cast<simt::BarrierOp>(op)) {
        explanation.add(op->getLoc(), "barrier: " + barrier.getGuards().value_or("asked for").str());
        ++barriers;
      } else if (auto write = dyn_cast<simt::WriteOp>(op)) {
        explainTraffic(write, "writes", write.getValue(), explanation);
      } else if (auto read = dyn_cast<simt::ReadOp>(op)) {
        explainTraffic(read, "reads", read.getResult(), explanation);
      } else if (auto fetch = dyn_cast<simt::FetchOp>(op)) {
        explainFetch(fetch, explanation);
      } else if (isa<simt::MultiplyOp>(op)) {
        explanation.add(op->getLoc(),
                        "wgmma replaces mma.sync: groups of four warps multiply both operands from shared memory");
      } else if (isa<simt::MultiplyRowsOp>(op)) {
        explanation.add(op->getLoc(),
                        "wgmma replaces mma.sync: groups of four warps multiply the right operand from shared memory");
      } else if (auto why = op->getAttrOfType<StringAttr>("simt.why")) {
        explanation.add(op->getLoc(), loadText(op) + " is not copied ahead of its product: " + why.str());
      } else if (isa<tile::LoadOp, tile::GatherOp>(op) && isa<RankedTensorType>(op->getResult(0).getType()) &&
                 op->getParentOfType<LoopLikeOpInterface>()) {
        explanation.add(op->getLoc(),
                        loadText(op) + " is not copied ahead: " +
                            (isa<tile::GatherOp>(op) ? "its rows have positions that a tile names"
                                                     : "no product on tensor cores multiplies it as loaded"));
      } else if (auto pick = dyn_cast<simt::PickOp>(op)) {
        explanation.add(op->getLoc(), format("reads {} in shared memory, element by element", textOf(pick.getType())));
      }
    });
    const auto bytes = func->getAttrOfType<IntegerAttr>("simt.shared_bytes");
    explanation.add(format("shared memory: {} bytes a program", bytes ? bytes.getInt() : 0));
    explanation.add(format("barriers: {}", barriers));
  });
}

} // namespace kiln::lowering::gpu
