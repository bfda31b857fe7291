// The state of `gpu-distribute` while it emits the operations of one thread.
//
// A tile with a layout becomes a vector of the values that a thread holds, in the order of their stored indices
// (TileLayout.h). The position of a value is the thread's share, which is equal for all values of a layout, plus a
// constant.

#pragma once

#include "dialect/simt/SimtDialect.h"
#include "dialect/tile/TileDialect.h"
#include "lowering/tile/Emit.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

#include <map>

namespace kiln::lowering::gpu {

using simt::Hw;
using simt::LayoutAttr;
using simt::TileLayout;
using Values = llvm::SmallVector<mlir::Value>;
using Indices = llvm::SmallVector<int64_t>;

class ThreadCode {
public:
  /// Operations are emitted at `builder`. Values of the whole kernel are collected separately; finish() moves them to
  /// the start of the kernel's block.
  ThreadCode(mlir::func::FuncOp func, mlir::OpBuilder &builder);
  void finish(mlir::Block &kernel) { kernel.getOperations().splice(kernel.begin(), prologue.getOperations()); }

  // --- Values of a thread
  /// The type of a thread's part of a value of `type`.
  static mlir::Type heldType(mlir::Type type);
  /// A thread's part of a value: the vector of a tile, or the scalar itself.
  mlir::Value held(mlir::Value value) const { return mapping.lookupOrDefault(value); }
  Values elementsOf(mlir::Value tile);
  void set(mlir::Value value, mlir::Value inThread) { mapping.map(value, inThread); }
  void set(mlir::Value tile, llvm::ArrayRef<mlir::Value> elements);
  /// The elements of a vector at these indices, in this order.
  mlir::Value pick(mlir::Value vector, llvm::ArrayRef<int64_t> indices);
  /// The vector of the lane whose number differs in the bits of `mask` (shfl.bfly), moved 32 bits at a time.
  mlir::Value exchanged(mlir::Value vector, int64_t mask);

  // --- The position of the thread
  /// The thread's lane or warp number, as i32.
  mlir::Value number(simt::Hw part);
  /// The thread's share of its positions in a dimension, as i32; null if it is 0 in all threads.
  mlir::Value threadOffset(simt::LayoutAttr layout, unsigned dim);
  /// A linear map applied to the bits of the thread's number (the lane's, then the warp's), as i32. Null if the result
  /// is 0 in all threads.
  mlir::Value imageOfThread(const simt::F2Map &map);
  /// Whether this thread writes its elements: true in exactly one of the threads that hold copies. Null if there are no
  /// copies.
  mlir::Value isOwner(const simt::TileLayout &layout);
  /// Whether a thread's stored value is inside the tile along `dim`; null if it is in all threads.
  mlir::Value isWithin(simt::LayoutAttr layout, int64_t stored, unsigned dim);
  /// A thread's part of a tile, with `padding` in place of values past the tile's end along `dim`.
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
  /// The conjunction of two conditions. Null means true.
  mlir::Value both(mlir::Value a, mlir::Value b) { return a && b ? make<mlir::arith::AndIOp>(a, b) : a ? a : b; }

  mlir::OpBuilder &builder;
  mlir::Location loc; // of the operation that is being lowered
  mlir::IRMapping mapping;
  llvm::DenseMap<mlir::Value, bool> readOnly; // cached answers, by view

private:
  mlir::Block prologue;
  mlir::OpBuilder entry;
  const int64_t warps, sharedBytes;
  mlir::Value numbers[2], base;
  llvm::DenseMap<std::pair<mlir::Attribute, unsigned>, mlir::Value> shares;
  std::map<llvm::SmallVector<simt::Vec>, mlir::Value> images; // by the maps' columns
};

// Each function emits one thread's part of an operation on tiles. Operands are already lowered; the function sets
// results.
mlir::LogicalResult distribute(ThreadCode &code, tile::AccessOp op);
void distribute(ThreadCode &code, simt::FetchOp op);
void distribute(ThreadCode &code, simt::WriteOp op);
void distribute(ThreadCode &code, simt::ReadOp op);
void distribute(ThreadCode &code, simt::PickOp op);
void distribute(ThreadCode &code, simt::ConvertOp op);
void distribute(ThreadCode &code, simt::ReserveOp op);
void distribute(ThreadCode &code, simt::PrintOp op);
void distribute(ThreadCode &code, simt::ReduceOp op);
void distribute(ThreadCode &code, simt::ScanOp op);
void distribute(ThreadCode &code, simt::CarryOp op);
void distribute(ThreadCode &code, simt::SortOp op);
void distribute(ThreadCode &code, simt::LookUpOp op);
void distribute(ThreadCode &code, simt::CountOp op);
void distribute(ThreadCode &code, tile::DotOp op);
void distribute(ThreadCode &code, simt::MultiplyOp op);
void distribute(ThreadCode &code, simt::MultiplyRowsOp op);
void distribute(ThreadCode &code, simt::WaitMultiplyOp op);

/// Splits an asynchronous product that is in flight while the threads compute, and that no other product follows. Its
/// first step is issued at the old place, and its other steps after the wait for the product before it.
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

// --- Addresses in shared memory --------------------------------------------------------------------------------------

/// Addresses of a thread's elements. The byte of an element is the exclusive or of a part that depends on the thread
/// and a part that depends on the register. Bits that depend only on the register become displacements of instructions.
/// For the other bits, there is one address for each of their few values, such as the pieces of a row of 128 bytes.
class SharedAddresses {
public:
  /// `bytes` maps the bits of registers, lanes and warps to the offset in bytes. The tile begins at byte `at` of the
  /// buffer; null: 0.
  SharedAddresses(ThreadCode &code, const simt::F2Map &bytes, size_t regBits, mlir::Value buffer, mlir::Value at);

  struct Place {
    mlir::Value address;
    int64_t displacement;
  };
  /// The place of a register; `bytesOfRegisters` is its image under the map.
  Place of(simt::Vec bytesOfRegisters);

private:
  ThreadCode &code;
  mlir::Value begin, ofThread;
  simt::Vec movedByThreads = 0;
  std::map<simt::Vec, mlir::Value> addresses;
};

} // namespace kiln::lowering::gpu
