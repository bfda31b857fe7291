// Moves of 8×8 matrices between shared memory and registers, their transposition, and common parts of all matrix
// instructions.

#include "runtime/simulator/Access.h"
#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/Fragments.h"
#include "runtime/simulator/Lanes.h"
#include "runtime/simulator/Numbers.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

namespace kiln::simulator {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

void expectWholeWarp(Warp &warp, const Step &step) {
  if (warp.exec != allLanes)
    warp.report(Check::barrier, step, std::countr_zero(~warp.exec),
                fmt::format("only lanes {:#x} execute an instruction that takes the whole warp", warp.exec));
}

// --- Fragments -----------------------------------------------------------------------------------------------------

void addFragment(Decoder &d, const Operand &operand, size_t count, Type type, bool isResult,
                 std::vector<uint32_t> &slots) {
  const auto elements = d.elements(operand);
  if (operand.kind != Operand::Kind::vector || elements.size() != count)
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

// --- ldmatrix, stmatrix --------------------------------------------------------------------------------------------

namespace {
/// The data of a matrix store.
struct StoredMatrices {
  Warp &warp;
  const uint32_t *slots;
  bool transposed;
};
} // namespace

/// Byte `byte` of the row at lane `lane`'s address.
static uint8_t storedMatrixByte(const void *context, int lane, uint32_t byte) {
  const auto &[warp, slots, transposed] = *static_cast<const StoredMatrices *>(context);
  const auto row = static_cast<uint32_t>(lane % 8), column = byte / 2;
  const uint32_t major = transposed ? column : row, minor = transposed ? row : column;
  const uint32_t word = warp.reg<uint32_t>(slots[lane / 8])[4 * major + minor / 2];
  return static_cast<uint8_t>(word >> (16 * (minor % 2) + 8 * (byte % 2)));
}

/// Moves rows of 8 halves: lanes 8 i … 8 i + 7 have the addresses of matrix i's rows; lane l holds the two elements 2
/// (l % 4) of row l / 4, or with `.trans` of column l / 4.
template <bool IsStore> static void moveMatrices(Warp &warp, const Step &step) {
  expectWholeWarp(warp, step);
  const AccessShape shape = AccessShape::unpack(step.target);
  const uint32_t *slots = warp.list(step);
  const bool transposed = shape.isSigned; // the field is free here
  const int lanes = static_cast<int>(step.count) * 8;
  const Mask executing = warp.exec;
  warp.exec &= lanes == lanesOfWarp ? allLanes : (Mask{1} << lanes) - 1; // addresses of other lanes are ignored
  const StoredMatrices matrices{warp, slots, transposed};
  const StoredBytes stored{&matrices, storedMatrixByte};
  const LanePointers rows =
      resolve(warp, step, shape.space, addressesOf(warp, step, shape), 16,
              IsStore ? AccessKind::warpWrite : AccessKind::warpRead, nullptr, IsStore ? &stored : nullptr);
  warp.exec = executing;
  for (uint32_t matrix = 0; matrix < step.count; ++matrix) {
    auto *words = warp.reg<uint32_t>(slots[matrix]);
    if (!IsStore && (rows.valid >> (8 * matrix) & 0xff) == 0xff) { // the words of four lanes are a row
      const auto *const first = rows.at.data() + size_t{8} * matrix;
      if (transposed)
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
      uint16_t &low = transposed ? elements[minor][major] : elements[major][minor];
      uint16_t &high = transposed ? elements[minor + 1][major] : elements[major][minor + 1];
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
  const bool transposed = d.take("trans");
  const Space space = d.space();
  if (number < 0 || d.type() != Type::b16)
    d.unsupported();
  d.expectCount(2, 2);
  std::vector<uint32_t> slots;
  addFragment(d, d.operand(IsStore ? 1 : 0), size_t{1} << number, Type::b32, !IsStore, slots);
  AccessShape shape;
  shape.bytes = 16;
  shape.isSigned = transposed;
  const Decoder::Address address = d.address(d.operand(IsStore ? 0 : 1), space);
  Step &step = d.emit(moveMatrices<IsStore>);
  setAddress(step, shape, address);
  d.giveList(step, slots);
}

/// movmatrix: transposes an 8×8 matrix in registers.
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
  table["ldmatrix"] = decodeMatrixMove<false>;
  table["stmatrix"] = decodeMatrixMove<true>;
  table["movmatrix"] = decodeMovmatrix;
}

} // namespace kiln::simulator
