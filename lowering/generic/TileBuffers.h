// The storage of the reference backend: every tile has a dense row-major buffer of its own; loops over tiles are
// written here once.
//
// bool tiles are stored as i8, 0 or 1; `read` and `write` convert, so that everything else sees the tile's element
// type.

#pragma once

#include "dialect/tile/TileDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

namespace kiln::lowering::generic {

class TileBuffers {
public:
  explicit TileBuffers(mlir::MLIRContext *context) : builder(context) {}

  /// A new buffer for a tile of `type` at the insertion point.
  mlir::Value allocate(mlir::Location loc, mlir::Type type);
  /// Allocates the buffer of `tile` and remembers it.
  mlir::Value create(mlir::Value tile);
  void bind(mlir::Value tile, mlir::Value buffer) { buffers[tile] = buffer; }
  mlir::Value of(mlir::Value tile) const { return buffers.lookup(tile); }

  /// An element of a buffer as a value of the tile's element type.
  mlir::Value read(mlir::Location loc, mlir::Type element, mlir::Value buffer, mlir::ValueRange indices);
  void write(mlir::Location loc, mlir::Value value, mlir::Value buffer, mlir::ValueRange indices);
  /// Conversion between an element and its stored form.
  mlir::Value fromStored(mlir::Location loc, mlir::Type element, mlir::Value stored);
  mlir::Value toStored(mlir::Location loc, mlir::Type stored, mlir::Value value);

  void copy(mlir::Location loc, mlir::Value from, mlir::Value to);
  /// The buffer seen as a vector of its elements in row-major order.
  mlir::Value flat(mlir::Location loc, mlir::Value buffer);

  /// A nest of loops over `shape`; `body` gets one index for each dimension.
  void loops(mlir::Location loc, llvm::ArrayRef<int64_t> shape, llvm::function_ref<void(mlir::ValueRange)> body);
  /// `linalg.generic` over `shape`: computes an element of each output from an element of each input.
  void generic(mlir::Location loc, llvm::ArrayRef<int64_t> shape, mlir::ValueRange inputs,
               llvm::ArrayRef<mlir::AffineMap> inputMaps, mlir::ValueRange outputs,
               llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange)> body);

  mlir::Value index(mlir::Location loc, int64_t value);
  mlir::Value i64(mlir::Location loc, int64_t value);

  mlir::OpBuilder builder;

private:
  llvm::DenseMap<mlir::Value, mlir::Value> buffers;
};

/// Each gives one operation its loops; all read operands' buffers and create the result's. In LowerMemory.cpp …
llvm::LogicalResult lowerAccess(TileBuffers &tiles, tile::AccessOp op); // failure: one that it does not know
void lowerCheck(TileBuffers &tiles, tile::CheckOp op);
void lowerPrint(TileBuffers &tiles, tile::PrintOp op);
/// … in LowerSorts.cpp: whether it was one of those of dialect/tile/SortOps.td …
bool lowerSorts(TileBuffers &tiles, mlir::Operation *op);
/// … and in LowerReductions.cpp.
void lowerReduce(TileBuffers &tiles, tile::ReduceOp op);
void lowerScan(TileBuffers &tiles, tile::ScanOp op);
void lowerDot(TileBuffers &tiles, tile::DotOp op);

} // namespace kiln::lowering::generic
