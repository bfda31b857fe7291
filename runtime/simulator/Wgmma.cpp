// wgmma.mma_async, fence, commit_group and wait_group; setmaxnreg.
//
// Each of the four warps computes its own 16 rows when it reaches the instruction, with the B read by the first of
// them. D's words follow the PTX ISA: with j = column / 8, word 4 j + 2 h + c of a lane is row lane / 4 + 8 h, column
// 8 j + 2 (lane % 4) + c. Sums run over K in order, each step one fused multiply-add; an f16 D is rounded at the end.

#include "runtime/simulator/Warpgroup.h"

#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/Cta.h"
#include "runtime/simulator/Fragments.h"
#include "runtime/simulator/Metrics.h"
#include "runtime/simulator/Numbers.h"
#include "runtime/simulator/Shadow.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <memory>
#include <utility>

namespace kiln::simulator {

using ptx::Operand;
using ptx::Type;

// --- Rules ---------------------------------------------------------------------------------------------------------

static uint64_t placeOf(const Warp &warp, uint32_t slot) { return warp.path.frame + uint64_t{slot}; }

void runWatched(Warp &warp, const Step &step) {
  const Code::Watched &watched = warp.watched(step);
  for (const Code::Touch &touch : watched.touches)
    if (const std::string fault = warp.wgmmaRules.touch(placeOf(warp, touch.slot), touch.isResult); !fault.empty()) {
      warp.report(Check::wgmma, step, std::countr_zero(warp.exec), fault);
      break;
    }
  watched.run(warp, step);
}

GroupInstruction &agree(Warp &warp, const Step &step, uint64_t first, uint64_t second) {
  expectWholeWarp(warp, step);
  const int threads = warp.cta.grid.threads(), group = warp.index / warpsOfGroup;
  if (threads < (group + 1) * warpsOfGroup * lanesOfWarp)
    warp.report(Check::wgmma, step, 0,
                fmt::format("expected a warpgroup of four warps, but the block has {} threads", threads));
  bool isFirst = false;
  GroupInstruction &common = warp.cta.warpgroupOf(warp).next(warp.index % warpsOfGroup, isFirst);
  if (isFirst) {
    common.line = warp.place(step).line;
    common.first = first;
    common.second = second;
  } else if (common.line != warp.place(step).line) {
    warp.report(Check::wgmma, step, 0,
                fmt::format("another warp of the warpgroup executes the one at line {} instead", common.line));
  } else if (common.first != first || common.second != second) {
    warp.report(
        Check::wgmma, step, 0,
        fmt::format("expected the operands {:#x} and {:#x} that another warp of the warpgroup has, but got {:#x} "
                    "and {:#x}",
                    common.first, common.second, first, second));
  }
  return common;
}

// --- The product ---------------------------------------------------------------------------------------------------

namespace {
/// A decoded wgmma.mma_async. The list of its step: these words, A's registers if it has them, then D's.
struct Product {
  uint32_t typeOfD, typeOfA, typeOfB, N, K, aInRegisters, negateA, negateB, transA, transB, saturate;
  /// Slots of A's descriptor (or none), of B's, and of the predicate scale-d.
  uint32_t descriptorA, descriptorB, scale, scaleNegated;

  static constexpr size_t words = 15;
  uint32_t registersOfA() const { return aInRegisters ? 4 : 0; }
  uint32_t registersOfD() const { return typeOfD == static_cast<uint32_t>(Type::f16) ? N / 4 : N / 2; }
  MatrixPart partOfA(int warp) const {
    return {.type = static_cast<Type>(typeOfA),
            .first = 16 * (warp % warpsOfGroup),
            .rows = 16,
            .K = static_cast<int>(K),
            .transposed = transA != 0,
            .negated = negateA != 0};
  }
  MatrixPart partOfB() const {
    return {.type = static_cast<Type>(typeOfB),
            .rows = static_cast<int>(N),
            .K = static_cast<int>(K),
            .transposed = transB != 0,
            .negated = negateB != 0};
  }
};
static_assert(sizeof(Product) == Product::words * sizeof(uint32_t));

using Floats = float __attribute__((vector_size(32)));
using Integers = int32_t __attribute__((vector_size(32)));
template <class T> using Vector = std::conditional_t<std::is_same_v<T, float>, Floats, Integers>;
} // namespace

template <class T> static Vector<T> multiplyAdd(Vector<T> a, Vector<T> b, Vector<T> c) {
  if constexpr (std::is_same_v<T, float>)
    return _mm256_fmadd_ps(a, b, c);
  else
    return c + a * b;
}

/// A vector of four elements in both halves.
template <class T> static Vector<T> fourTwice(const T *elements) {
  return reinterpret_cast<Vector<T>>(_mm256_broadcast_ps(reinterpret_cast<const __m128 *>(elements)));
}

/// Adds the products with every second one of 8 columns (`columns`: [k][4]) to the sums of 2 × 32 lanes.
template <class T>
static void accumulate(const RowOperand<T> &rows, const T *columns, int K, const std::array<T *, 2> &sums) {
  Vector<T> parts[2][4];
  for (size_t half = 0; half < 2; ++half)
    std::memcpy(parts[half], sums[half], sizeof(parts[half]));
  for (int k = 0; k < K; ++k) {
    const Vector<T> b = fourTwice<T>(columns + 4 * k);
    for (int half = 0; half < 2; ++half)
      for (int quarter = 0; quarter < 4; ++quarter)
        parts[half][quarter] = multiplyAdd<T>(*reinterpret_cast<const Vector<T> *>(&rows.values[half][k][8 * quarter]),
                                              b, parts[half][quarter]);
  }
  for (size_t half = 0; half < 2; ++half)
    std::memcpy(sums[half], parts[half], sizeof(parts[half]));
}

/// D in f32.
static void multiplySingles(Warp &warp, const uint32_t *slots, const Product &product, const RowOperand<float> &rows,
                            const float *columns, bool keeps) {
  for (uint32_t pair = 0; pair < product.N / 4; ++pair, columns += 4 * product.K) {
    const uint32_t first = pair / 2 * 4 + pair % 2;
    const std::array<float *, 2> d = {warp.reg<float>(slots[first]), warp.reg<float>(slots[first + 2])};
    for (float *half : d)
      if (!keeps)
        std::fill_n(half, lanesOfWarp, 0.0f);
    accumulate(rows, columns, static_cast<int>(product.K), d);
  }
}

/// D in f16, two columns a word.
static void multiplyHalves(Warp &warp, const uint32_t *slots, const Product &product, const RowOperand<float> &rows,
                           const float *columns, bool keeps) {
  for (uint32_t core = 0; core < product.N / 8; ++core) {
    alignas(32) float sums[2][2][32] = {}; // column, half
    for (uint32_t half = 0; half < 2 && keeps; ++half)
      for (uint32_t lane = 0; lane < lanesOfWarp; ++lane) {
        const uint32_t word = warp.reg<uint32_t>(slots[2 * core + half])[lane];
        sums[0][half][lane] = fromHalf(static_cast<uint16_t>(word));
        sums[1][half][lane] = fromHalf(static_cast<uint16_t>(word >> 16));
      }
    for (auto &column : sums) {
      accumulate(rows, columns, static_cast<int>(product.K), {column[0], column[1]});
      columns += 4 * product.K;
    }
    for (uint32_t half = 0; half < 2; ++half)
      for (uint32_t lane = 0; lane < lanesOfWarp; ++lane)
        warp.reg<uint32_t>(slots[2 * core + half])[lane] =
            toHalf(sums[0][half][lane]) | static_cast<uint32_t>(toHalf(sums[1][half][lane])) << 16;
  }
}

/// D in s32: products of a step are exact, and the sum wraps or saturates.
static void multiplyIntegers(Warp &warp, const uint32_t *slots, const Product &product, const RowOperand<int32_t> &rows,
                             const int32_t *columns, bool keeps) {
  for (uint32_t pair = 0; pair < product.N / 4; ++pair, columns += 4 * product.K) {
    alignas(32) int32_t sums[2][32] = {};
    accumulate(rows, columns, static_cast<int>(product.K), {sums[0], sums[1]});
    for (uint32_t half = 0; half < 2; ++half) {
      auto *d = warp.reg<int32_t>(slots[pair / 2 * 4 + pair % 2 + 2 * half]);
      for (uint32_t lane = 0; lane < lanesOfWarp; ++lane) {
        const int64_t sum = int64_t{sums[half][lane]} + (keeps ? d[lane] : 0);
        d[lane] = static_cast<int32_t>(product.saturate ? clamped(sum, 32, true) : sum);
      }
    }
  }
}

// --- wgmma.mma_async -----------------------------------------------------------------------------------------------

static void checkRegisters(Warp &warp, const Step &step, const Product &product, const uint32_t *slots, bool keeps) {
  if (!warp.cta.grid.checks.has(Check::wgmma))
    return;
  WgmmaRules &rules = warp.wgmmaRules;
  std::string fault = rules.everFenced() ? "" : "comes before any wgmma.fence";
  const uint32_t shape = product.N << 8 | product.typeOfD;
  for (uint32_t i = 0; i < product.registersOfA() + product.registersOfD(); ++i) {
    const bool isA = i < product.registersOfA();
    std::string wrong = rules.use(placeOf(warp, slots[i]),
                                  isA ? WgmmaRules::Use::operand : WgmmaRules::Use::accumulator, shape, isA || keeps);
    if (fault.empty())
      fault = std::move(wrong);
  }
  if (!fault.empty())
    warp.report(Check::wgmma, step, 0, fault);
}

static uint64_t descriptorAt(Warp &warp, const Step &step, uint32_t slot, const char *name) {
  const auto *lanes = warp.reg<uint64_t>(slot);
  for (int lane = 1; lane < lanesOfWarp; ++lane)
    if (lanes[lane] != lanes[0]) {
      warp.report(
          Check::wgmma, step, lane,
          fmt::format("{}'s descriptor is {:#x} in one lane and {:#x} in another", name, lanes[0], lanes[lane]));
      break;
    }
  return lanes[0];
}

static void reportOperand(Warp &warp, const Step &step, const char *name, const MatrixDescriptor &matrix, bool inside) {
  if (const std::string fault = matrix.fault(); !fault.empty())
    warp.report(Check::wgmma, step, 0, fmt::format("{}: {}", name, fault));
  if (!inside)
    warp.report(Check::bounds, step, 0,
                fmt::format("reads {} at {} in .shared, beyond its {} bytes", name, warp.cta.placeText(matrix.start),
                            warp.cta.sharedBytes()));
}

static void countOperand(Warp &warp, const MatrixPart &part) {
  if (warp.cta.metrics)
    warp.cta.metrics->at(warp.path.code, warp.path.pc - 1).operandBytes +=
        int64_t{part.rows} * part.K * ptx::bitsOf(part.type) / 8;
}

/// The addresses of the chunks of a part of a matrix.
static const std::vector<uint32_t> &chunksOf(const MatrixDescriptor &matrix, const MatrixPart &part) {
  static thread_local std::vector<uint32_t> chunks;
  chunks.clear();
  forEachChunk(matrix, part, [](int, int, uint32_t place) { chunks.push_back(place); });
  return chunks;
}

/// Records that the warp reads the part of a matrix until the end of its group.
static void beginReading(Warp &warp, const Step &step, const MatrixDescriptor &matrix, const MatrixPart &part) {
  if (!warp.cta.shadow)
    return;
  warp.cta.shadow->beginReads(warp, step, chunksOf(matrix, part));
  warp.wgmmaRules.read(matrix, part);
}

static void endReading(Warp &warp) {
  warp.wgmmaRules.forgetReads([&](const MatrixDescriptor &matrix, const MatrixPart &part) {
    warp.cta.shadow->endReads(warp.index, chunksOf(matrix, part));
  });
}

template <class T> static void runProduct(Warp &warp, const Step &step) {
  Product product;
  const uint32_t *list = warp.list(step);
  std::memcpy(&product, list, sizeof(product));
  const uint32_t *slotsOfA = list + Product::words, *slotsOfD = slotsOfA + product.registersOfA();
  const uint64_t bitsOfB = descriptorAt(warp, step, product.descriptorB, "B"),
                 bitsOfA = product.aInRegisters ? 0 : descriptorAt(warp, step, product.descriptorA, "A");
  const Mask scale = warp.predicate(product.scale) ^ (product.scaleNegated ? allLanes : 0);
  if (scale != 0 && scale != allLanes)
    warp.report(Check::wgmma, step, 0, "scale-d is true in some lanes and false in others");
  const bool keeps = scale & 1;
  GroupInstruction &common = agree(warp, step, bitsOfA, bitsOfB);
  checkRegisters(warp, step, product, slotsOfA, keeps);

  const SharedBytes shared{warp.cta.shared(), warp.cta.sharedBytes()};
  if (!std::exchange(common.hasColumns, true)) {
    const MatrixDescriptor matrix(bitsOfB);
    countOperand(warp, product.partOfB());
    if (!std::holds_alternative<ColumnOperand<T>>(common.columns))
      common.columns.emplace<ColumnOperand<T>>();
    reportOperand(warp, step, "B", matrix,
                  readColumns(shared, matrix, product.partOfB(), std::get<ColumnOperand<T>>(common.columns)));
  }
  beginReading(warp, step, MatrixDescriptor(bitsOfB), product.partOfB());
  // The operand itself is on the heap, because little thread-local storage is left for a library that is loaded late.
  static thread_local const auto operand = std::make_unique<RowOperand<T>>();
  RowOperand<T> &rows = *operand;
  if (product.aInRegisters) {
    const uint32_t *words[4];
    for (size_t i = 0; i < 4; ++i)
      words[i] = warp.reg<uint32_t>(slotsOfA[i]);
    readFragment(words, product.partOfA(0), rows);
  } else {
    const MatrixDescriptor matrix(bitsOfA);
    countOperand(warp, product.partOfA(warp.index));
    beginReading(warp, step, matrix, product.partOfA(warp.index));
    reportOperand(warp, step, "A", matrix, readRows(shared, matrix, product.partOfA(warp.index), rows));
  }
  // A warp that executes another instruction than the others, which was reported, may find a B of another shape.
  ColumnOperand<T> *columns = std::get_if<ColumnOperand<T>>(&common.columns);
  if (columns && columns->size() == size_t{product.N} * product.K) {
    if constexpr (std::is_same_v<T, int32_t>)
      multiplyIntegers(warp, slotsOfD, product, rows, columns->data(), keeps);
    else if (product.typeOfD == static_cast<uint32_t>(Type::f16))
      multiplyHalves(warp, slotsOfD, product, rows, columns->data(), keeps);
    else
      multiplySingles(warp, slotsOfD, product, rows, columns->data(), keeps);
  }
  warp.cta.warpgroupOf(warp).done(warp.index % warpsOfGroup);
}

// --- Decoding ------------------------------------------------------------------------------------------------------

/// The types of D allowed for those of A and B, and the length of a step's sum.
static bool isKnown(const Product &product) {
  const auto d = static_cast<Type>(product.typeOfD), a = static_cast<Type>(product.typeOfA),
             b = static_cast<Type>(product.typeOfB);
  const auto isEighth = [](Type type) { return type == Type::e4m3 || type == Type::e5m2; };
  const auto isByte = [](Type type) { return type == Type::s8 || type == Type::u8; };
  const bool types = isByte(a)        ? isByte(b) && d == Type::s32
                     : isEighth(a)    ? isEighth(b) && (d == Type::f32 || d == Type::f16)
                     : a == Type::f16 ? b == a && (d == Type::f32 || d == Type::f16)
                                      : (a == Type::bf16 || a == Type::tf32) && b == a && d == Type::f32;
  const bool steps = product.N >= 8 && product.N <= 256 && product.N % (isByte(a) && product.N > 32 ? 16 : 8) == 0;
  return types && (steps || (isByte(a) && product.N == 24)) && product.K * static_cast<uint32_t>(ptx::bitsOf(a)) == 256;
}

/// An operand that must be one of two numbers; returns whether it is the second.
static bool takeNumber(Decoder &d, size_t operand, uint64_t no, uint64_t yes, const char *what) {
  const Operand &number = d.operand(operand);
  if (number.kind != Operand::Kind::integer || (number.bits != no && number.bits != yes))
    d.wrong(what);
  return number.bits == yes;
}

static void decodeProduct(Decoder &d) {
  const std::array<int, 3> shape = takeShape(d);
  Product product{};
  product.saturate = d.take("satfinite");
  product.typeOfD = static_cast<uint32_t>(d.type());
  product.typeOfA = static_cast<uint32_t>(d.type());
  product.typeOfB = static_cast<uint32_t>(d.type());
  product.N = static_cast<uint32_t>(shape[1]);
  product.K = static_cast<uint32_t>(shape[2]);
  const bool isInteger = static_cast<Type>(product.typeOfD) == Type::s32;
  if (shape[0] != 64 || !isKnown(product) || (product.saturate && !isInteger))
    d.unsupported();
  product.aInRegisters = d.operand(1).kind == Operand::Kind::vector;
  const bool turns = ptx::bitsOf(static_cast<Type>(product.typeOfA)) == 16;
  const size_t count = 4 + (isInteger ? 0 : 2) + (turns ? (product.aInRegisters ? 1 : 2) : 0);
  d.expectCount(count, count);
  std::vector<uint32_t> slots;
  if (product.aInRegisters)
    addFragment(d, d.operand(1), 4, Type::b32, false, slots);
  else
    product.descriptorA = d.source(1, Type::b64);
  product.descriptorB = d.source(2, Type::b64);
  bool negated = false;
  product.scale = d.predicate(d.operand(3), negated);
  product.scaleNegated = negated;
  if (!isInteger) {
    product.negateA = takeNumber(d, 4, 1, ~uint64_t{0}, "1 or -1");
    product.negateB = takeNumber(d, 5, 1, ~uint64_t{0}, "1 or -1");
  }
  if (turns && !product.aInRegisters)
    product.transA = takeNumber(d, 6, 0, 1, "0 or 1");
  if (turns)
    product.transB = takeNumber(d, count - 1, 0, 1, "0 or 1");
  addFragment(d, d.operand(0), product.registersOfD(),
              static_cast<Type>(product.typeOfD) == Type::f32 ? Type::f32 : Type::b32, true, slots);
  std::vector<uint32_t> list(Product::words);
  std::memcpy(list.data(), &product, sizeof(product));
  list.insert(list.end(), slots.begin(), slots.end());
  d.giveList(d.emit(isInteger ? runProduct<int32_t> : runProduct<float>), list);
}

static void decodeWgmma(Decoder &d) {
  if (d.builder.module.target != "sm_90a")
    d.wrong(fmt::format("'.target sm_90a', but got '{}',", d.builder.module.target));
  const int operation = d.takeOne({"mma_async", "fence", "commit_group", "wait_group"});
  if (operation < 0 || !d.take("sync") || !d.take("aligned"))
    d.unsupported();
  if (operation == 0)
    return decodeProduct(d);
  d.expectCount(operation == 3, operation == 3);
  if (operation == 3 && (d.operand(0).kind != Operand::Kind::integer || d.operand(0).bits > 7))
    d.wrong("a number of groups from 0 to 7");
  static constexpr Handler handlers[] = {[](Warp &warp, const Step &step) {
                                           expectWholeWarp(warp, step);
                                           warp.wgmmaRules.fence();
                                         },
                                         [](Warp &warp, const Step &step) {
                                           expectWholeWarp(warp, step);
                                           warp.wgmmaRules.commit();
                                         },
                                         [](Warp &warp, const Step &step) {
                                           expectWholeWarp(warp, step);
                                           warp.wgmmaRules.wait(step.detail);
                                           endReading(warp);
                                           // A warp that runs ahead makes the group keep many matrices.
                                           if (warp.cta.warpgroupOf(warp).isAhead(warp.index % warpsOfGroup))
                                             warp.endTurn();
                                         }};
  d.emit(handlers[operation - 1], {}, operation == 3 ? d.operand(0).bits : 0);
}

// --- setmaxnreg ----------------------------------------------------------------------------------------------------

/// Registers of a thread at launch: the number in the PTX, or the register file divided among the threads.
static int registersAtLaunch(const Warp &warp) {
  if (warp.program.maxRegisters)
    return warp.program.maxRegisters;
  static constexpr int registerFile = 65536, maxOfThread = 248;
  return std::min(maxOfThread, registerFile / warp.cta.grid.threads() / 8 * 8);
}

/// detail: registers; target: 1 for increase, 0 for decrease.
static void runSetRegisters(Warp &warp, const Step &step) {
  const auto wanted = static_cast<int>(step.detail);
  const bool takes = step.target == 1;
  const int had = warp.registersOfLane ? warp.registersOfLane : registersAtLaunch(warp);
  const int more = wanted - had;
  if (takes && more * lanesOfWarp > warp.cta.freeRegisters && more > 0)
    return warp.waitFor({.kind = Wait::Kind::registers, .index = static_cast<uint32_t>(more)});
  agree(warp, step, step.detail, static_cast<uint64_t>(step.target));
  warp.cta.warpgroupOf(warp).done(warp.index % warpsOfGroup);
  if (takes ? more < 0 : more > 0) {
    if (warp.registersOfLane || warp.program.maxRegisters) // otherwise the number is unknown
      warp.report(Check::registers, step, 0,
                  fmt::format("asks for {} registers instead of {}, which is no {}", wanted, had,
                              takes ? "increase" : "decrease"));
    return;
  }
  warp.cta.freeRegisters -= int64_t{more} * lanesOfWarp;
  warp.registersOfLane = wanted;
}

static void decodeSetRegisters(Decoder &d) {
  const int direction = d.takeOne({"dec", "inc"});
  if (direction < 0 || !d.take("sync") || !d.take("aligned") || d.type() != Type::u32)
    d.unsupported();
  d.expectCount(1, 1);
  const Operand &number = d.operand(0);
  if (number.kind != Operand::Kind::integer || number.bits % 8 != 0 || number.bits < 24 || number.bits > 256)
    d.wrong("a multiple of 8 registers from 24 to 256");
  Step &step = d.emit(runSetRegisters, {}, number.bits);
  step.target = direction;
}

void addWgmma(InstructionTable &table) {
  table["wgmma"] = decodeWgmma;
  table["setmaxnreg"] = decodeSetRegisters;
}

} // namespace kiln::simulator
