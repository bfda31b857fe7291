// Gathers along an axis, one element at a time, and histograms.
//
// A histogram has four tables, each for every fourth element, so that equal adjacent elements do not depend on each
// other. Ignored elements are counted in an extra bin after the last.

#include "lowering/cpu/LowerSort.h"

#include "lowering/cpu/Buffers.h"

using namespace mlir;

namespace kiln::lowering::cpu {

void lowerTake(tile::TakeOp op, Machine machine, DenseMap<Value, Value> &buffers) {
  OpBuilder builder(op);
  const RankedTensorType type = op.getType();
  const Value buffer = allocateBuffer(builder, op.getLoc(), type, machine);
  Evaluator e(op.getLoc(), machine, buffers);
  e.levels.push_back({op->getBlock(), op});
  const Value extent = e.constantIndex(op.getSource().getType().getDimSize(op.getAxis()));
  Index index;
  std::function<void()> nest = [&] {
    if (static_cast<int64_t>(index.size()) < type.getRank()) {
      e.loop(e.constantIndex(0), e.constantIndex(type.getDimSize(index.size())), 1, [&](Ix position) {
        index.push_back(position);
        nest();
        index.pop_back();
      });
      return;
    }
    const Value place = e.make<arith::IndexCastOp>(e.builder.getIndexType(), e.at(op.getIndex(), index));
    const Value within = e.make<arith::CmpIOp>(arith::CmpIPredicate::ult, place, extent);
    Index from(index);
    from[op.getAxis()] = e.along(e.make<arith::SelectOp>(within, place, e.constantIndex(0)));
    const Value taken = e.at(op.getSource(), from);
    const Value zero = e.make<arith::ConstantOp>(cast<TypedAttr>(e.builder.getZeroAttr(type.getElementType())));
    e.storeBuffer(e.make<arith::SelectOp>(within, taken, zero), buffer, index);
  };
  nest();
  buffers[op.getResult()] = buffer;
}

namespace {

class Histogram {
public:
  Histogram(tile::HistogramOp op, Machine machine, DenseMap<Value, Value> &buffers)
      : op(op), machine(machine), buffers(buffers), e(op.getLoc(), machine, buffers), bins(op.getType().getDimSize(0)),
        sideBySide(bins <= fewBins ? machine.lanes() : 4) {
    e.levels.push_back({op->getBlock(), op});
  }

  void lower() {
    OpBuilder builder(op);
    const Type i32 = builder.getI32Type();
    const int64_t lanes = machine.lanes();
    tables = allocateBuffer(builder, op.getLoc(), RankedTensorType::get({sideBySide, bins + 1}, i32), machine);
    const Value result = allocateBuffer(builder, op.getLoc(), op.getType(), machine);
    const Value zeros = e.make<arith::ConstantOp>(cast<TypedAttr>(e.builder.getZeroAttr(e.vectorOf(i32))));
    e.loop(e.constantIndex(0), e.constantIndex(sideBySide), 1, [&](Ix table) {
      e.loop(e.constantIndex(0), e.constantIndex(bins + 1), lanes,
             [&](Ix bin) { e.storeBuffer(zeros, tables, {table, e.lanesFrom(bin.at, lanes)}); });
    });
    Index index;
    countFrom(index);
    e.loop(e.constantIndex(0), e.constantIndex(bins), lanes, [&](Ix bin) {
      Value sum;
      for (int64_t table = 0; table < sideBySide; ++table) {
        const Value row = e.constantIndex(table);
        e.moveTo(e.depth());
        const Value counts = vector::LoadOp::create(e.builder, e.loc, e.vectorOf(i32), tables, ValueRange{row, bin.at});
        sum = sum ? arith::AddIOp::create(e.builder, e.loc, sum, counts).getResult() : counts;
      }
      e.noted(sum, e.depth());
      e.storeBuffer(sum, result, {e.lanesFrom(bin.at, lanes)});
    });
    buffers[op.getResult()] = result;
  }

private:
  /// The most bins for which tables of all lanes fit half of the L1 cache.
  static constexpr int64_t fewBins = 256;

  /// Counts the elements whose leading positions are in `index`.
  void countFrom(Index &index) {
    const ArrayRef<int64_t> shape = op.getSource().getType().getShape();
    const int64_t extent = shape[index.size()], lanes = machine.lanes(), full = extent / lanes * lanes;
    const auto with = [&](const Ix &position, function_ref<void()> body) {
      index.push_back(position);
      body();
      index.pop_back();
    };
    if (index.size() + 1 < shape.size()) {
      e.loop(e.constantIndex(0), e.constantIndex(extent), 1,
             [&](Ix position) { with(position, [&] { countFrom(index); }); });
      return;
    }
    if (full)
      e.loop(e.constantIndex(0), e.constantIndex(full), lanes,
             [&](Ix base) { with(e.lanesFrom(base.at, lanes), [&] { countVector(index, lanes); }); });
    if (extent > full)
      with(e.lanesFrom(e.constantIndex(full), extent - full), [&] { countVector(index, extent - full); });
  }

  void countVector(const Index &index, int64_t valid) {
    const Value numbers = e.vectorAt(op.getSource(), index);
    const Type element = getElementTypeOrSelf(numbers), i32 = e.builder.getI32Type();
    const auto constant = [&](Type type, int64_t value) {
      return e.make<arith::ConstantOp>(DenseElementsAttr::get(e.vectorOf(type), e.builder.getIntegerAttr(type, value)));
    };
    Value counts = e.make<arith::CmpIOp>(arith::CmpIPredicate::ult, numbers, constant(element, bins));
    if (op.getMask())
      counts = e.make<arith::AndIOp>(counts, e.vectorAt(op.getMask(), index));
    const Value narrow = element == i32 ? numbers : e.make<arith::TruncIOp>(e.vectorOf(i32), numbers);
    const Value places = e.make<arith::SelectOp>(counts, narrow, constant(i32, bins));
    e.moveTo(e.depth());
    OpBuilder &b = e.builder;
    const Value one = arith::ConstantIntOp::create(b, e.loc, 1, 32);
    for (int64_t lane = 0; lane < valid; ++lane) {
      const Value table = arith::ConstantIndexOp::create(b, e.loc, lane % sideBySide);
      const Value place =
          arith::IndexCastUIOp::create(b, e.loc, b.getIndexType(), vector::ExtractOp::create(b, e.loc, places, lane));
      const Value before = memref::LoadOp::create(b, e.loc, tables, ValueRange{table, place});
      memref::StoreOp::create(b, e.loc, arith::AddIOp::create(b, e.loc, before, one), tables, ValueRange{table, place});
    }
  }

  tile::HistogramOp op;
  const Machine machine;
  DenseMap<Value, Value> &buffers; // read by e
  Evaluator e;
  const int64_t bins, sideBySide; // tables
  Value tables;
};

} // namespace

void lowerHistogram(tile::HistogramOp op, Machine machine, DenseMap<Value, Value> &buffers) {
  Histogram(op, machine, buffers).lower();
}

} // namespace kiln::lowering::cpu
