// Finds loads whose bytes are only stored again, so that uninitialised ones are no error: of a structure with its
// padding, or of a word in which a bit field is replaced:
//
//     ld.u32 %r1, [%rd3];  and.b32 %r2, %r1, -256;  or.b32 %r3, %r2, %r5;  st.u32 [%rd3], %r3;

#include "runtime/simulator/Access.h"

#include <algorithm>

namespace kiln::simulator {

using ptx::Operand;

namespace {
class Copies {
public:
  Copies(const ptx::Function &function, const std::vector<ptx::Use> &uses)
      : function(function), readsOf(function.registers.size()), writesOf(function.instructions.size()) {
    for (const ptx::Use &use : uses)
      (use.isWrite ? writesOf[static_cast<size_t>(use.instruction)] : readsOf[static_cast<size_t>(use.reg)])
          .push_back(use.isWrite ? use.reg : use.instruction);
  }

  bool isCopy(int number) const {
    const ptx::Instruction &load = instruction(number);
    const std::vector<int> &results = writesOf[static_cast<size_t>(number)];
    const auto all = [&](const auto &holds) { return std::all_of(results.begin(), results.end(), holds); };
    return load.opcode == "ld" && (all([&](int reg) { return isOnlyStored(reg); }) ||
                                   all([&](int reg) { return isPutBack(reg, function.operandsOf(load)[1], most); }));
  }

private:
  /// Most instructions between such a load and its store.
  static constexpr int most = 8;

  const ptx::Instruction &instruction(int number) const { return function.instructions[static_cast<size_t>(number)]; }

  /// Whether a store stores this register.
  bool isStored(const ptx::Instruction &store, int reg) const {
    if (store.opcode != "st" || store.guard == reg)
      return false;
    const Operand &to = function.operandsOf(store)[0];
    return !(to.kind == Operand::Kind::address && to.base == Operand::Kind::reg && to.index == reg);
  }

  bool isOnlyStored(int reg) const {
    const std::vector<int> &reads = readsOf[static_cast<size_t>(reg)];
    return !reads.empty() &&
           std::all_of(reads.begin(), reads.end(), [&](int read) { return isStored(instruction(read), reg); });
  }

  /// Whether a register's only use is to be stored at `address`, possibly combined with other bits.
  bool isPutBack(int reg, const Operand &address, int effort) const {
    const std::vector<int> &reads = readsOf[static_cast<size_t>(reg)];
    return effort > 0 && !reads.empty() && std::all_of(reads.begin(), reads.end(), [&](int read) {
             const ptx::Instruction &reader = instruction(read);
             if (reader.guard == reg)
               return false;
             if (isStored(reader, reg)) {
               const Operand &to = function.operandsOf(reader)[0];
               return to.kind == Operand::Kind::address && address.kind == Operand::Kind::address &&
                      to.base == address.base && to.index == address.index && to.isLocal == address.isLocal &&
                      to.bits == address.bits;
             }
             const std::vector<int> &results = writesOf[static_cast<size_t>(read)];
             return (reader.opcode == "and" || reader.opcode == "or" || reader.opcode == "bfi") &&
                    results.size() == 1 && isPutBack(results[0], address, effort - 1);
           });
  }

  const ptx::Function &function;
  std::vector<std::vector<int>> readsOf;  // for each register: the instructions that read it
  std::vector<std::vector<int>> writesOf; // for each instruction: the registers that it writes
};
} // namespace

void markCopies(const ptx::Function &function, const std::vector<ptx::Use> &uses, Code &code) {
  const Copies copies(function, uses);
  for (size_t i = 0; i < code.steps.size(); ++i)
    if (const int number = code.instructions[i]; number >= 0 && copies.isCopy(number)) {
      AccessShape shape = AccessShape::unpack(code.steps[i].target);
      shape.isCopy = true;
      code.steps[i].target = shape.pack();
    }
}

} // namespace kiln::simulator
