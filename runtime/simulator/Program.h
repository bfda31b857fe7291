// A kernel made ready to run: its instructions decoded once into steps that name a handler and places in a warp's
// registers.
//
// A register is 32 lanes of 4 bytes (types up to 32 bits, in the low bits, the rest 0) or 8 bytes; a predicate is one
// word with a bit a lane. Immediates and special registers are registers like others, filled before the first step, so
// that an operand is always a byte offset into the frame.

#pragma once

#include "runtime/simulator/SharedNames.h"
#include "runtime/simulator/ptx/Module.h"

#include <array>
#include <cstring>
#include <memory>

namespace kiln::simulator {

/// What every GPU has at most: of static shared memory a block, of a kernel's parameters, of local memory a thread.
inline constexpr int64_t mostStaticSharedBytes = 48 << 10, mostParameterBytes = 32764, mostLocalBytes = 512 << 10;

inline constexpr int lanesOfWarp = 32;
using Mask = uint32_t;
inline constexpr Mask allLanes = ~Mask{0};
/// Registers begin at multiples of this in a frame: a predicate takes no more.
inline constexpr uint32_t slotBytes = 64;

class Warp;
struct Step;
using Handler = void (*)(Warp &, const Step &);

/// One decoded instruction. What a handler finds in `slots` and `detail` is its own business.
struct Step {
  static constexpr uint32_t none = ~uint32_t{0}, everyLane = none - 1;
  Handler run = nullptr;
  std::array<uint32_t, 5> slots = {none, none, none, none, none}; // byte offsets in the frame, results first
  uint32_t guard = none;
  bool guardNegated : 1 = false;
  bool isBranch : 1 = false;
  bool counts : 1 = false;  // as an instruction of the text: the last of its steps
  bool changes : 1 = false; // more than registers and local memory; loads, stores and atomics say themselves
  /// So many steps from this one on have no guard and touch nothing but their lanes' registers.
  uint16_t plain = 0;
  uint32_t list = 0, count = 0; // more slots, in Code::lists
  /// Of an instruction that lanes do together, the slot of its mask of lanes, or everyLane.
  uint32_t members = none;
  uint64_t detail = 0;
  int target = -1; // of a branch: a step; of a call: a function of the program
  int join = -1;   // of a branch: the step where its sides meet again, −1 at the function's end
};

/// A decoded function.
struct Code {
  std::string name;
  std::vector<Step> steps;
  std::vector<ptx::Place> places; // of each step
  /// The instruction of its function that each step is; −1 for steps beside it.
  std::vector<int> instructions;
  std::vector<uint32_t> lists;
  std::vector<std::vector<int>> targets; // of brx.idx
  /// Bytes of each result and parameter, with the number of results before them.
  std::vector<uint32_t> signature;
  /// What an indirect call takes a function for, and the codes that it may be, any when there are none.
  struct CallSite {
    std::vector<uint32_t> signature;
    std::vector<int> allowed;
  };
  std::vector<CallSite> callSites;
  std::vector<char> image; // the frame's first bytes: immediates
  uint32_t frameBytes = 0;
  uint32_t localBytes = 0; // of each lane: .local and .param variables
  struct SpecialSlot {
    int special;
    uint32_t slot;
    bool wide;
  };
  std::vector<SpecialSlot> specials;
  /// Addresses of variables in the function's own part of local memory: where that part begins, plus an offset.
  struct FrameAddress {
    uint64_t offset;
    uint32_t slot;
    bool wide;
  };
  std::vector<FrameAddress> frameAddresses;
  /// A register that a step reads or writes.
  struct Touch {
    uint32_t slot;
    bool isResult;
  };
  /// A step that touches registers of a wgmma: what it would run, and these registers.
  struct Watched {
    Handler run = nullptr;
    std::vector<Touch> touches;
  };
  std::vector<Watched> watched; // by step; empty in a function without wgmma
};

/// A parameter of a kernel: where its bytes lie in the parameter block, and what they are declared as.
struct Parameter {
  std::string name;
  uint32_t offset = 0, bytes = 0;
  ptx::Type type = ptx::Type::b8; // of an element
};

/// A variable of a module, and its memory.
struct PlacedVariable {
  std::string_view name; // in the module's text
  void *place = nullptr;
};

/// A kernel with all functions that it can reach.
struct Program {
  std::string name;
  std::vector<Code> codes; // the kernel first
  /// By functions of the module: which of the codes it is; −1: the kernel does not reach it.
  std::vector<int> codeOfFunction;
  /// The code of the function at an address, −1 when there is none.
  int codeAt(uint64_t address) const;
  std::vector<Parameter> parameters;
  uint32_t parameterBytes = 0;
  uint32_t sharedBytes = 0;  // static; dynamic shared memory begins here, at a multiple of 1024 when there is any
  uint32_t staticShared = 0; // of it, what a GPU counts
  int64_t mostShared = 0;    // that a block may have on the GPU that the program is for
  std::array<int, 3> block = {0, 0, 0}; // as the text says: exactly, or at most so many threads; zeros: it does not
  bool blockIsFixed = false;
  SharedNames sharedNames;
  int maxRegisters = 0; // of a thread, as the text says; 0: it does not
  std::vector<PlacedVariable>
      variables; // those of the module that are used; whoever built the program may release them
  std::shared_ptr<const ptx::Module> module;

  /// `file:line` of the C++ source if the text has it, else the PTX line.
  std::string textOf(const ptx::Place &place) const;
  /// The place of a step on a line of the PTX text.
  ptx::Place placeOf(int line) const;
};

} // namespace kiln::simulator
