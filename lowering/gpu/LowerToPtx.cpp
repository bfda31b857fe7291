// Emits one thread's operations: by LLVM's intrinsics where they exist, memory accesses as inline PTX.
//
// Accesses are inline PTX because they are predicated, for which LLVM has only branches, and because the vector width
// is then exactly the chosen one. The address is an operand, the displacement is in the text.
//
//     %0 = simt.ld global %address + 16 if %p else %other : vector<2xf32> : i64, vector<2xf32>
//     // becomes
//     %1 = llvm.inline_asm has_side_effects "@$3 ld.global.v2.b32 {$0, $1}, [$2 + 16];", "=r,=r,l,b,0,1"
//            %address, %p, %other0, %other1 : … -> !llvm.struct<(i32, i32)>

#include "dialect/simt/SimtDialect.h"
#include "lowering/Abi.h"
#include "lowering/Passes.h"
#include "lowering/gpu/PtxBuilder.h"
#include "lowering/gpu/Threads.h"

#include "dialect/tile/AccessRules.h"
#include "dialect/tile/TypeRules.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/TypeSwitch.h"

namespace kiln::lowering::gpu {

#define GEN_PASS_DEF_LOWERTOPTX
#include "lowering/gpu/Passes.h.inc"

using namespace mlir;

namespace {

/// The form of a vector: number and size of its words.
struct Words {
  unsigned bits, count;
  explicit Words(VectorType vectorType) {
    const unsigned element = vectorType.getElementTypeBitWidth(), total = element * vectorType.getNumElements();
    bits = std::min(total, std::max(32u, element));
    count = total / bits;
  }
  /// The register type of a word: at least 16 bits.
  Type type(MLIRContext *context) const { return IntegerType::get(context, std::max(bits, 16u)); }
  const char *constraint() const { return bits == 64 ? "l" : bits == 32 ? "r" : "h"; }
  /// `.v4.b32`.
  std::string suffix() const { return (count > 1 ? ".v" + std::to_string(count) : "") + ".b" + std::to_string(bits); }
  /// `{$0, $1}` from operand `first` on.
  std::string operands(unsigned first) const {
    std::string text;
    for (unsigned i = 0; i < count; ++i)
      text += (i ? ", $" : "$") + std::to_string(first + i);
    return count > 1 ? "{" + text + "}" : text;
  }
};

/// The operands of inline PTX, as they are named in its text: results first, then inputs in the order of in().
struct Operands {
  /// `count` results of this constraint.
  explicit Operands(unsigned count = 0, const std::string &constraint = "") {
    for (unsigned i = 0; i < count; ++i)
      constrain("=" + constraint);
  }
  /// Adds an input and returns its name, `$2`.
  std::string in(Value value, const std::string &constraint) {
    values.push_back(value);
    constrain(constraint);
    return "$" + std::to_string(count - 1);
  }
  std::string address(Value value, simt::Space space, int64_t displacement) {
    return place(in(value, space == simt::Space::Global ? "l" : "r"), displacement);
  }
  /// `@$2 `, or nothing without a predicate.
  std::string guard(Value predicate) { return predicate ? "@" + in(predicate, "b") + " " : ""; }
  /// `[$1 + 16]`.
  static std::string place(const std::string &operand, int64_t displacement) {
    return "[" + operand + (displacement ? " + " + std::to_string(displacement) : "") + "]";
  }

  SmallVector<Value> values;
  std::string constraints;

private:
  void constrain(const std::string &constraint) { constraints += (count++ ? "," : "") + constraint; }
  unsigned count = 0;
};

/// Emits memory accesses and the thread's other operations.
class ThreadPtxBuilder : public ProductPtxBuilder {
public:
  using ProductPtxBuilder::ProductPtxBuilder;

  /// Splits a vector into registers.
  SmallVector<Value> split(Value vector, const Words &words) {
    const auto word = builder.getIntegerType(words.bits);
    SmallVector<Value> parts;
    if (words.count == 1)
      parts = {LLVM::BitcastOp::create(builder, loc, word, vector)};
    else
      parts = elements(LLVM::BitcastOp::create(builder, loc, VectorType::get({words.count}, word), vector));
    for (Value &part : parts)
      if (words.bits < 16)
        part = LLVM::ZExtOp::create(builder, loc, words.type(builder.getContext()), part);
    return parts;
  }
  Value join(ArrayRef<Value> parts, const Words &words, VectorType vectorType) {
    const auto word = builder.getIntegerType(words.bits);
    if (words.count == 1) {
      const Value part = words.bits < 16 ? LLVM::TruncOp::create(builder, loc, word, parts[0]).getResult() : parts[0];
      return LLVM::BitcastOp::create(builder, loc, vectorType, part);
    }
    return LLVM::BitcastOp::create(builder, loc, vectorType, vectorOf(parts, word));
  }

  Value load(simt::LoadOp op);
  void store(simt::StoreOp op);
  Value loadMatrix(simt::LoadMatrixOp op);
  void storeMatrix(simt::StoreMatrixOp op);
  void copyAsync(simt::CopyAsyncOp op);
  Value atomic(const std::string &text, Value address, ValueRange values, Value predicate, bool early, Operation *op);
  Value atomicRmw(simt::AtomicRmwOp op);
  Value atomicCas(simt::AtomicCasOp op);
  Value shuffle(StringRef mode, Value value, Value which) {
    return intrinsic(("llvm.nvvm.shfl.sync." + mode + ".i32").str(), builder.getI32Type(),
                     {constant(-1), value, which, constant(31)});
  }
  void report(simt::ReportOp op, Value console);
};

/// `.cta`, `.gpu` or `.sys`.
std::string scopeName(Operation *op) {
  const auto scope = op->getAttrOfType<StringAttr>(tile::scopeName);
  return !scope ? ".gpu" : scope == "block" ? ".cta" : ".sys";
}
/// `.acquire.gpu`, the order and the scope of an atomic; empty for a relaxed one with the scope of the GPU.
std::string orderName(Operation *op) {
  const auto order = op->getAttrOfType<StringAttr>("simt.order");
  if (!order && !op->hasAttr(tile::scopeName))
    return "";
  return "." + (order ? order.getValue().str() : "relaxed") + scopeName(op);
}
/// As above for a load or store, which is strong if it may race.
std::string orderName(Operation *op, bool isStrong) {
  return isStrong && !op->hasAttr("simt.order") ? ".relaxed" + scopeName(op) : orderName(op);
}
/// An ordering access clobbers memory, so that LLVM moves no access across it.
const char *clobbers(Operation *op) { return op->hasAttr("simt.order") ? ",~{memory}" : ""; }

/// The cache modifiers of an access to global memory. Data read once bypass L1 and are evicted first from L2. Data read
/// again are evicted last from both. ptxas folds the policy to a constant.
struct Caching {
  std::string begin, modifiers, policy, end;
  explicit Caching(Operation *op, bool hasFirst = true) {
    const auto hint = op->getAttrOfType<StringAttr>(tile::cacheName);
    if (!hint)
      return;
    const bool isOnce = hint == "stream";
    begin = std::string("{ .reg .b64 policy; createpolicy.fractional.L2::") + (isOnce ? "evict_first" : "evict_last") +
            ".b64 policy, 1.0; ";
    if (hasFirst)
      modifiers = isOnce ? ".L1::no_allocate" : ".L1::evict_last";
    modifiers += ".L2::cache_hint";
    policy = ", policy";
    end = " }";
  }
};

/// The predicate follows the address; the values for a false predicate are tied to the results.
Value ThreadPtxBuilder::load(simt::LoadOp op) {
  const auto vectorType = cast<VectorType>(op.getType());
  const Words words(vectorType);
  Operands operands(words.count, words.constraint());
  const std::string from = operands.address(op.getAddress(), op.getSpace(), op.getDisplacement());
  const std::string guard = operands.guard(op.getPredicate());
  if (op.getPredicate())
    for (const auto [i, word] : llvm::enumerate(split(op.getOther(), words)))
      operands.in(word, std::to_string(i));
  const Caching caching(op);
  const std::string text = caching.begin + guard + "ld" + orderName(op, op.getStrong()) + "." +
                           stringifySpace(op.getSpace()).str() + (op.getReadonly() ? ".nc" : "") + caching.modifiers +
                           words.suffix() + " " + words.operands(0) + ", " + from + caching.policy + ";" + caching.end;
  const SmallVector<Type> results(words.count, words.type(op.getContext()));
  return join(assembly(text, operands.constraints + clobbers(op), results, operands.values, !op.getReadonly()), words,
              vectorType);
}

void ThreadPtxBuilder::store(simt::StoreOp op) {
  const Words words(cast<VectorType>(op.getValue().getType()));
  Operands operands;
  for (const Value word : split(op.getValue(), words))
    operands.in(word, words.constraint());
  const std::string to = operands.address(op.getAddress(), op.getSpace(), op.getDisplacement());
  const std::string guard = operands.guard(op.getPredicate());
  const Caching caching(op);
  const std::string text = caching.begin + guard + "st" + orderName(op, op.getStrong()) + "." +
                           stringifySpace(op.getSpace()).str() + caching.modifiers + words.suffix() + " " + to + ", " +
                           words.operands(0) + caching.policy + ";" + caching.end;
  assembly(text, operands.constraints + clobbers(op), {}, operands.values, true);
}

/// `ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16`.
std::string matrixName(StringRef mnemonic, VectorType words, bool isTransposed) {
  return (mnemonic + ".sync.aligned.m8n8.x" + Twine(words.getNumElements()) + (isTransposed ? ".trans" : "") +
          ".shared.b16")
      .str();
}

/// `{$0, $1}`, a list also for one register.
std::string bracedList(const Words &words, unsigned first) {
  const std::string text = words.operands(first);
  return words.count > 1 ? text : "{" + text + "}";
}

Value ThreadPtxBuilder::loadMatrix(simt::LoadMatrixOp op) {
  const auto vectorType = cast<VectorType>(op.getType());
  const Words words(vectorType);
  Operands operands(words.count, "r");
  const std::string from = operands.address(op.getAddress(), simt::Space::Shared, op.getDisplacement());
  const std::string text =
      matrixName("ldmatrix", vectorType, op.getTransposed()) + " " + bracedList(words, 0) + ", " + from + ";";
  const SmallVector<Type> results(words.count, words.type(op.getContext()));
  return join(assembly(text, operands.constraints, results, operands.values, true), words, vectorType);
}

void ThreadPtxBuilder::storeMatrix(simt::StoreMatrixOp op) {
  const auto vectorType = cast<VectorType>(op.getValue().getType());
  const Words words(vectorType);
  Operands operands;
  for (const Value word : split(op.getValue(), words))
    operands.in(word, "r");
  const std::string to = operands.address(op.getAddress(), simt::Space::Shared, op.getDisplacement());
  const std::string text = operands.guard(op.getPredicate()) + matrixName("stmatrix", vectorType, op.getTransposed()) +
                           " " + to + ", " + bracedList(words, 0) + ";";
  assembly(text, operands.constraints, {}, operands.values, true);
}

/// 16-byte copies bypass L1, shorter ones cannot. A size selected directly before its copy becomes the instruction's
/// predicate.
void ThreadPtxBuilder::copyAsync(simt::CopyAsyncOp op) {
  Operands operands;
  const std::string to = operands.address(op.getTarget(), simt::Space::Shared, op.getToDisplacement());
  const std::string from = operands.address(op.getSource(), simt::Space::Global, op.getFromDisplacement());
  const std::string bytes = std::to_string(op.getBytes());
  const std::string size = op.getSize() ? operands.in(op.getSize(), "r") : bytes;
  const std::string choice =
      op.getInside() ? "selp.b32 size, " + size + ", 0, " + operands.in(op.getInside(), "b") + "; " : "";
  const Caching caching(op, /*hasFirst=*/false);
  const std::string copy = operands.guard(op.getPredicate()) + "cp.async." + (op.getBytes() == 16 ? "cg" : "ca") +
                           ".shared.global" + caching.modifiers + " " + to + ", " + from + ", " + bytes +
                           (op.getInside() ? ", size"
                            : op.getSize() ? ", " + size
                                           : "") +
                           caching.policy + ";";
  const std::string sized = op.getInside() ? "{ .reg .b32 size; " + choice + copy + " }" : copy;
  assembly(caching.begin + sized + caching.end, operands.constraints + ",~{memory}", {}, operands.values, true);
}

/// `.u32`, `.f64`, …, the type suffix of an instruction.
static std::string numberSuffix(Type type, const char *integers) {
  return (type.isInteger() ? integers : "f") + std::to_string(type.getIntOrFloatBitWidth());
}

/// The operation of an atomic instruction: `add.u32`, `exch.b64`; empty if there is none for these elements.
static std::string atomicName(tile::AtomicKind kind, Type type, bool isUnsigned) {
  const char *const integers = isUnsigned ? "u" : "s";
  const unsigned bits = type.getIntOrFloatBitWidth();
  const std::string untyped = ".b" + std::to_string(bits);
  switch (kind) {
  case tile::AtomicKind::Add:
    return type.isF16() ? "add.noftz.f16" : bits == 16 ? "" : "add." + numberSuffix(type, "u");
  case tile::AtomicKind::Min:
    return type.isInteger() ? "min." + numberSuffix(type, integers) : "";
  case tile::AtomicKind::Max:
    return type.isInteger() ? "max." + numberSuffix(type, integers) : "";
  case tile::AtomicKind::And:
    return "and" + untyped;
  case tile::AtomicKind::Or:
    return "or" + untyped;
  case tile::AtomicKind::Xor:
    return "xor" + untyped;
  case tile::AtomicKind::Exchange:
    break;
  }
  return bits == 16 ? "" : "exch" + untyped;
}

/// The register type of an atomic's element: f16 and bf16 as bits.
static Type atomicRegister(Type type) {
  return type.getIntOrFloatBitWidth() == 16 ? Type(IntegerType::get(type.getContext(), 16)) : type;
}
static const char *atomicConstraint(Type type) {
  const unsigned bits = type.getIntOrFloatBitWidth();
  if (bits == 16)
    return "h";
  return type.isInteger() ? (bits == 64 ? "l" : "r") : (bits == 64 ? "d" : "f");
}

/// Emits `text` with the address (operand 1), values (from 2 on) and then a predicate. Operand 0 is the old value, 0 if
/// the predicate is false. `early`: operand 0 is written before the last of the others is read.
Value ThreadPtxBuilder::atomic(const std::string &text, Value address, ValueRange values, Value predicate, bool early,
                               Operation *op) {
  const Type type = values[0].getType(), held = atomicRegister(type);
  const char *const constraint = atomicConstraint(type);
  const auto cast = [&](Value value, Type to) {
    return value.getType() == to ? value : LLVM::BitcastOp::create(builder, loc, to, value).getResult();
  };
  Operands operands(1, std::string(early ? "&" : "") + constraint);
  operands.in(address, "l");
  for (Value value : values)
    operands.in(cast(value, held), constraint);
  if (predicate) {
    operands.in(predicate, "b");
    operands.in(LLVM::ConstantOp::create(builder, loc, held, builder.getZeroAttr(held)), "0");
  }
  return cast(assembly(text, operands.constraints + clobbers(op), held, operands.values, true)[0], type);
}

/// A compare-and-exchange loop for atomics without an instruction: minimum and maximum of floats, sums of bf16, and
/// 16-bit exchanges. The successful exchange has the memory order `name`; the reads before it are relaxed, in `scope`.
static std::string atomicLoop(tile::AtomicKind kind, Type type, const std::string &name, const std::string &scope,
                              const std::string &at, bool isPredicated) {
  const std::string bits = std::to_string(type.getIntOrFloatBitWidth()), word = ".b" + bits;
  std::string registers, begin, change = "mov.b16 %now, $2; ";
  if (kind == tile::AtomicKind::Add) {
    registers = ".reg .b16 %none; .reg .f32 %x, %y; ";
    begin = "mov.b16 %none, 0; mov.b32 %y, {%none, $2}; ";
    change = "mov.b32 %x, {%none, %was}; add.rn.f32 %x, %x, %y; cvt.rn.bf16.f32 %now, %x; ";
  } else if (kind != tile::AtomicKind::Exchange) {
    change = std::string(kind == tile::AtomicKind::Min ? "min" : "max") + ".f" + bits + " %now, %was, $2; ";
  }
  return "{ .reg .pred %go; .reg " + word + " %was, %now; " + registers + (isPredicated ? "@!$3 bra done; " : "") +
         begin + "ld.relaxed" + scope + ".global" + word + " $0, " + at + "; again: mov" + word + " %was, $0; " +
         change + "atom" + name + ".global.cas" + word + " $0, " + at + ", %was, %now; setp.ne" + word +
         " %go, $0, %was; @%go bra again; done: }";
}

/// Emits `red` instead of `atom` if the old value is unused and the operation does not acquire: the read of `red` does
/// not acquire.
Value ThreadPtxBuilder::atomicRmw(simt::AtomicRmwOp op) {
  const Type type = op.getType();
  const std::string name = atomicName(op.getKind(), type, tile::isUnsigned(op)), order = orderName(op);
  const bool acquires = op->hasAttr("simt.fenced") || StringRef(order).starts_with(".ac"); // acquire, acq_rel
  if (name.empty())
    return atomic(atomicLoop(op.getKind(), type, order, scopeName(op), Operands::place("$1", op.getDisplacement()),
                             static_cast<bool>(op.getPredicate())),
                  op.getAddress(), op.getValue(), op.getPredicate(), /*early=*/true, op);
  if (!op.use_empty() || acquires || op.getKind() == tile::AtomicKind::Exchange)
    return atomic((op.getPredicate() ? "@$3 atom" : "atom") + order + ".global." + name + " $0, " +
                      Operands::place("$1", op.getDisplacement()) + ", $2;",
                  op.getAddress(), op.getValue(), op.getPredicate(), /*early=*/false, op);
  Value value = op.getValue();
  if (type.isF16())
    value = LLVM::BitcastOp::create(builder, loc, atomicRegister(type), value);
  Operands operands;
  const std::string at = operands.address(op.getAddress(), simt::Space::Global, op.getDisplacement());
  const std::string added = operands.in(value, atomicConstraint(type));
  const std::string text =
      operands.guard(op.getPredicate()) + "red" + order + ".global." + name + " " + at + ", " + added + ";";
  assembly(text, operands.constraints + clobbers(op), {}, operands.values, true);
  return {};
}

Value ThreadPtxBuilder::atomicCas(simt::AtomicCasOp op) {
  const std::string text = (op.getPredicate() ? "@$4 atom" : "atom") + orderName(op) + ".global.cas.b" +
                           std::to_string(op.getType().getIntOrFloatBitWidth()) + " $0, " +
                           Operands::place("$1", op.getDisplacement()) + ", $2, $3;";
  return atomic(text, op.getAddress(), {op.getExpected(), op.getDesired()}, op.getPredicate(), /*early=*/false, op);
}

/// Under a lock, because failing programs are rare and the parts of a report must not mix. The failure of the lowest
/// program is kept, and of several failures of one program the first.
void ThreadPtxBuilder::report(simt::ReportOp op, Value console) {
  const auto at = [](size_t offset) { return "[$0 + " + std::to_string(offset) + "]"; };
  const std::string lock = at(offsetof(abi::GpuConsole, lock));
  const std::string text = "{ .reg .pred %told, %other; .reg .b32 %held; .reg .b64 %launch, %failed, %lowest; "
                           "mov.u32 %held, %tid.x; setp.eq.and.u32 %told, %held, 0, $3; @!%told bra done; "
                           "wait: atom.acquire.gpu.global.cas.b32 %held, " +
                           lock + ", 0, 1; setp.ne.u32 %other, %held, 0; @%other bra wait; " +
                           "ld.global.b64 %launch, " + at(offsetof(abi::GpuConsole, launch)) + "; " +
                           "ld.global.b64 %failed, " + at(offsetof(abi::GpuConsole, failedLaunch)) + "; " +
                           "ld.global.b64 %lowest, " + at(offsetof(abi::GpuConsole, program)) + "; " +
                           "setp.eq.u64 %told, %failed, %launch; setp.lt.and.u64 %told, $2, %lowest, %told; " +
                           "setp.eq.or.u64 %told, %failed, 0, %told; @!%told bra free; " + "st.global.b64 " +
                           at(offsetof(abi::GpuConsole, failedLaunch)) + ", %launch; " + "st.global.b64 " +
                           at(offsetof(abi::GpuConsole, program)) + ", $2; " + "st.global.b64 " +
                           at(offsetof(abi::GpuConsole, element)) + ", $1; " + "st.global.b32 " +
                           at(offsetof(abi::GpuConsole, message)) + ", $4; " + "st.global.b32 " +
                           at(offsetof(abi::GpuConsole, where)) + ", $5; " +
                           "free: atom.release.gpu.global.exch.b32 %held, " + lock + ", 0; done: }";
  assembly(text, "l,l,l,b,n,n,~{memory}", {},
           {console, op.getElement(), op.getProgram(), op.getCondition(), constant(op.getMessage()),
            constant(op.getWhere())},
           true);
}

struct LowerToPtx : impl::LowerToPtxBase<LowerToPtx> {
  using LowerToPtxBase::LowerToPtxBase;

  void runOnOperation() override {
    const auto isOfGroups = [](Operation *op) {
      return isa<simt::WgmmaOp, simt::WgmmaRowsOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
    };
    if (getOperation().walk(isOfGroups).wasInterrupted())
      sharedAlignment = 1024;
    getOperation().walk([&](Operation *op) {
      if (op->getDialect() && op->getDialect()->getNamespace() == "simt")
        lower(op);
    });
  }

  void lower(Operation *op) {
    ThreadPtxBuilder ptx(op);
    Value result;
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](simt::ThreadOp) {
          result = ptx.intrinsic("llvm.nvvm.read.ptx.sreg.tid.x", IntegerType::get(&getContext(), 32), {});
        })
        .Case([&](simt::AddressOp address) {
          // ptxas combines the two into one instruction. It splits a `mad.wide` in a loop into two, because a part is
          // loop-invariant.
          result = ptx.assembly("{ .reg .b64 far; mul.wide.u32 far, $2, " + std::to_string(address.getCount()) +
                                    "; add.s64 $0, $1, far; }",
                                "=l,l,r", address.getType(), {address.getBase(), address.getStride()}, false)[0];
        })
        .Case([&](simt::SharedBaseOp base) { result = sharedBase(base, ptx); })
        .Case([&](simt::LoadOp load) { result = ptx.load(load); })
        .Case([&](simt::StoreOp store) { ptx.store(store); })
        .Case([&](simt::LoadMatrixOp load) { result = ptx.loadMatrix(load); })
        .Case([&](simt::StoreMatrixOp store) { ptx.storeMatrix(store); })
        .Case([&](simt::CopyAsyncOp copy) { ptx.copyAsync(copy); })
        .Case([&](simt::CommitCopiesOp) { ptx.assembly("cp.async.commit_group;", "~{memory}", {}, {}, true); })
        .Case([&](simt::WaitCopiesOp wait) {
          ptx.assembly("cp.async.wait_group " + std::to_string(wait.getPending()) + ";" +
                           (wait.getShown() ? " fence.proxy.async.shared::cta;" : ""),
                       "~{memory}", {}, {}, true);
        })
        .Case([&](simt::AtomicRmwOp change) { result = ptx.atomicRmw(change); })
        .Case([&](simt::AtomicCasOp swap) { result = ptx.atomicCas(swap); })
        .Case([&](simt::IncrementOp add) {
          ptx.assembly("@$1 red.shared.add.u32 [$0], 1;", "r,b,~{memory}", {}, {add.getAddress(), add.getPredicate()},
                       true);
        })
        .Case([&](simt::ConsoleOp) { result = console(ptx, op->getLoc()); })
        .Case([&](simt::ReportOp report) { ptx.report(report, console(ptx, op->getLoc())); })
        .Case([&](simt::FenceOp fence) {
          ptx.assembly("fence.acq_rel" + scopeName(fence) + ";", "~{memory}", {}, {}, true);
        })
        .Case([&](simt::BarrierOp) { ptx.intrinsic("llvm.nvvm.barrier.cta.sync.aligned.all", {}, ptx.constant(0)); })
        .Case([&](simt::ShuffleOp shuffle) {
          result = ptx.shuffle("bfly", shuffle.getValue(), ptx.constant(shuffle.getMask()));
        })
        .Case([&](simt::ShuffleFromOp shuffle) { result = ptx.shuffle("idx", shuffle.getValue(), shuffle.getLane()); })
        .Case([&](simt::WgmmaFenceOp fence) { result = ptx.pass("wgmma.fence.sync.aligned;", fence.getAcc()); })
        .Case([&](simt::WgmmaOp product) { result = ptx.wgmma(product); })
        .Case([&](simt::WgmmaRowsOp product) { result = ptx.wgmmaRows(product); })
        .Case([&](simt::WgmmaCommitOp) { ptx.assembly("wgmma.commit_group.sync.aligned;", "~{memory}", {}, {}, true); })
        .Case([&](simt::WgmmaWaitOp wait) {
          result = ptx.pass("wgmma.wait_group.sync.aligned " + std::to_string(wait.getPending()) + ";", wait.getAcc());
        })
        .Case([&](simt::PinOp pin) { result = ptx.pass("", pin.getValue()); })
        .Case([&](simt::MmaOp mma) { result = ptx.mma(mma); })
        .Default([&](Operation *other) {
          other->emitOpError("expected an operation of one thread");
          signalPassFailure();
        });
    if (result)
      op->getResult(0).replaceAllUsesWith(result);
    op->erase();
  }

  /// The address of the one variable for all shared memory. It is declared with its size up to PTX's limit, and without
  /// a size beyond that.
  Value sharedBase(simt::SharedBaseOp op, PtxBuilder &ptx) {
    const bool isStatic = op.getBytes() <= maxStaticShared;
    if (!shared) {
      auto builder = OpBuilder::atBlockBegin(getOperation().getBody());
      const auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), isStatic ? op.getBytes() : 0);
      shared = LLVM::GlobalOp::create(builder, op.getLoc(), type, /*isConstant=*/false,
                                      isStatic ? LLVM::Linkage::Internal : LLVM::Linkage::External, "kiln_shared",
                                      Attribute(), sharedAlignment, /*addrSpace=*/3);
      if (isStatic) {
        builder.createBlock(&shared.getInitializerRegion());
        LLVM::ReturnOp::create(builder, op.getLoc(), LLVM::PoisonOp::create(builder, op.getLoc(), type).getResult());
      }
    }
    OpBuilder &at = ptx.builder;
    const Value pointer = LLVM::AddressOfOp::create(at, op.getLoc(), shared);
    return LLVM::PtrToIntOp::create(at, op.getLoc(), at.getI32Type(), pointer);
  }

  Value console(PtxBuilder &ptx, Location loc) {
    if (!consoleVariable) {
      auto builder = OpBuilder::atBlockBegin(getOperation().getBody());
      const auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), sizeof(abi::GpuConsole));
      consoleVariable = LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/false, LLVM::Linkage::External,
                                               abi::consoleVariable, Attribute(), /*alignment=*/8, /*addrSpace=*/1);
      builder.createBlock(&consoleVariable.getInitializerRegion());
      LLVM::ReturnOp::create(builder, loc, LLVM::ZeroOp::create(builder, loc, type).getResult());
    }
    OpBuilder &at = ptx.builder;
    const Value pointer = LLVM::AddressOfOp::create(at, loc, consoleVariable);
    return LLVM::PtrToIntOp::create(at, loc, at.getI64Type(), pointer);
  }

  uint64_t sharedAlignment = 128;
  LLVM::GlobalOp shared, consoleVariable;
};

} // namespace

} // namespace kiln::lowering::gpu
