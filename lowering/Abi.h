// The contract between generated code and whoever runs it, the same on all machines.
//
// A kernel `k` is one function. Its argument block is a packed little-endian struct of 8-byte slots:
//
//     int64 grid[3];                     // extents of the launch grid
//     for each parameter, in order:
//       view:   void *data; then each dynamic extent (int64); then each dynamic stride (int64, in elements)
//       scalar: one slot; a narrower value lies in its low bytes
//
// On a CPU it is called once for each program:
//
//     void k(const void *args, int64_t program, void *scratch);
//
// with program = x + grid[0] * (y + grid[1] * z), and `scratch` 64-byte aligned memory of the thread, as many bytes as
// the object's constant `int64_t k_scratch_bytes` says. The functions below are all that an object may call.
//
// On a GPU it is an entry of a PTX module with one 8-byte parameter for each slot, in the same order. A program is a
// block, of as many threads as `.reqntid` says; its coordinates are %ctaid. Beside the shared variables of the module
// it has as many bytes of dynamic shared memory as the module's constant `k_shared_bytes` (.b64) says, none without
// one; comments of the module say which buffers lie where in it. A module whose kernel checks or prints has a variable
// `kiln_console`, a GpuConsole, and its texts, variables `text_N` of bytes that end with a zero. Constants of several
// values are variables `table_N`.
//
// The code that a device loads is an ELF object for a CPU and the module's text for a GPU. A target that makes cubins,
// such as sm_80:cubin, appends a zero byte and the cubin of that text, for a driver that would else translate it.

#pragma once

#include "dialect/tile/Limits.h"

#include <cstdint>

namespace kiln::abi {
inline constexpr int64_t gridSlots = 3;
/// What a slot after the grid holds: the pointer, an extent or a stride of a view, or a scalar. Slots.h lists a
/// kernel's.
struct Slot {
  enum Kind : uint8_t { pointer, extent, stride, scalar } kind = pointer;
  int argument = 0;
  int dimension = 0; // of an extent or stride
};
inline constexpr int64_t scratchAlignment = 64;
using CpuKernel = void (*)(const void *args, int64_t program, void *scratch);
inline constexpr const char *scratchSuffix = "_scratch_bytes";
inline constexpr const char *sharedSuffix = "_shared_bytes";
/// Begins a comment that names a part of a kernel's shared memory; then come KERNEL OFFSET BYTES NAME.
inline constexpr const char *sharedPart = "// kiln.shared ";
inline constexpr const char *checkFailed = "kiln_check_failed";
inline constexpr const char *printTile = "kiln_print";

inline constexpr const char *consoleVariable = "kiln_console", *textPrefix = "text_", *tablePrefix = "table_";
/// What programs of a GPU say, in memory of the device, until the host reads it. All zero at first.
struct GpuConsole {
  static constexpr uint64_t lineBytes = 1 << 20;
  uint64_t launch = 0; // the number of the launch that runs, from 1; the host writes it before
  // The check that failed first: in the first launch, of that in the lowest program.
  uint32_t lock = 0, unused = 0; // 1 while a program writes what follows
  uint64_t failedLaunch = 0;     // 0: none
  uint64_t program = 0, element = 0;
  uint32_t message = 0, where = 0; // numbers of texts
  /// Bytes of lines that there was or would have been room for: GpuLine, then its elements, dense, then up to a
  /// multiple of 8.
  uint64_t printed = 0;
  char lines[lineBytes] = {};
};
/// The head of a line.
struct GpuLine {
  uint64_t launch, program;
  uint32_t label, type, rank, bytes; // bytes: of the whole line; type: kiln::Type as a number
  int64_t extents[5];
};
} // namespace kiln::abi

extern "C" {
/// An element of a check was false. `message` and `where` (`file:line`) are zero-terminated constants of the object;
/// `element` is the row-major index of the first failing element. Records the first failure and returns.
void kiln_check_failed(const char *message, const char *where, int64_t program, int64_t element);
/// Prints a tile: `rank` extents at `extents`, elements of type `type` (kiln::Type as a number; bool and i8 as bytes,
/// bf16 as 2 bytes, …) dense in row-major order at `data`.
void kiln_print(const char *label, int64_t program, int32_t type, int64_t rank, const int64_t *extents,
                const void *data);
}
