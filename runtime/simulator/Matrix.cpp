// Tensor-core instructions on registers: mma.sync and the moves of 8×8 matrices between shared memory and registers.
//
// Fragments follow the PTX ISA, "Warp-level matrix instructions". With g = lane / 4 and t = lane % 4, and E elements in
// a word:
//
//     A (16 × K)   word r: row g + 8 (r & 1), columns E t + 4 E (r >> 1) … + E − 1
//     B (K × 8)    word r: column g, rows E t + 4 E r … + E − 1
//     C (16 × 8)   element i: row g + 8 (i >> 1), column 2 t + (i & 1)
//
// Sums run over K in order, each step one fused multiply-add; hardware rounds otherwise, so that only integers that f32
// holds compare equal. Every operand is read before a result is written.

#include "runtime/simulator/Access.h"
#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/Fragments.h"
#include "runtime/simulator/Lanes.h"
#include "runtime/simulator/Numbers.h"
#include "runtime/simulator/Products.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

namespace kiln::simulator {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

static constexpr int mostK = 32;

void expectWholeWarp(Warp &warp, const Step &step) {
  if (warp.exec != allLanes)
    warp.report(Check::barrier, step, std::countr_zero(~warp.exec),
                fmt::format("only lanes {:#x} execute an instruction that takes the whole warp", warp.exec));
}

// --- Fragments -----------------------------------------------------------------------------------------------------

static float elementOf(Type type, uint32_t word, int index) {
  switch (type) {
  case Type::f16:
    return fromHalf(static_cast<uint16_t>(word >> (16 * index)));
  case Type::bf16:
    return fromBf16(static_cast<uint16_t>(word >> (16 * index)));
  default: // tf32: the lowest 13 bits do not count
    return std::bit_cast<float>(word & 0xffffe000);
  }
}
static int32_t integerOf(Type type, uint32_t word, int index) {
  const auto byte = static_cast<uint8_t>(word >> (8 * index));
  return type == Type::s8 ? static_cast<int8_t>(byte) : byte;
}

/// Places the elements of A and B as matrices of T; B is turned, so that its columns lie together.
template <class T, class Element>
static void gatherOperands(Warp &warp, const uint32_t *slots, int wordsOfA, int wordsOfB, int perWord, Element element,
                           T (&a)[16][mostK], T (&b)[mostK][8]) {
  for (int r = 0; r < wordsOfA; ++r) {
    const auto *words = warp.reg<uint32_t>(slots[r]);
    for (int lane = 0; lane < lanesOfWarp; ++lane)
      for (int e = 0; e < perWord; ++e)
        a[lane / 4 + 8 * (r & 1)][perWord * (lane % 4) + 4 * perWord * (r >> 1) + e] = element(true, words[lane], e);
  }
  for (int r = 0; r < wordsOfB; ++r) {
    const auto *words = warp.reg<uint32_t>(slots[wordsOfA + r]);
    for (int lane = 0; lane < lanesOfWarp; ++lane)
      for (int e = 0; e < perWord; ++e)
        b[perWord * (lane % 4) + 4 * perWord * r + e][lane / 4] = element(false, words[lane], e);
  }
}

/// C's words: four of 32 bits a lane, or two of packed halves.
template <class T> static void gatherSums(Warp &warp, const uint32_t *slots, bool packed, T (&c)[16][8]) {
  for (int i = 0; i < 4; ++i) {
    const auto *words = warp.reg<uint32_t>(slots[packed ? i / 2 : i]);
    for (int lane = 0; lane < lanesOfWarp; ++lane) {
      T &element = c[lane / 4 + 8 * (i >> 1)][2 * (lane % 4) + (i & 1)];
      if (packed)
        element = static_cast<T>(fromHalf(static_cast<uint16_t>(words[lane] >> (16 * (i & 1)))));
      else
        element = fromWord<T>(words[lane]);
    }
  }
}

template <class T> static void scatterSums(Warp &warp, const uint32_t *slots, bool packed, const T (&c)[16][8]) {
  for (int i = 0; i < 4; i += packed ? 2 : 1) {
    auto *words = warp.reg<uint32_t>(slots[packed ? i / 2 : i]);
    for (int lane = 0; lane < lanesOfWarp; ++lane) {
      const T *element = &c[lane / 4 + 8 * (i >> 1)][2 * (lane % 4) + (i & 1)];
      if (packed)
        words[lane] = toHalf(static_cast<float>(element[0])) |
                      static_cast<uint32_t>(toHalf(static_cast<float>(element[1]))) << 16;
      else
        words[lane] = toWord<T>(element[0]);
    }
  }
}

template <class T> static void multiply(const T (&a)[16][mostK], const T (&b)[mostK][8], T (&c)[16][8], int K) {
  for (auto m = 0; m < 16; ++m)
    for (int k = 0; k < K; ++k)
      for (int n = 0; n < 8; ++n) {
        if constexpr (std::is_floating_point_v<T>)
          c[m][n] = std::fma(a[m][k], b[k][n], c[m][n]);
        else // sums wrap
          c[m][n] = static_cast<T>(static_cast<uint32_t>(c[m][n]) + static_cast<uint32_t>(a[m][k] * b[k][n]));
      }
}

// --- mma -----------------------------------------------------------------------------------------------------------

/// detail: type of A | of B << 8 | K << 16 | packed C << 24 | packed D << 25 | saturate << 26. The list holds A, B, C,
/// D.
template <class T, Type A> static void runMma(Warp &warp, const Step &step) {
  expectWholeWarp(warp, step);
  const auto typeOfA = static_cast<Type>(step.detail & 0xff), typeOfB = static_cast<Type>(step.detail >> 8 & 0xff);
  const int K = static_cast<int>(step.detail >> 16 & 0xff);
  const bool packedC = step.detail >> 24 & 1, packedD = step.detail >> 25 & 1;
  const int perWord = 32 / std::min(32, ptx::bitsOf(typeOfA));
  const int wordsOfA = 16 * K / (32 * perWord), wordsOfB = 8 * K / (32 * perWord);
  const uint32_t *slots = warp.list(step);
  if constexpr (std::is_same_v<T, float>)
    if (!packedC && !packedD) {
      std::array<uint32_t *, 14> words; // of A, B, C and D
      const size_t count = static_cast<size_t>(wordsOfA + wordsOfB) + 8;
      for (size_t i = 0; i < count; ++i)
        words[i] = warp.reg<uint32_t>(slots[i]);
      uint32_t *const *const c = words.data() + wordsOfA + wordsOfB;
      return multiplyFragments(A, K, words.data(), words.data() + wordsOfA, c, c + 4);
    }
  T a[16][mostK], b[mostK][8], c[16][8];
  if constexpr (std::is_same_v<T, float>)
    gatherOperands(
        warp, slots, wordsOfA, wordsOfB, perWord, [](bool, uint32_t word, int e) { return elementOf(A, word, e); }, a,
        b);
  else
    gatherOperands(
        warp, slots, wordsOfA, wordsOfB, perWord,
        [&](bool isA, uint32_t word, int e) { return integerOf(isA ? typeOfA : typeOfB, word, e); }, a, b);
  gatherSums(warp, slots + wordsOfA + wordsOfB, packedC, c);
  if constexpr (std::is_same_v<T, int32_t>)
    if (step.detail >> 26 & 1) { // exact, then clamped
      for (int m = 0; m < 16; ++m)
        for (int n = 0; n < 8; ++n) {
          int64_t sum = c[m][n];
          for (int k = 0; k < K; ++k)
            sum += int64_t{a[m][k]} * b[k][n];
          c[m][n] = static_cast<int32_t>(
              std::clamp<int64_t>(sum, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
        }
      scatterSums(warp, slots + wordsOfA + wordsOfB + 4, false, c);
      return;
    }
  multiply(a, b, c, K);
  scatterSums(warp, slots + wordsOfA + wordsOfB + (packedC ? 2 : 4), packedD, c);
}

/// m8n8k4 on f64: A word: row g, column t; B: row t, column g; C: row g, columns 2 t and 2 t + 1.
static void runDoubleMma(Warp &warp, const Step &step) {
  expectWholeWarp(warp, step);
  const uint32_t *slots = warp.list(step);
  const auto *a = warp.reg<uint64_t>(slots[0]), *b = warp.reg<uint64_t>(slots[1]);
  std::array<std::array<uint64_t, lanesOfWarp>, 2> sums;
  for (int i = 0; i < 2; ++i)
    for (int lane = 0; lane < lanesOfWarp; ++lane) {
      double sum = fromWord<double>(warp.reg<uint64_t>(slots[2 + i])[lane]);
      for (int k = 0; k < 4; ++k)
        sum = std::fma(fromWord<double>(a[lane / 4 * 4 + k]), fromWord<double>(b[(2 * (lane % 4) + i) * 4 + k]), sum);
      sums[static_cast<size_t>(i)][static_cast<size_t>(lane)] = toWord(sum);
    }
  for (size_t i = 0; i < 2; ++i)
    std::copy(sums[i].begin(), sums[i].end(), warp.reg<uint64_t>(slots[4 + i]));
}

void addFragment(Decoder &d, const Operand &operand, size_t count, Type type, bool isResult,
                 std::vector<uint32_t> &slots) {
  const auto elements = d.elements(operand);
  if (elements.size() != count)
    d.wrong(fmt::format("a fragment of {} registers, but got {},", count, elements.size()));
  for (const Operand &element : elements)
    slots.push_back(isResult ? d.result(element, type) : d.source(element, type));
}

std::array<int, 3> takeShape(Decoder &d) {
  for (const std::string_view modifier : d.rest()) {
    if (!modifier.starts_with('m') || modifier.size() < 6 || modifier[1] < '0' || modifier[1] > '9')
      continue;
    std::array<int, 3> shape{};
    const char *at = modifier.data();
    const char *const end = at + modifier.size();
    for (size_t i = 0; i < 3; ++i) {
      if (at == end || *at != "mnk"[i])
        d.wrong("a shape");
      const auto [stop, failure] = std::from_chars(at + 1, end, shape[i]);
      if (failure != std::errc() || shape[i] < 1 || shape[i] > 256)
        d.wrong("extents of a matrix from 1 to 256");
      at = stop;
    }
    if (at != end)
      d.wrong("a shape");
    d.take(modifier);
    return shape;
  }
  d.wrong("a shape");
}

static void decodeDoubleMma(Decoder &d, const std::array<int, 3> &shape) {
  if (shape != std::array{8, 8, 4})
    d.unsupported();
  std::vector<uint32_t> slots;
  addFragment(d, d.operand(1), 1, Type::f64, false, slots);
  addFragment(d, d.operand(2), 1, Type::f64, false, slots);
  addFragment(d, d.operand(3), 2, Type::f64, false, slots);
  addFragment(d, d.operand(0), 2, Type::f64, true, slots);
  d.giveList(d.emit(runDoubleMma), slots);
}

static void decodeMma(Decoder &d) {
  if (!d.take("sync"))
    d.unsupported();
  d.take("aligned");
  const std::array<int, 3> shape = takeShape(d);
  if (!d.take("row") || !d.take("col"))
    d.unsupported("only .row.col");
  const bool saturate = d.take("satfinite");
  const Type typeOfD = d.type(), typeOfA = d.type(), typeOfB = d.type(), typeOfC = d.type();
  d.expectCount(4, 4);
  if (typeOfA == Type::f64)
    return decodeDoubleMma(d, shape);
  const bool integers = typeOfA == Type::s8 || typeOfA == Type::u8;
  const bool halves = typeOfA == Type::f16 || typeOfA == Type::bf16;
  const int bits = ptx::bitsOf(typeOfA), K = shape[2];
  const bool known = shape[0] == 16 && shape[1] == 8 && (K * bits == 256 || K * bits == 128) &&
                     (integers || halves || typeOfA == Type::tf32);
  const bool sums = integers ? typeOfD == Type::s32 && typeOfC == Type::s32
                             : (typeOfD == Type::f32 || (typeOfD == Type::f16 && typeOfA == Type::f16)) &&
                                   (typeOfC == Type::f32 || (typeOfC == Type::f16 && typeOfA == Type::f16));
  if (!known || !sums || (!integers && typeOfB != typeOfA) ||
      (integers && typeOfB != Type::s8 && typeOfB != Type::u8) || (saturate && !integers))
    d.unsupported();
  const int perWord = 32 / bits;
  const bool packedC = typeOfC == Type::f16, packedD = typeOfD == Type::f16;
  std::vector<uint32_t> slots;
  addFragment(d, d.operand(1), static_cast<size_t>(16 * K / (32 * perWord)), Type::b32, false, slots);
  addFragment(d, d.operand(2), static_cast<size_t>(8 * K / (32 * perWord)), Type::b32, false, slots);
  addFragment(d, d.operand(3), packedC ? 2 : 4, Type::b32, false, slots);
  addFragment(d, d.operand(0), packedD ? 2 : 4, Type::b32, true, slots);
  const Handler handler = integers                ? runMma<int32_t, Type::s8>
                          : typeOfA == Type::f16  ? runMma<float, Type::f16>
                          : typeOfA == Type::bf16 ? runMma<float, Type::bf16>
                                                  : runMma<float, Type::tf32>;
  d.giveList(d.emit(handler, {},
                    static_cast<uint64_t>(typeOfA) | static_cast<uint64_t>(typeOfB) << 8 |
                        static_cast<uint64_t>(K) << 16 | uint64_t{packedC} << 24 | uint64_t{packedD} << 25 |
                        uint64_t{saturate} << 26),
             slots);
}

// --- ldmatrix, stmatrix --------------------------------------------------------------------------------------------

/// Rows of 8 halves: lanes 8 i … 8 i + 7 give the addresses of matrix i's; lane l holds the two elements 2 (l % 4) of
/// row l / 4, or with `.trans` of column l / 4.
template <bool IsStore> static void moveMatrices(Warp &warp, const Step &step) {
  expectWholeWarp(warp, step);
  const AccessShape shape = AccessShape::unpack(step.target);
  const uint32_t *slots = warp.list(step);
  const bool turned = shape.isSigned; // the field is free here
  const int lanes = static_cast<int>(step.count) * 8;
  const Mask executing = warp.exec;
  warp.exec &= lanes == lanesOfWarp ? allLanes : (Mask{1} << lanes) - 1; // the others' addresses do not count
  const LanePointers rows = resolve(warp, step, shape.space, addressesOf(warp, step, shape), 16,
                                    IsStore ? AccessKind::warpWrite : AccessKind::warpRead);
  warp.exec = executing;
  for (uint32_t matrix = 0; matrix < step.count; ++matrix) {
    auto *words = warp.reg<uint32_t>(slots[matrix]);
    if (!IsStore && (rows.valid >> (8 * matrix) & 0xff) == 0xff) { // four lanes' words are a row
      const auto *const first = rows.at.data() + size_t{8} * matrix;
      if (turned)
        turn16(first, reinterpret_cast<char *>(words));
      else
        for (size_t row = 0; row < 8; ++row)
          std::memcpy(words + 4 * row, first[row], 16);
      continue;
    }
    uint16_t elements[8][8] = {};
    if constexpr (!IsStore)
      for (size_t row = 0; row < 8; ++row)
        if (rows.valid >> (8 * matrix + row) & 1)
          std::memcpy(elements[row], rows.at[8 * matrix + row], 16);
    for (int lane = 0; lane < lanesOfWarp; ++lane) {
      const int major = lane / 4, minor = 2 * (lane % 4);
      uint16_t &low = turned ? elements[minor][major] : elements[major][minor];
      uint16_t &high = turned ? elements[minor + 1][major] : elements[major][minor + 1];
      if constexpr (IsStore)
        low = static_cast<uint16_t>(words[lane]), high = static_cast<uint16_t>(words[lane] >> 16);
      else
        words[lane] = low | static_cast<uint32_t>(high) << 16;
    }
    if constexpr (IsStore)
      for (size_t row = 0; row < 8; ++row)
        if (rows.valid >> (8 * matrix + row) & 1)
          std::memcpy(rows.at[8 * matrix + row], elements[row], 16);
  }
}

template <bool IsStore> static void decodeMatrixMove(Decoder &d) {
  if (!d.take("sync") || !d.take("aligned") || !d.take("m8n8"))
    d.unsupported();
  const int number = d.takeOne({"x1", "x2", "x4"});
  const bool turned = d.take("trans");
  const Space space = d.space();
  if (number < 0 || d.type() != Type::b16)
    d.unsupported();
  d.expectCount(2, 2);
  std::vector<uint32_t> slots;
  addFragment(d, d.operand(IsStore ? 1 : 0), size_t{1} << number, Type::b32, !IsStore, slots);
  AccessShape shape;
  shape.bytes = 16;
  shape.isSigned = turned;
  const Decoder::Address address = d.address(d.operand(IsStore ? 0 : 1), space);
  Step &step = d.emit(moveMatrices<IsStore>);
  setAddress(step, shape, address);
  d.giveList(step, slots);
}

/// movmatrix: an 8×8 matrix in registers, turned.
static void decodeMovmatrix(Decoder &d) {
  if (!d.take("sync") || !d.take("aligned") || !d.take("m8n8") || !d.take("trans") || d.type() != Type::b16)
    d.unsupported();
  d.expectCount(2, 2);
  d.emit(
      [](Warp &warp, const Step &step) {
        expectWholeWarp(warp, step);
        uint16_t elements[8][8];
        const auto *source = warp.reg<uint32_t>(step.slots[1]);
        for (int lane = 0; lane < lanesOfWarp; ++lane)
          for (int half = 0; half < 2; ++half)
            elements[lane / 4][2 * (lane % 4) + half] = static_cast<uint16_t>(source[lane] >> (16 * half));
        auto *result = warp.reg<uint32_t>(step.slots[0]);
        for (int lane = 0; lane < lanesOfWarp; ++lane)
          result[lane] =
              elements[2 * (lane % 4)][lane / 4] | static_cast<uint32_t>(elements[2 * (lane % 4) + 1][lane / 4]) << 16;
      },
      {d.result(0, Type::b32), d.source(1, Type::b32)});
}

void addMatrix(InstructionTable &table) {
  table["mma"] = decodeMma;
  table["ldmatrix"] = decodeMatrixMove<false>;
  table["stmatrix"] = decodeMatrixMove<true>;
  table["movmatrix"] = decodeMovmatrix;
}

} // namespace kiln::simulator
