// wmma. PTX leaves the layout of fragments open, so the simulator chooses one. A lane holds consecutive elements, by
// rows (A and C) or columns (B): element e of lane l has the number (count · l + e) modulo the matrix's number of
// elements. So fragments with room for two copies of the matrix hold two.

#include "runtime/simulator/Access.h"
#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/Fragments.h"
#include "runtime/simulator/Lanes.h"
#include "runtime/simulator/Numbers.h"

#include <algorithm>
#include <fmt/format.h>

namespace kiln::simulator {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

namespace {
/// A matrix of a wmma instruction: its extents in the order in which its elements are numbered, and how a lane holds
/// them.
struct Matrix {
  uint8_t major = 16, minor = 16; // rows and columns of A and C, columns and rows of B
  Type type = Type::f16;
  uint8_t registers = 8;

  int perRegister() const { return std::max(1, 32 / ptx::bitsOf(type)); }
  int count() const { return registers * perRegister(); }
  int numberOf(int lane, int element) const { return (count() * lane + element) % (major * minor); }
};
} // namespace

/// The matrix of role 'a', 'b', 'c' or 'd' under a shape.
static Matrix matrixOf(char role, const std::array<int, 3> &shape, Type type, size_t registers) {
  const auto [M, N, K] = shape;
  return {static_cast<uint8_t>(role == 'b' ? N : M), static_cast<uint8_t>(role == 'a' || role == 'b' ? K : N), type,
          static_cast<uint8_t>(std::min<size_t>(registers, 255))};
}

/// Throws unless a lane has the registers that the ISA states: each element once, apart from A and B of f16.
static void expectRegisters(const Decoder &d, char role, const Matrix &matrix) {
  const bool isFactor = role == 'a' || role == 'b';
  const int once = matrix.major * matrix.minor / (lanesOfWarp * matrix.perRegister());
  const int all = isFactor && matrix.type == Type::f16 ? 8 : once;
  if (ptx::bitsOf(matrix.type) > 32)
    d.unsupported();
  if (matrix.registers != all)
    d.wrong(fmt::format("{} registers of matrix {}, but got {},", all, role, matrix.registers));
}

// --- Loads and stores ----------------------------------------------------------------------------------------------

namespace {
/// The slots of the fragment follow.
struct MoveOperands {
  Matrix matrix;
  uint32_t stride;   // a slot, or none
  bool isContiguous; // the minor dimension
};
} // namespace

template <bool IsStore> static void moveMatrix(Warp &warp, const Step &step) {
  expectWholeWarp(warp, step);
  const auto [matrix, strideSlot, isContiguous] = fieldsOf<MoveOperands>(warp, step);
  const std::span<const uint32_t> slots = slotsAfter<MoveOperands>(warp, step);
  const AccessShape shape = AccessShape::unpack(step.target);
  const std::array<uint64_t, lanesOfWarp> bases = addressesOf(warp, step, shape);
  const int bytes = ptx::bytesOf(matrix.type), perRegister = matrix.perRegister();
  const int64_t stride =
      strideSlot == Step::none ? (isContiguous ? matrix.minor : matrix.major) : warp.reg<uint32_t>(strideSlot)[0];
  for (int element = 0; element < matrix.count(); ++element) {
    std::array<uint64_t, lanesOfWarp> addresses;
    for (int lane = 0; lane < lanesOfWarp; ++lane) {
      const int number = matrix.numberOf(lane, element), major = number / matrix.minor, minor = number % matrix.minor;
      const int64_t offset = isContiguous ? major * stride + minor : minor * stride + major;
      addresses[static_cast<size_t>(lane)] = bases[static_cast<size_t>(lane)] + static_cast<uint64_t>(offset * bytes);
    }
    const LanePointers pointers =
        resolve(warp, step, shape.space, addresses, bytes, IsStore ? AccessKind::warpWrite : AccessKind::warpRead);
    auto *words = warp.reg<uint32_t>(slots[static_cast<size_t>(element / perRegister)]);
    const int shift = element % perRegister * ptx::bitsOf(matrix.type) % 32;
    const uint32_t mask = bytes == 4 ? ~0u : ((1u << ptx::bitsOf(matrix.type)) - 1) << shift;
    for (size_t lane = 0; lane < lanesOfWarp; ++lane) {
      if (!(pointers.valid >> lane & 1))
        continue;
      uint32_t value = words[lane] >> shift;
      if constexpr (IsStore) {
        std::memcpy(pointers.at[lane], &value, static_cast<size_t>(bytes));
      } else {
        value = 0;
        std::memcpy(&value, pointers.at[lane], static_cast<size_t>(bytes));
        words[lane] = (words[lane] & ~mask) | value << shift;
      }
    }
  }
}

template <bool IsStore> static void decodeMove(Decoder &d) {
  const int role = d.takeOne({"a", "b", "c", "d"});
  if (!d.take("sync") || role < 0 || (role == 3) != IsStore)
    d.unsupported();
  d.take("aligned");
  const bool rows = d.take("row");
  if (!rows && !d.take("col"))
    d.wrong("'.row' or '.col'");
  const std::array<int, 3> extents = takeShape(d);
  const Space space = d.space();
  const Type type = d.type();
  d.expectCount(2, 3);
  const Operand &fragment = d.operand(IsStore ? 1 : 0);
  const Matrix matrix = matrixOf("abcd"[role], extents, type, d.elements(fragment).size());
  expectRegisters(d, "abcd"[role], matrix);
  const bool together = rows == (role != 1); // B is numbered by columns
  const uint32_t stride = d.count() == 3 ? d.source(2, Type::u32) : Step::none;
  std::vector<uint32_t> slots;
  addFragment(d, fragment, d.elements(fragment).size(), Type::b32, !IsStore, slots);
  AccessShape shape;
  shape.bytes = static_cast<uint8_t>(ptx::bytesOf(type));
  const Decoder::Address address = d.address(d.operand(IsStore ? 0 : 1), space);
  Step &step = d.emit(moveMatrix<IsStore>);
  setAddress(step, shape, address);
  giveFields(d, step, MoveOperands{matrix, stride, together}, slots);
}

// --- Products ------------------------------------------------------------------------------------------------------

static double numberOf(Type type, uint32_t word, int index) {
  switch (type) {
  case Type::s8:
    return static_cast<int8_t>(word >> (8 * index));
  case Type::u8:
    return static_cast<uint8_t>(word >> (8 * index));
  case Type::s32:
    return static_cast<int32_t>(word);
  default:
    return floatOf(type, word >> (ptx::bitsOf(type) * index));
  }
}

static void gather(Warp &warp, const Matrix &matrix, const uint32_t *slots, std::vector<double> &elements) {
  elements.resize(static_cast<size_t>(matrix.major) * static_cast<size_t>(matrix.minor));
  for (int element = 0; element < matrix.count(); ++element)
    for (int lane = 0; lane < lanesOfWarp; ++lane)
      elements[static_cast<size_t>(matrix.numberOf(lane, element))] = numberOf(
          matrix.type, warp.reg<uint32_t>(slots[element / matrix.perRegister()])[lane], element % matrix.perRegister());
}

static uint32_t wordOf(Type type, double value) {
  switch (type) {
  case Type::f16:
    return toHalf(value, Rounding::nearest);
  case Type::s32:
    return static_cast<uint32_t>(static_cast<int64_t>(value));
  default:
    return std::bit_cast<uint32_t>(static_cast<float>(value));
  }
}

/// The fields are the matrices A, B, C, D; their fragments follow.
static void multiplyMatrices(Warp &warp, const Step &step) {
  expectWholeWarp(warp, step);
  const auto matrices = fieldsOf<std::array<Matrix, 4>>(warp, step);
  std::array<std::vector<double>, 3> elements;
  const uint32_t *slots = slotsAfter<std::array<Matrix, 4>>(warp, step).data();
  for (size_t i = 0; i < 3; ++i) {
    gather(warp, matrices[i], slots, elements[i]);
    slots += matrices[i].registers;
  }
  const int K = matrices[0].minor, N = matrices[2].minor;
  std::vector<double> &sums = elements[2];
  for (int m = 0; m < matrices[0].major; ++m)
    for (int n = 0; n < N; ++n) {
      double sum = sums[static_cast<size_t>(m * N + n)];
      for (int k = 0; k < K; ++k) { // each step rounded as f32 rounds it; integers are exact
        sum += elements[0][static_cast<size_t>(m * K + k)] * elements[1][static_cast<size_t>(n * K + k)];
        if (matrices[3].type != Type::s32)
          sum = static_cast<float>(sum);
      }
      if (step.detail)
        sum = std::clamp<double>(sum, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max());
      sums[static_cast<size_t>(m * N + n)] = sum;
    }
  const Matrix &result = matrices[3];
  for (int element = 0; element < result.count(); ++element)
    for (int lane = 0; lane < lanesOfWarp; ++lane) {
      uint32_t &word = warp.reg<uint32_t>(slots[element / result.perRegister()])[lane];
      const int shift = element % result.perRegister() * 16;
      const uint32_t value = wordOf(result.type, sums[static_cast<size_t>(result.numberOf(lane, element))]);
      word = result.perRegister() == 1 ? value : (word & ~(0xffffu << shift)) | value << shift;
    }
}

static void decodeProduct(Decoder &d) {
  if (!d.take("sync"))
    d.unsupported();
  d.take("aligned");
  for (int i = 0; i < 2; ++i) // the layouts of A and B; their loads have handled them
    if (d.takeOne({"row", "col"}) < 0)
      d.wrong("'.row' or '.col' twice");
  const std::array<int, 3> extents = takeShape(d);
  std::vector<Type> types;
  while (const std::optional<Type> type = d.optionalType())
    types.push_back(*type);
  if (types.size() == 2) // D and C; A and B are f16
    types = {types[0], Type::f16, Type::f16, types[1]};
  if (types.size() != 4)
    d.wrong("two or four types");
  const bool saturates = types[0] == Type::s32 && d.take("satfinite");
  d.expectCount(4, 4);
  std::array<Matrix, 4> matrices;
  std::vector<uint32_t> slots;
  const std::array<Type, 4> byRole = {types[1], types[2], types[3], types[0]};
  const std::array<size_t, 4> operandOf = {1, 2, 3, 0};
  for (size_t i = 0; i < 4; ++i) {
    matrices[i] = matrixOf("abcd"[i], extents, byRole[i], d.elements(d.operand(operandOf[i])).size());
    expectRegisters(d, "abcd"[i], matrices[i]);
  }
  for (size_t i = 0; i < 4; ++i)
    addFragment(d, d.operand(operandOf[i]), d.elements(d.operand(operandOf[i])).size(), Type::b32, i == 3, slots);
  giveFields(d, d.emit(multiplyMatrices, {}, saturates), matrices, slots);
}

void addWmma(InstructionTable &table) {
  table["wmma"] = [](Decoder &d) {
    switch (d.takeOne({"load", "store", "mma"})) {
    case 0:
      return decodeMove<false>(d);
    case 1:
      return decodeMove<true>(d);
    case 2:
      return decodeProduct(d);
    default:
      d.unsupported();
    }
  };
}

} // namespace kiln::simulator
