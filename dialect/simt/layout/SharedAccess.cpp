// Derives accesses from the correspondence of bits of offsets and bits of layouts.

#include "dialect/simt/layout/SharedAccess.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace kiln::simt {

llvm::StringRef nameOf(SharedOp op) {
  static constexpr llvm::StringRef names[] = {"vector", "rows", "columns"};
  return names[static_cast<size_t>(op)];
}

// --- Finding an access ---------------------------------------------------------------------------------------------

namespace {
/// The offsets that correspond to the bits of registers, lanes and warps.
struct Offsets {
  Vecs reg, lane, warp;

  Offsets(const TileLayout &layout, const F2Map &offset) {
    for (const auto &[part, offsets] : {std::pair(Hw::reg, &reg), {Hw::lane, &lane}, {Hw::warp, &warp}})
      for (const Vec basis : layout.bases(part))
        offsets->push_back(offset(basis));
  }

  /// The register bit with this offset.
  std::optional<unsigned> regOf(Vec step) const {
    const auto *const found = llvm::find(reg, step);
    return found == reg.end() ? std::nullopt : std::optional(static_cast<unsigned>(found - reg.begin()));
  }
  /// Whether exactly `count` bits of registers, lanes and warps change the lowest `count` bits of an offset.
  bool isRow(size_t count) const {
    const auto isInside = [&](Vec step) { return step % (Vec{1} << count) != 0; };
    return llvm::count_if(reg, isInside) + llvm::count_if(lane, isInside) + llvm::count_if(warp, isInside) ==
           static_cast<std::ptrdiff_t>(count);
  }
};
} // namespace

/// Distributes the register bits that are not in `element` to matrices (up to two bits), rounds and instructions.
static void sortRegisters(SharedAccess &access, const Offsets &offsets) {
  const size_t maxMatrixBits = access.op == SharedOp::vector ? 0 : 2;
  for (const auto [index, step] : llvm::enumerate(offsets.reg)) {
    const auto bit = static_cast<unsigned>(index);
    if (llvm::is_contained(access.element, bit))
      continue;
    if (step == 0)
      access.round.push_back(bit);
    else if (access.matrix.size() < maxMatrixBits)
      access.matrix.push_back(bit);
    else
      access.each.push_back(bit);
  }
}

static F2Map addressOf(const Offsets &offsets, llvm::ArrayRef<Vec> regs, llvm::ArrayRef<Vec> lanes, unsigned outputs) {
  Vecs columns(regs);
  columns.append(lanes.begin(), lanes.end());
  columns.append(offsets.warp.begin(), offsets.warp.end());
  return {outputs, columns};
}

SharedAccess vectorAccess(const TileLayout &layout, const F2Map &offset, unsigned bits) {
  const Offsets offsets(layout, offset);
  SharedAccess access{.op = SharedOp::vector, .bits = bits};
  while (bits << access.element.size() < 128) {
    const std::optional<unsigned> next = offsets.regOf(Vec{1} << access.element.size());
    if (!next)
      break;
    access.element.push_back(*next);
  }
  while (!offsets.isRow(access.element.size()))
    access.element.pop_back();
  sortRegisters(access, offsets);
  access.address = addressOf(offsets, offsets.reg, offsets.lane, offset.numOutputs());
  return access;
}

std::optional<SharedAccess> matrixAccess(const TileLayout &layout, const F2Map &offset, unsigned bits, SharedOp op) {
  const Offsets offsets(layout, offset);
  const bool isRows = op == SharedOp::rows;
  if (bits > 32 || (!isRows && bits > 16) || llvm::is_contained(offsets.lane, Vec{0}))
    return std::nullopt;
  SharedAccess access{.op = op, .bits = bits};
  const unsigned wordBits = llvm::Log2_32(32 / bits), rowBits = wordBits + 2;
  Vecs inRow, choosesRow;
  if (isRows) {
    for (unsigned bit = 0; bit < wordBits; ++bit) {
      const std::optional<unsigned> reg = offsets.regOf(Vec{1} << bit);
      if (!reg)
        return std::nullopt;
      access.element.push_back(*reg);
    }
    inRow = {offsets.lane[0], offsets.lane[1]};
    choosesRow = {offsets.lane[2], offsets.lane[3], offsets.lane[4]};
  } else {
    if (bits == 8) {
      const std::optional<unsigned> neighbour = offsets.regOf(1);
      if (!neighbour)
        return std::nullopt;
      access.element.push_back(*neighbour);
    }
    const auto row = access.element.empty() || access.element[0] != 0 ? 0u : 1u;
    if (offsets.reg.size() <= row || offsets.reg[row] == 0)
      return std::nullopt;
    access.element.push_back(row);
    inRow = {offsets.lane[2], offsets.lane[3], offsets.lane[4]};
    choosesRow = {offsets.reg[row], offsets.lane[0], offsets.lane[1]};
  }
  const unsigned first = isRows ? wordBits : rowBits - 3;
  for (const auto [index, step] : llvm::enumerate(inRow))
    if (step != Vec{1} << (first + index))
      return std::nullopt;
  if (!offsets.isRow(rowBits))
    return std::nullopt;
  sortRegisters(access, offsets);
  Vecs regs = offsets.reg, lanes = choosesRow;
  for (const unsigned bit : access.element)
    regs[bit] = 0;
  for (const unsigned bit : access.matrix)
    lanes.push_back(std::exchange(regs[bit], 0));
  lanes.resize(laneBits, 0);
  access.address = addressOf(offsets, regs, lanes, offset.numOutputs());
  return access;
}

SharedAccess bestAccess(const TileLayout &layout, const F2Map &offset, unsigned bits, bool hasMatrix) {
  const auto cost = [](const SharedAccess &access) { return std::pair(access.wavefronts(), access.instructions()); };
  SharedAccess best = vectorAccess(layout, offset, bits);
  for (const SharedOp op : {SharedOp::rows, SharedOp::columns})
    if (const std::optional<SharedAccess> access = matrixAccess(layout, offset, bits, op);
        hasMatrix && access && cost(*access) < cost(best))
      best = *access;
  return best;
}

// --- Properties of an access ---------------------------------------------------------------------------------------

unsigned SharedAccess::registerOf(unsigned round, unsigned instruction, unsigned matrix, unsigned element) const {
  return static_cast<unsigned>(depositBits(round, this->round) | depositBits(instruction, each) |
                               depositBits(matrix, this->matrix) | depositBits(element, this->element));
}

Vec SharedAccess::offsetOf(unsigned instruction, Thread thread) const {
  const Vec threads = Vec{thread.lane} | Vec{thread.warp} << laneBits;
  return address(threads << regBits() | depositBits(instruction, each));
}

// --- Banks ---------------------------------------------------------------------------------------------------------

/// Wavefronts of accesses of `bytes` bytes by some lanes: the largest number of words of any bank.
static unsigned wavefrontsOf(llvm::ArrayRef<Vec> addresses, unsigned bytes) {
  constexpr Vec numBanks = 32;
  llvm::SmallVector<Vec, 64> words;
  for (const Vec address : addresses)
    for (Vec word = address / 4; word * 4 < address + bytes; ++word)
      words.push_back(word);
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  std::array<unsigned, numBanks> counts{};
  for (const Vec word : words)
    ++counts[word % numBanks];
  return *std::max_element(counts.begin(), counts.end());
}

unsigned SharedAccess::wavefronts() const {
  // An exclusive or of all addresses with one number permutes the banks, so all instructions of all warps take equally
  // many.
  const unsigned bytes = op == SharedOp::vector ? (bits << element.size()) / 8 : 16;
  const unsigned lanes = op == SharedOp::vector ? numLanes : 8u << matrix.size();
  const unsigned atOnce = std::min(numLanes, 128 / bytes);
  const F2Map laneOffset(address.numOutputs(), address.columns().slice(regBits(), laneBits));
  unsigned perInstruction = 0;
  for (unsigned begin = 0; begin < lanes; begin += atOnce) {
    llvm::SmallVector<Vec, 32> addresses;
    for (unsigned lane = begin; lane < begin + atOnce; ++lane)
      addresses.push_back(laneOffset(lane) * bits / 8);
    perInstruction += wavefrontsOf(addresses, bytes);
  }
  return instructions() * perInstruction;
}

} // namespace kiln::simt
