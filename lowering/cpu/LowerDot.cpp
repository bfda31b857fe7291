// Matrix products: result = a · b + acc.
//
// DotOperands.cpp packs the operands. The micro-kernel keeps `rows` × 2 vectors of the result in registers over all of
// K, and then adds the accumulator once. So a long sum over tiles of K is a sum of short chains. A block's results are
// written to the tile's scratch memory. If stores are the only readers, the last iteration of the loop over K runs the
// stores, which write directly to their views. The first iteration then does not read scratch memory either, because
// the accumulator is zero.
//
// With AMX, a block's results pass through memory anyway. They are stored, row by row, during the iterations of the
// next block's loop, in which the next panel of b is packed, too.

#include "lowering/analysis/Masks.h"
#include "lowering/cpu/DotOperands.h"
#include "lowering/cpu/LowerTiles.h"
#include "lowering/cpu/Prefetch.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/IR/Dominance.h"
#include "llvm/ADT/SmallVectorExtras.h"

using namespace mlir;

namespace kiln::lowering::cpu {

/// Unrolling of the micro-kernel's loop. With AVX-512, the 16 FMAs of one step hide the loop overhead, and more would
/// only lengthen compilation. With fewer registers there are 12, too few for a CPU that issues four instructions per
/// cycle.
static int64_t unrollOf(Machine machine) { return machine.rows() >= 8 ? 1 : 2; }

/// Steps between two prefetches, in a loop of `depth` steps; a short loop has a few, too. Measured by `kiln-bench
/// matmul`.
static int64_t stepsPerChunk(int64_t depth) {
  constexpr int64_t longLoop = 128, chunk = 64, shortChunk = 32;
  return depth < longLoop ? shortChunk : chunk;
}

/// Rows of the result computed at a time.
static int64_t rowsPerBlock(tile::DotOp dot, Machine machine) {
  return hasTiles(unitOf(dot)) ? 2 * tileRows : std::min(*(tile::shapeOf(dot.getType()).end() - 2), machine.rows());
}

namespace {

class Dot {
public:
  Dot(tile::DotOp dot, const Destination &to, Machine machine, const DenseMap<Value, Value> &buffers)
      : dot(dot), to(to), machine(machine), buffers(buffers), e(dot.getLoc(), machine, buffers), unit(unitOf(dot)),
        element(getElementTypeOrSelf(dot.getType())), shape(tile::shapeOf(dot.getType())), M(shape[shape.size() - 2]),
        N(shape.back()), lanes(machine.lanes()), rows(rowsPerBlock(dot, machine)), operands(dot, e, buffers, rows),
        kChunk(hasTiles(unit) ? tileWords : stepsPerChunk(operands.depth())) {
    e.levels.push_back({dot->getBlock(), dot});
  }

  void emit() {
    operands.bound();
    boundResult();
    nextStep.emplace(dot, e);
    operands.place();
    operands.forMatrices([&] {
      operands.pack();
      if (!to.stores.empty() && !hasTiles(unit))
        corner = memoryOf(rows);
      if (hasTiles(unit))
        tileSums = memoryOf(2 * rows);
      multiply();
    });
  }

private:
  /// Scratch memory for this many rows of a panel's results.
  Value memoryOf(int64_t count) {
    e.moveTo(0);
    return memref::AllocaOp::create(e.builder, e.loc, MemRefType::get({count, 2 * lanes}, element),
                                    e.builder.getI64IntegerAttr(64));
  }

  // --- Bounds of the result -----------------------------------------------------------------------------------------

  /// Rows and columns from these on are not computed, because no store writes them or they keep their values.
  void boundResult() {
    mEnd = e.constantIndex(M);
    nEnd = e.constantIndex(N);
    if (!to.stores.empty()) {
      mEnd = storedBelow(0, M);
      nEnd = storedBelow(1, N);
    } else if (to.holdsAccumulator && buffers.lookup(dot.getAcc()) == to.buffer) {
      mEnd = operands.mBound;
      nEnd = operands.nBound;
    }
  }

  /// An upper bound of the positions along its matrices' `axis` that a store writes.
  Value storedBelow(int64_t axis, int64_t extent) {
    Value end = e.constantIndex(0);
    for (tile::StoreOp store : to.stores) {
      int64_t at = -1, skip = axis + llvm::count_if(shape.drop_back(2), [](int64_t size) { return size != 1; });
      for (int64_t size : tile::shapeOf(store.getValue().getType())) {
        ++at;
        if (size != 1 && skip-- == 0)
          break;
      }
      end = e.make<arith::MaxSIOp>(end, operands.boundIn(store.getView(), at, store.getOffsets()[at], extent));
    }
    return end;
  }

  // --- The micro-kernel ---------------------------------------------------------------------------------------------

  void multiply() {
    if (!hasTiles(unit))
      return forPanels(e, N, nEnd, [&](Value n, ArrayRef<int64_t> valid) { column(n, valid); });
    forPanels(e, N, nEnd, e.constantIndex(0), [&](Value n, ArrayRef<int64_t> valid, ValueRange packed) {
      return SmallVector<Value>{tileColumn(n, valid, packed[0])};
    });
  }

  /// Multiplies all rows by the panel of b at column n, of which `valid` columns are in the tile.
  void column(Value n, ArrayRef<int64_t> valid) {
    const int64_t whole = M / rows * rows;
    operands.selectPanel(n, valid);
    const auto [begin, end] = usedBlocks(n, whole);
    const SmallVector<Value> starts = initialSums(valid.size());
    if (whole)
      e.loop(begin, end, rows, [&](Ix m) { block(m.at, rows, n, valid, starts); });
    if (whole < M)
      block(e.constantIndex(whole), M - whole, n, valid, starts);
  }

  /// The range of row blocks, within the first `whole` rows, whose results with the panel at n are used.
  std::pair<Value, Value> usedBlocks(Value n, int64_t whole) {
    Value begin = e.constantIndex(0), end = e.least(mEnd, e.constantIndex(whole));
    const auto triangle = readInside(dot.getResult());
    const bool isKnown = triangle && DominanceInfo().properlyDominates(triangle->limit, dot); // not in a later loop
    if (isKnown && to.stores.empty()) { // a store also writes the masked elements
      Value shift = shiftOf(*triangle);
      if (triangle->transposed)
        end = e.make<arith::MinSIOp>(end, after(n, 2 * lanes, shift));
      else
        begin =
            e.make<arith::MulIOp>(e.make<arith::DivUIOp>(from(n, shift), e.constantIndex(rows)), e.constantIndex(rows));
    }
    return {begin, end};
  }

  // For a triangle `column − row ≤ shift`: the first row inside for a column is `from`, and the end of the columns
  // inside for some rows is `after`.
  Value shiftOf(const Triangle &triangle) {
    Value limit = e.make<arith::IndexCastOp>(e.builder.getIndexType(), triangle.limit);
    if (triangle.limit.getType().isInteger(64)) { // avoids overflow of sums; no position is as large
      constexpr int64_t far = int64_t(1) << 32;
      limit = e.make<arith::MinSIOp>(limit, e.constantIndex(far));
      limit = e.make<arith::MaxSIOp>(limit, e.constantIndex(-far));
    }
    return e.make<arith::AddIOp>(limit, e.constantIndex(triangle.offset));
  }
  Value from(Value position, Value shift) {
    return e.make<arith::MaxSIOp>(e.make<arith::SubIOp>(position, shift), e.constantIndex(0));
  }
  Value after(Value position, int64_t count, Value shift) {
    Value last = e.make<arith::AddIOp>(position, e.constantIndex(count));
    return e.make<arith::MaxSIOp>(e.make<arith::AddIOp>(last, shift), e.constantIndex(0));
  }

  /// The range of steps in which the block of rows at m has nonzero elements of a.
  std::pair<Value, Value> nonzeroSteps(Value m, int64_t height) {
    auto triangle = zeroOutside(dot.getA());
    if (!triangle || unit == Unit::i8Quads) // its initial sums account for all steps
      return {e.constantIndex(0), operands.steps};
    Value shift = shiftOf(*triangle);
    if (!triangle->transposed)
      return {e.constantIndex(0), e.make<arith::MinSIOp>(operands.steps, operands.stepsBelow(after(m, height, shift)))};
    return {e.make<arith::MinSIOp>(operands.steps, operands.stepAt(from(m, shift))), operands.steps};
  }

  /// A vector of bytes 128. Added to i8 without carries, it makes them unsigned, each larger by 128.
  Value bias() { return e.asVector(e.make<arith::ConstantOp>(e.builder.getI32IntegerAttr(int32_t(0x80808080)))); }

  /// Four products each of unsigned bytes x and signed bytes y, added to the lanes of `sum`.
  Value addQuads(Value x, Value y, Value sum) {
    auto bytes = VectorType::get({4 * lanes}, e.builder.getI8Type());
    return e.make<LLVM::CallIntrinsicOp>(
        sum.getType(), e.builder.getStringAttr("llvm.x86.avx512.vpdpbusd.512"),
        ValueRange{sum, e.make<vector::BitCastOp>(bytes, x), e.make<vector::BitCastOp>(bytes, y)});
  }

  Value multiplyAdd(Value x, Value y, Value sum) {
    auto pairs = VectorType::get({2 * lanes}, e.builder.getBF16Type());
    switch (unit) {
    case Unit::bf16Pairs:
      return e.make<x86vector::DotBF16Op>(sum, e.make<vector::BitCastOp>(pairs, x),
                                          e.make<vector::BitCastOp>(pairs, y));
    case Unit::i8Quads:
      return addQuads(e.make<arith::XOrIOp>(x, bias()), y, sum);
    case Unit::bf16Tiles: // handled by multiplyTiles
    case Unit::i8Tiles:
    case Unit::multiplyAdd:
      break;
    }
    if (isa<FloatType>(element))
      return e.make<math::FmaOp>(x, y, sum);
    return e.make<arith::AddIOp>(e.make<arith::MulIOp>(x, y), sum);
  }

  /// The initial sums of the panel's columns: zero, minus the contribution of the bias of i8 quads.
  SmallVector<Value> initialSums(size_t width) {
    Value zero = e.asVector(e.make<arith::ConstantOp>(cast<TypedAttr>(e.builder.getZeroAttr(element))));
    SmallVector<Value> starts(width, zero);
    if (unit != Unit::i8Quads)
      return starts;
    starts = e.loop(e.constantIndex(0), operands.steps, 1, starts, [&](Ix step, ValueRange carried) {
      SmallVector<Value> next(carried);
      for (size_t j = 0; j < width; ++j)
        next[j] = addQuads(bias(), operands.readB(step.at, j), next[j]);
      return next;
    });
    for (Value &start : starts)
      start = e.make<arith::SubIOp>(zero, start);
    return starts;
  }

  /// Adds the product of a step's column of a and row of b to the block's accumulators.
  void rankOne(ArrayRef<Value> row, Value step, SmallVector<Value> &sums) {
    const size_t width = sums.size() / row.size();
    SmallVector<Value> b;
    for (size_t j = 0; j < width; ++j)
      b.push_back(operands.readB(step, j));
    for (size_t i = 0; i < row.size(); ++i) {
      Value scalar = e.asVector(operands.readA(row, i, step));
      for (size_t j = 0; j < width; ++j)
        sums[i * width + j] = multiplyAdd(scalar, b[j], sums[i * width + j]);
    }
  }

  /// The panel's columns from n on, of which `valid` are in the tile.
  SmallVector<Ix> columnsOf(Value n, ArrayRef<int64_t> valid) {
    SmallVector<Ix> columns;
    for (size_t j = 0; j < valid.size(); ++j)
      columns.push_back(e.lanesFrom(j ? e.make<arith::AddIOp>(n, e.constantIndex(j * lanes)) : n, valid[j]));
    return columns;
  }

  /// A block of the result's rows and columns; `n` is the first column of its panel.
  struct Block {
    Value n;
    ArrayRef<Value> rows;
    ArrayRef<Ix> columns;
  };

  void block(Value m, int64_t height, Value n, ArrayRef<int64_t> valid, ArrayRef<Value> starts) {
    SmallVector<Value> row, source; // rows past the bound read the last valid row, and their results are dropped
    Value last = e.make<arith::MaxSIOp>(e.make<arith::SubIOp>(operands.mBound, e.constantIndex(1)), e.constantIndex(0));
    for (int64_t i = 0; i < height; ++i) {
      row.push_back(i ? e.make<arith::AddIOp>(m, e.constantIndex(i)) : m);
      source.push_back(operands.isBounded() ? e.make<arith::MinSIOp>(row.back(), last) : row.back());
    }
    const SmallVector<Ix> columns = columnsOf(n, valid);
    const Block place{n, row, columns};
    Value zero = e.asVector(e.make<arith::ConstantOp>(cast<TypedAttr>(e.builder.getZeroAttr(element))));
    SmallVector<Value> begin;
    for (int64_t i = 0; i < height; ++i)
      llvm::append_range(begin, starts);
    Value nextPanel = e.make<arith::AddIOp>(n, e.constantIndex(2 * lanes));
    const auto [kBegin, kEnd] = nonzeroSteps(m, height);
    auto steps = [&](Value from, Value to, ValueRange sums) {
      return e.unrolledLoop(from, to, unrollOf(machine), sums, [&](Ix k, ValueRange carried) {
        SmallVector<Value> next(carried);
        rankOne(source, k.at, next);
        return next;
      });
    };
    auto chunk = [&, kEnd = kEnd](Ix k, ValueRange carried) {
      operands.prefetchPanel(nextPanel, m, k.at, kChunk);
      prefetchStores(m, height, n, valid.size(), k.at);
      prefetchNextStep(n, m, k.at);
      Value end = e.make<arith::AddIOp>(k.at, e.constantIndex(kChunk));
      return steps(k.at, e.make<arith::MinSIOp>(end, kEnd), carried);
    };
    const bool prefetches = !to.stores.empty() || operands.prefetches() || !nextStep->empty();
    SmallVector<Value> sums = prefetches ? e.loop(kBegin, kEnd, kChunk, begin, chunk) : steps(kBegin, kEnd, begin);
    if (operands.isBounded())
      for (size_t s = 0; s < sums.size(); ++s) {
        Value counts = e.make<arith::CmpIOp>(arith::CmpIPredicate::slt, row[s / valid.size()], operands.mBound);
        sums[s] = e.make<arith::SelectOp>(counts, sums[s], zero);
      }
    addAccumulator(place, sums);
    finish(place, sums);
  }

  // --- Products with AMX tiles --------------------------------------------------------------------------------------
  //
  // Multiplying a block takes a fraction of the time of loading its operands and storing its results. So, while one
  // block is multiplied, the next panel of b is packed and the previous block is stored.

  /// The block that is stored during a multiplication: rows [0, height) of the block at m, with results in `tileSums`
  /// from `memory` on.
  struct Pending {
    Value m, height, memory;
    Value n;
    ArrayRef<Ix> columns;
  };

  /// `column` for tiles. `packed` pieces of the panel are packed already; returns that number for the next panel.
  Value tileColumn(Value n, ArrayRef<int64_t> valid, Value packed) {
    Value none = e.constantIndex(0), pieces;
    const int64_t whole = N / (2 * lanes) * 2 * lanes;
    if (operands.packsAhead() && llvm::all_of(valid, [&](int64_t count) { return count == lanes; }) &&
        valid.size() == 2) {
      operands.selectPanel(n, valid, packed);
      Value next = e.make<arith::AddIOp>(n, e.constantIndex(2 * lanes));
      Value follows = e.make<arith::CmpIOp>(arith::CmpIPredicate::slt, next, e.least(nEnd, e.constantIndex(whole)));
      pieces = e.make<arith::SelectOp>(follows, operands.pieces(), none);
    } else {
      operands.selectPanel(n, valid);
    }
    const SmallVector<Ix> columns = columnsOf(n, valid);
    const auto [begin, end] = usedBlocks(n, M);
    // An extra iteration stores the last block.
    Value some = e.make<arith::CmpIOp>(arith::CmpIPredicate::slt, begin, end);
    Value past = e.make<arith::SelectOp>(some, e.make<arith::AddIOp>(end, e.constantIndex(rows)), begin);
    return e.loop(begin, past, rows, none, [&, begin = begin, end = end](Ix m, ValueRange done) -> SmallVector<Value> {
      Value before = e.make<arith::SubIOp>(m.at, e.constantIndex(rows));
      Value memory = e.make<arith::RemUIOp>(m.at, e.constantIndex(2 * rows));
      Value height = e.make<arith::MinSIOp>(e.make<arith::SubIOp>(mEnd, before), e.constantIndex(rows));
      height = e.make<arith::SelectOp>(e.make<arith::CmpIOp>(arith::CmpIPredicate::sgt, m.at, begin), height, none);
      const Pending pending{before, height, e.make<arith::SubIOp>(e.constantIndex(rows), memory), n, columns};
      return {tiles(m.at, end, memory, pending, valid.size(), done[0], pieces)};
    })[0];
  }

  /// Multiplies the block at row m, if it is below `end`, and writes the results to `memory`. Each iteration of K also
  /// stores a share of `pending` and packs a share of the next panel, of which `done` of `pieces` are packed (null:
  /// none). Returns the new number of packed pieces.
  Value tiles(Value m, Value end, Value memory, const Pending &pending, size_t width, Value done, Value pieces) {
    const int64_t share = llvm::divideCeil(rows, llvm::divideCeil(operands.depth(), kChunk));
    Value next = e.make<arith::AddIOp>(pending.n, e.constantIndex(2 * lanes));
    Value requested = e.make<arith::AddIOp>(next, e.constantIndex(operands.packsAhead() ? 2 * lanes : 0));
    const auto [kBegin, kEnd] = nonzeroSteps(m, rows);
    Value first = e.make<arith::SubIOp>(kBegin, e.make<arith::RemUIOp>(kBegin, e.constantIndex(tileWords)));
    Value isThere = e.make<arith::CmpIOp>(arith::CmpIPredicate::slt, m, end);
    Value last = e.make<arith::SelectOp>(isThere, kEnd, first);
    auto between = [&](Value step, ValueRange carried) -> SmallVector<Value> {
      operands.prefetchPanel(requested, m, step, kChunk);
      prefetchStores(m, rows, pending.n, width, step);
      prefetchNextStep(pending.n, m, step);
      auto advanced = [&](Value from, int64_t by, Value to) {
        return e.make<arith::MinSIOp>(e.make<arith::AddIOp>(from, e.constantIndex(by)), to);
      };
      Value packed = carried[0];
      if (pieces) {
        packed = advanced(carried[0], operands.piecesAtATime(), pieces);
        operands.packPieces(next, carried[0], packed);
      }
      Value stored = advanced(carried[1], share, pending.height);
      finishRows(pending, carried[1], stored);
      return {packed, stored};
    };
    auto carried = operands.multiplyTiles(m, first, last, tileSums, memory, {done, e.constantIndex(0)}, between);
    finishRows(pending, carried[1], pending.height);
    return carried[0];
  }

  /// Rows [begin, end) of a block, one by one.
  void finishRows(const Pending &block, Value begin, Value end) {
    e.loop(begin, end, 1, [&](Ix i) {
      Value row = e.make<arith::AddIOp>(block.m, i.at);
      SmallVector<Value> sums;
      for (size_t j = 0; j < block.columns.size(); ++j) {
        SmallVector<Value> at = {e.make<arith::AddIOp>(block.memory, i.at), e.constantIndex(j * lanes)};
        e.moveTo(e.depth());
        sums.push_back(e.noted(vector::LoadOp::create(e.builder, e.loc, e.vectorOf(element), tileSums, at), e.depth()));
      }
      const Block place{block.n, row, block.columns};
      addAccumulator(place, sums);
      finish(place, sums);
    });
  }

  // --- Results of a block -------------------------------------------------------------------------------------------

  Index indexOf(Value row, Ix column) { return operands.in(e.along(row), column); }

  /// The index in a store's tile that corresponds to `index` in the result.
  Index indexIn(tile::StoreOp store, const Index &index) {
    return e.acrossUnits(tile::shapeOf(store.getValue().getType()), shape, index);
  }

  /// The block's s-th vector of results in the buffer.
  SmallVector<Value> inBuffer(const Block &at, size_t s) {
    const size_t width = at.columns.size();
    if (!to.first) {
      const Index index = indexOf(at.rows[s / width], at.columns[s % width]);
      return llvm::map_to_vector(index, [](const Ix &position) { return position.at; });
    }
    Value panel = e.make<arith::DivUIOp>(at.n, e.constantIndex(2 * lanes));
    if (shape.size() > 2) {
      Value before = e.constantIndex(llvm::divideCeil(N, 2 * lanes)); // panels of each pair of matrices
      panel = e.make<arith::AddIOp>(e.make<arith::MulIOp>(operands.number(), before), panel);
    }
    return {panel, at.rows[s / width], e.constantIndex(s % width * lanes)};
  }

  void addAccumulator(const Block &at, SmallVector<Value> &sums) {
    if (matchPattern(dot.getAcc(), m_AnyZeroFloat()) || matchPattern(dot.getAcc(), m_Zero()))
      return;
    auto accumulator = [&](size_t s) -> Value {
      const size_t width = at.columns.size();
      if (!to.first)
        return e.vectorAt(dot.getAcc(), indexOf(at.rows[s / width], at.columns[s % width]));
      SmallVector<Value> indices = inBuffer(at, s);
      e.moveTo(e.depth());
      return e.noted(vector::LoadOp::create(e.builder, e.loc, e.vectorOf(element), to.buffer, indices), e.depth());
    };
    auto add = [&](ArrayRef<Value> sums) {
      SmallVector<Value> next;
      for (size_t s = 0; s < sums.size(); ++s) {
        Value acc = accumulator(s);
        next.push_back(isa<FloatType>(element) ? e.make<arith::AddFOp>(acc, sums[s])
                                               : e.make<arith::AddIOp>(acc, sums[s]));
      }
      return next;
    };
    const ValueRange begin = sums;
    sums = to.first ? e.choose(to.first, begin.getTypes(), [&] { return sums; }, [&] { return add(sums); }) : add(sums);
  }

  void finish(const Block &at, ArrayRef<Value> sums) {
    auto keep = [&] {
      for (size_t s = 0; s < sums.size(); ++s) {
        SmallVector<Value> indices = inBuffer(at, s);
        e.moveTo(e.depth());
        vector::StoreOp::create(e.builder, e.loc, sums[s], to.buffer, indices);
      }
    };
    if (to.stores.empty())
      return keep();
    auto store = [&] { storeThrough(at, sums); };
    to.last ? e.branch(to.last, store, keep) : store();
  }

  /// Prefetches the memory that the block will write, line by line, while it is computed. Before the last iteration,
  /// which writes, it prefetches the tile's first line repeatedly, at no cost.
  void prefetchStores(Value m, int64_t height, Value n, size_t width, Value k) {
    for (tile::StoreOp store : to.stores)
      for (Value number : rowsAt(e, height, k, operands.depth(), kChunk)) {
        Value row = e.make<arith::AddIOp>(m, number), first = n;
        if (to.last) {
          row = e.make<arith::SelectOp>(to.last, row, e.constantIndex(0));
          first = e.make<arith::SelectOp>(to.last, first, e.constantIndex(0));
        }
        for (size_t vector = 0; vector < width; ++vector) {
          Value column = e.make<arith::AddIOp>(first, requestFor(e, vector));
          e.prefetch(store, store.getOffsets(), indexIn(store, indexOf(row, e.along(column))));
        }
      }
  }

  /// Prefetches the operands of the next iteration of the loop around the product.
  void prefetchNextStep(Value n, Value m, Value k) {
    const int64_t inPanel = llvm::divideCeil(M, rows), panels = llvm::divideCeil(N, 2 * lanes);
    Value block =
        e.make<arith::MulIOp>(e.make<arith::DivUIOp>(n, e.constantIndex(2 * lanes)), e.constantIndex(inPanel));
    block = e.make<arith::AddIOp>(block, e.make<arith::DivUIOp>(m, e.constantIndex(rows)));
    nextStep->prefetch(block, inPanel * panels, k, operands.depth(), kChunk);
  }

  /// Runs the stores on a block. Its results go through a small buffer, so that the code of the stores is emitted once
  /// for all rows.
  void storeThrough(const Block &block, ArrayRef<Value> sums) {
    const size_t width = block.columns.size();
    if (block.rows.size() == 1)
      return storeRow(block.rows[0], block.columns, sums);
    auto cornerAt = [&](Value i, size_t j) -> SmallVector<Value> { return {i, e.constantIndex(j * lanes)}; };
    for (size_t s = 0; s < sums.size(); ++s) {
      auto at = cornerAt(e.constantIndex(s / width), s % width);
      e.moveTo(e.depth());
      vector::StoreOp::create(e.builder, e.loc, sums[s], corner, at);
    }
    e.loop(e.constantIndex(0), e.constantIndex(block.rows.size()), 1, [&](Ix i) {
      SmallVector<Value> row;
      for (size_t j = 0; j < width; ++j)
        row.push_back(e.make<vector::LoadOp>(e.vectorOf(element), corner, cornerAt(i.at, j)));
      storeRow(e.make<arith::AddIOp>(block.rows[0], i.at), block.columns, row);
    });
  }

  void storeRow(Value m, ArrayRef<Ix> columns, ArrayRef<Value> sums) {
    for (size_t j = 0; j < columns.size(); ++j) {
      const Index index = indexOf(m, columns[j]);
      e.remember(to.tile, index, sums[j]);
      for (tile::StoreOp store : to.stores) {
        Index stored = indexIn(store, index);
        e.store(e.at(store.getValue(), stored), store, stored);
      }
    }
  }

  tile::DotOp dot;
  const Destination &to;
  const Machine machine;
  const DenseMap<Value, Value> &buffers;
  Evaluator e;
  const Unit unit;
  const Type element;            // of the accumulator
  const ArrayRef<int64_t> shape; // of the result
  const int64_t M, N, lanes, rows;
  DotOperands operands;
  const int64_t kChunk;
  std::optional<NextStep> nextStep;
  Value mEnd, nEnd, corner, tileSums;
};

} // namespace

RankedTensorType panelType(Type tile, Machine machine) {
  auto shape = tile::shapeOf(tile);
  const int64_t wide = 2 * machine.lanes();
  const int64_t count = ShapedType::getNumElements(shape.drop_back(2)) * llvm::divideCeil(shape.back(), wide);
  return RankedTensorType::get({count, shape[shape.size() - 2], wide}, getElementTypeOrSelf(tile));
}

void lowerDot(tile::DotOp dot, const Destination &to, Machine machine, const DenseMap<Value, Value> &buffers) {
  Dot(dot, to, machine, buffers).emit();
}

} // namespace kiln::lowering::cpu
