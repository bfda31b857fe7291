// A decoded kernel. Each instruction is decoded once into steps, which name a handler and slots in a warp's registers.
//
// A register is 32 lanes of 4 bytes (types up to 32 bits, zero-extended) or 8 bytes. A predicate is one word with a bit
// per lane. Immediates and special registers are registers that are filled before the first step. So an operand is
// always a byte offset into the frame.

#pragma once

#include "runtime/simulator/PlaceNames.h"
#include "runtime/simulator/ptx/Module.h"

#include <array>
#include <cstring>
#include <memory>

namespace kiln::simulator {

/// Limits of every GPU: static shared memory of a CTA, parameters of a kernel, local memory of a thread.
inline constexpr int64_t maxStaticSharedBytes = 48 << 10, maxParameterBytes = 32764, maxLocalBytes = 512 << 10;

inline constexpr int lanesOfWarp = 32;

/// Precedes a loop over the lanes whose iterations are independent: two registers are equal or do not overlap. Clang
/// would unroll such a loop before it could vectorise it.
#ifdef __clang__
#define KILN_VECTORISE_LANES _Pragma("clang loop vectorize(assume_safety) unroll(disable)")
#else
#define KILN_VECTORISE_LANES _Pragma("GCC ivdep")
#endif
using Mask = uint32_t;
inline constexpr Mask allLanes = ~Mask{0};
/// Registers begin at multiples of this in a frame; a predicate takes no more.
inline constexpr uint32_t slotBytes = 64;

class Warp;
struct Step;
using Handler = void (*)(Warp &, const Step &);

/// One decoded instruction. Each handler defines the meaning of `slots` and `detail`.
struct Step {
  static constexpr uint32_t none = ~uint32_t{0}, everyLane = none - 1;
  Handler run = nullptr;
  std::array<uint32_t, 5> slots = {none, none, none, none, none}; // byte offsets in the frame, results first
  uint32_t guard = none;
  bool guardNegated : 1 = false;
  bool isBranch : 1 = false;
  bool counts : 1 = false;  // as an instruction of the text: the last of its steps
  bool changes : 1 = false; // state other than registers and local memory; loads, stores and atomics decide at run time
  /// The number of steps from this one on that have no guard and touch only registers of their lanes.
  uint16_t plain = 0;
  uint32_t list = 0, count = 0; // further slots, in Code::lists
  /// For an instruction that lanes execute together: the slot of its lane mask, or everyLane.
  uint32_t members = none;
  uint64_t detail = 0;
  int target = -1; // of a branch: a step; of a call: a function of the program
  int join = -1;   // of a branch: the step where its sides reconverge, −1 at the function's end
};

/// A decoded function.
struct Code {
  std::string name;
  std::vector<Step> steps;
  std::vector<ptx::Place> places; // by step
  /// By step: the instruction of the function; −1 for additional steps.
  std::vector<int> instructions;
  std::vector<uint32_t> lists;
  std::vector<std::vector<int>> targets; // of brx.idx
  /// The bytes of each result and parameter, preceded by the number of results.
  std::vector<uint32_t> signature;
  /// The signature that an indirect call expects, and the allowed codes; any if there are none.
  struct CallSite {
    std::vector<uint32_t> signature;
    std::vector<int> allowed;
  };
  std::vector<CallSite> callSites;
  std::vector<char> image; // the first bytes of the frame: immediates
  uint32_t frameBytes = 0;
  uint32_t localBytes = 0; // per lane: .local and .param variables
  struct SpecialSlot {
    int special;
    uint32_t slot;
    bool wide;
  };
  std::vector<SpecialSlot> specials;
  /// Addresses of variables in the function's own part of local memory: the begin of that part plus an offset.
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
  /// A step that touches registers of a wgmma: the handler that it replaces, and these registers.
  struct Watched {
    Handler run = nullptr;
    std::vector<Touch> touches;
  };
  std::vector<Watched> watched; // by step; empty in a function without wgmma
};

/// A parameter of a kernel: its place in the parameter block, and its declared type.
struct Parameter {
  std::string name;
  uint32_t offset = 0, bytes = 0;
  ptx::Type type = ptx::Type::b8; // of an element
};

/// A variable of a module with its memory.
struct PlacedVariable {
  std::string_view name; // in the module's text
  void *place = nullptr;
};

/// A kernel and all functions that it can reach.
struct Program {
  std::string name;
  std::vector<Code> codes; // the kernel first
  /// By function of the module: the index of its code; −1 if the kernel does not reach it.
  std::vector<int> codeOfFunction;
  /// The code of the function at an address, −1 if there is none.
  int codeAt(uint64_t address) const;
  std::vector<Parameter> parameters;
  uint32_t parameterBytes = 0;
  uint32_t sharedBytes = 0;             // static; dynamic shared memory begins here, at a multiple of 1024
  uint32_t staticShared = 0;            // the part that NVIDIA's limit counts
  int64_t maxShared = 0;                // maximum of a CTA on the target GPU
  std::array<int, 3> block = {0, 0, 0}; // from the text: exact or maximum threads; zeros: not stated
  bool blockIsFixed = false;
  SharedNames sharedNames;
  int maxRegisters = 0; // per thread, from the text; 0: not stated
  /// The used variables of the module; the builder of the program may release them.
  std::vector<PlacedVariable> variables;
  std::shared_ptr<const ptx::Module> module;

  /// `file:line` of the C++ source if the text has it, else the PTX line.
  std::string textOf(const ptx::Place &place) const;
  /// The place of a step on a line of the PTX text.
  ptx::Place placeOf(int line) const;
};

} // namespace kiln::simulator
