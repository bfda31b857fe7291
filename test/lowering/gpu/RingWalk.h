// An interpreter for the uniform part of a kernel on a GPU: it records the operands of each product, and the tiles that
// asynchronous copies store.
//
// Scalars are numbers, and loops run. A tile is a name. A load's name has its view and position. An operation that
// moves elements (a transposition, a copy through shared memory) has its own name with its operand's. Other operations
// have none. Shared memory holds names, by bytes.

#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kiln::test {

/// The findings of a walk.
struct Walked {
  std::vector<std::pair<uint64_t, uint64_t>> products; // the operands' names, 0 where there is none
  std::vector<std::string> faults;                     // of rings
  int64_t copies = 0;                                  // tiles that asynchronous copies have brought
};

class RingWalk {
public:
  /// Extent `axis` of argument `view`.
  using Extent = std::function<int64_t(unsigned view, int64_t axis)>;
  explicit RingWalk(Extent extent) : extent(std::move(extent)) {}

  /// Walks the module's only function, as program 0.
  Walked run(mlir::ModuleOp module);

private:
  struct Known {
    std::optional<int64_t> number;
    uint64_t name = 0;
    int64_t product = 0; // of an accumulator: the number of the product that makes it, from 1 on
  };
  /// Bytes of shared memory.
  struct Bytes {
    int64_t begin = 0, end = 0;
    bool meets(const Bytes &other) const { return begin < other.end && other.begin < end; }
    bool operator==(const Bytes &) const = default;
  };
  /// A place in shared memory, and its content.
  struct Place {
    Bytes bytes;
    uint64_t name = 0;
    bool isCopy = false;
    bool isZeros = false; // of an iteration that is not there
    bool wasRead = false;
    bool isShown = false;               // to products that read it themselves
    std::optional<int64_t> landed = {}; // how many barriers there had been when its group was waited for
  };
  void runBlock(mlir::Block &block);
  void runOp(mlir::Operation &op);
  void runLoop(mlir::Operation &op);
  void runOther(mlir::Operation &op);
  void fetch(mlir::Operation &op);
  void read(mlir::Operation &op);
  uint64_t readSlot(Bytes bytes, bool byProduct);
  void multiply(mlir::Operation &op);
  void multiplyRows(mlir::Operation &op);
  void begin(mlir::Operation &product, std::vector<Bytes> reads);
  void waitForProducts(mlir::Operation &op);
  void checkOperands(mlir::Operation &op);
  void overwrite(const Place &place);
  void wait(int64_t pending, bool shown);
  void fault(const std::string &text);
  Bytes bytesOf(mlir::Value buffer, mlir::Value at, mlir::Attribute sharedLayout) const;
  int64_t number(mlir::Value value) const;
  uint64_t nameOf(mlir::Operation &op) const;
  uint64_t transposed(uint64_t name, mlir::MLIRContext *context) const;

  const Extent extent;
  Walked walked;
  llvm::DenseMap<mlir::Value, Known> values;
  std::vector<Place> places;
  std::vector<std::vector<Bytes>> groups;   // that are not waited for, the oldest first
  std::vector<Bytes> open;                  // copies of no group yet
  std::vector<Bytes> ringReads;             // since the last barrier
  std::vector<std::vector<Bytes>> products; // that nobody has waited for, the oldest first: what they read
  int64_t barriers = 0, begun = 0;          // products that have begun
};

} // namespace kiln::test
