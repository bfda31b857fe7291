// The CPU that code is generated for.

#pragma once

#include <cstdint>
#include <string>

namespace kiln::lowering::cpu {

struct CpuTarget {
  std::string cpu;           // LLVM's name: "sapphirerapids", "x86-64-v3"
  std::string features;      // LLVM's feature string: "+avx512f,+fma,…"
  int vectorBits = 256;      // width of a native vector
  int registers = 16;        // native vector registers
  bool bf16Rounding = false; // it rounds vectors of f32 to bf16
  bool bf16Pairs = false;    // it adds two products of bf16 at a time faster than it widens and multiplies them
  bool fastPermutes = false; // it permutes the halves of a vector as fast as it widens and shifts them
  bool i8Quads = false;      // it adds four products of i8 at a time, faster than it widens and multiplies them
  bool tiles = false;        // it has AMX tiles with products of bf16 and i8, and the system permits their use
  int64_t l1Bytes = 32768, l2Bytes = 1 << 20;
};

/// The CPU of this machine; throws kiln::Error below x86-64-v3.
CpuTarget hostCpu();
/// A CPU by LLVM's name ("native" is the host), with changes to its features as in "-amx-tile,-amx-bf16". Throws
/// kiln::Error for an unknown one or one below x86-64-v3.
CpuTarget cpuNamed(const std::string &name, const std::string &features = "");

} // namespace kiln::lowering::cpu
