// What `gpu-distribute` knows while it writes the operations of one thread.
//
// A tile with a layout becomes a vector of the values that a thread stores, in the order of their stored indices
// (TileLayout.h). The position of such a value is the thread's share, the same for all values of a layout, plus a
// number that is known.

#pragma once

#include "dialect/simt/SimtDialect.h"
#include "dialect/simt/SortOps.h"
#include "dialect/tile/TileDialect.h"
#include "lowering/tile/Emit.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

#include <map>

namespace kiln::lowering::gpu {

using Values = llvm::SmallVector<mlir::Value>;
using Indices = llvm::SmallVector<int64_t>;

class ThreadCode {
public:
  /// Operations are written at `builder`; what is the same for the whole kernel aside, until finish() puts it at the
  /// beginning of the kernel's block.
  ThreadCode(mlir::func::FuncOp func, mlir::OpBuilder &builder);
  void finish(mlir::Block &kernel) { kernel.getOperations().splice(kernel.begin(), prologue.getOperations()); }

  // --- Values of a thread
  /// The type of what a thread holds of a value of `type`.
  static mlir::Type heldType(mlir::Type type);
  /// What a thread holds of a value: a tile's vector, or the scalar.
  mlir::Value held(mlir::Value value) const { return mapping.lookupOrDefault(value); }
  Values elementsOf(mlir::Value tile);
  void set(mlir::Value value, mlir::Value inThread) { mapping.map(value, inThread); }
  void set(mlir::Value tile, llvm::ArrayRef<mlir::Value> elements);
  /// Elements of a vector, or of two one after the other: those of these indices, in this order.
  mlir::Value pick(mlir::Value vector, llvm::ArrayRef<int64_t> indices);
  /// What the lane whose number differs in the bits of `mask` has of a vector, 32 bits at a time.
  mlir::Value exchanged(mlir::Value vector, int64_t mask);

  // --- Where the thread is
  /// The thread's number of this kind, as i32.
  mlir::Value number(simt::Hw part);
  /// The thread's share of its positions in a dimension, as i32; null when it is 0 in all threads.
  mlir::Value shareOf(simt::LayoutAttr layout, unsigned dim);
  /// What a linear map over the bits of the thread's number (those of the lane, then those of the warp) gives, as i32;
  /// null when it is 0 in all threads.
  mlir::Value imageOfThread(const simt::F2Map &map);
  /// True in the one of all threads that hold the same elements that writes them; null when each holds others.
  mlir::Value isOwner(const simt::TileLayout &layout);
  /// Whether a thread's stored value lies within the tile along `dim`; null when it does in all threads.
  mlir::Value isWithin(simt::LayoutAttr layout, int64_t stored, unsigned dim);
  /// What a thread holds of a tile, with `padding` for values that lie past the tile's end along `dim`.
  mlir::Value paddedWith(mlir::TypedAttr padding, mlir::Value vector, simt::LayoutAttr layout, unsigned dim);
  /// The address of the program's shared memory.
  mlir::Value sharedBase();

  // --- Arithmetic
  template <class OpTy, class... Args> mlir::Value make(Args &&...args) {
    return OpTy::create(builder, loc, std::forward<Args>(args)...);
  }
  mlir::Value i32(int64_t value) { return make<mlir::arith::ConstantIntOp>(value, 32); }
  mlir::Value i64(int64_t value) { return make<mlir::arith::ConstantIntOp>(value, 64); }
  mlir::Value add(mlir::Value a, mlir::Value b) { return a && b ? make<mlir::arith::AddIOp>(a, b) : a ? a : b; }
  mlir::Value times(mlir::Value a, int64_t factor);
  /// Both conditions; a null one holds always.
  mlir::Value both(mlir::Value a, mlir::Value b) { return a && b ? make<mlir::arith::AndIOp>(a, b) : a ? a : b; }

  mlir::OpBuilder &builder;
  mlir::Location loc; // of the operation that is being lowered
  mlir::IRMapping mapping;
  llvm::DenseMap<mlir::Value, bool> readOnly; // of the views that somebody has asked for

private:
  mlir::Block prologue;
  mlir::OpBuilder entry;
  const int64_t warps, sharedBytes;
  mlir::Value numbers[2], base;
  llvm::DenseMap<std::pair<mlir::Attribute, unsigned>, mlir::Value> shares;
  std::map<llvm::SmallVector<simt::Vec>, mlir::Value> images; // by the maps' columns
};

// What one thread does for an operation on tiles. Operands have been lowered; results are set.
mlir::LogicalResult distributeAccess(ThreadCode &code, tile::AccessOp op);
void distributeFetch(ThreadCode &code, simt::FetchOp op);
void distributeWrite(ThreadCode &code, simt::WriteOp op);
void distributeRead(ThreadCode &code, simt::ReadOp op);
void distributePick(ThreadCode &code, simt::PickOp op);
void distributeImageWrite(ThreadCode &code, simt::WriteOp op);
void distributeImageRead(ThreadCode &code, simt::ReadOp op);
void distributeConvert(ThreadCode &code, simt::ConvertOp op);
void distributeReserve(ThreadCode &code, simt::ReserveOp op);
void distributePrint(ThreadCode &code, simt::PrintOp op);
void distributeReduce(ThreadCode &code, simt::ReduceOp op);
void distributeScan(ThreadCode &code, simt::ScanOp op);
void distributeCarry(ThreadCode &code, simt::CarryOp op);
void distributeSort(ThreadCode &code, simt::SortOp op);
void distributeLookUp(ThreadCode &code, simt::LookUpOp op);
void distributeCount(ThreadCode &code, simt::CountOp op);
void distributeDot(ThreadCode &code, tile::DotOp op);
void distributeMultiply(ThreadCode &code, simt::MultiplyOp op);
void distributeMultiplyRows(ThreadCode &code, simt::MultiplyRowsOp op);
void distributeWaitMultiply(ThreadCode &code, simt::WaitMultiplyOp op);

/// Splits a product that is under way while the threads compute, and that no other product follows: its first step
/// begins where it did, and the others after the wait for the product before it.
///
///     s = wgmma_rows q, K steps [0, 2, 4, 6]           s = wgmma_rows q, K steps [0, 2, 4, 6]
///     t = wgmma_rows o, V steps [0, 2, 4, 6]           t0 = wgmma_rows o[0..], V steps [0]
///     s' = wgmma_wait 1, s                             s' = wgmma_wait 1, s
///     p = f(s')                         ── becomes ──► t = wgmma_rows o[8..], V steps [2, 4, 6] plus t0
///     t' = wgmma_wait 0, t                             p = f(s')
///                                                      t' = wgmma_wait 0, t
///
/// ptxas moves waits up over arithmetic, so it would compute p after both products. But it expects that wgmma takes
/// time to issue, and computes p meanwhile. The first step keeps the tensor cores busy until the threads continue.
void splitProducts(mlir::Block &block);

/// Whether `to` only renames registers of `from`: no element leaves its thread.
bool isRenaming(const simt::TileLayout &from, const simt::TileLayout &to);

} // namespace kiln::lowering::gpu
