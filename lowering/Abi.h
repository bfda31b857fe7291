// The ABI: the contract between generated code and its caller, on all machines.
//
// A kernel `k` is one function. Its argument block is a packed little-endian struct of 8-byte slots:
//
//     int64 grid[3];                     // extents of the launch grid
//     for each parameter, in order:
//       view:   void *data; then each dynamic extent (int64); then each dynamic stride (int64, in elements)
//       scalar: one slot; a narrower value lies in its low bytes
//
// On a CPU it is called once per program:
//
//     void k(const void *args, int64_t program, void *scratch);
//
// Here program = x + grid[0] * (y + grid[1] * z). `scratch` is 64-byte aligned memory of the thread. Its size is the
// object's constant `int64_t k_scratch_bytes`. An object may call only the functions below.
//
// On a GPU it is an entry of a PTX module with one 8-byte parameter per slot, in this order. A program is a CTA with as
// many threads as `.reqntid`; its coordinates are %ctaid. A module may also have:
//
// - `k_shared_bytes` (.b64): the bytes of dynamic shared memory, in addition to the shared variables of the module.
//   Comments of the module name the buffers in it.
// - `kiln_console`, a GpuConsole, and texts, variables `text_N` of zero-terminated bytes, if the kernel checks or
// prints.
// - `table_N`: constants of several values.
//
// A device loads an ELF object for a CPU, and the text of the module for a GPU. A target that makes cubins, such as
// sm_80:cubin, appends a zero byte and the cubin of that text; otherwise the driver compiles the PTX.

#pragma once

#include "dialect/tile/Limits.h"

#include <cstdint>

namespace kiln::abi {
inline constexpr int64_t gridSlots = 3;
/// The content of a slot after the grid: pointer, extent or stride of a view, or a scalar. Backend.h lists the slots of
/// a kernel.
struct Slot {
  enum Kind : uint8_t { pointer, extent, stride, scalar } kind = pointer;
  int argument = 0;
  int dimension = 0; // of an extent or stride
  bool operator==(const Slot &) const = default;
};
inline constexpr int64_t scratchAlignment = 64;
using CpuKernel = void (*)(const void *args, int64_t program, void *scratch);
inline constexpr const char *scratchSuffix = "_scratch_bytes";
inline constexpr const char *sharedSuffix = "_shared_bytes";
/// Begins a comment that names a buffer in a kernel's shared memory; KERNEL OFFSET BYTES NAME follow.
inline constexpr const char *sharedPart = "// kiln.shared ";
inline constexpr const char *checkFailed = "kiln_check_failed";
inline constexpr const char *printTile = "kiln_print";
inline constexpr const char *waits = "kiln_waits";

inline constexpr const char *consoleVariable = "kiln_console", *textPrefix = "text_", *tablePrefix = "table_";
/// Output of GPU programs in device memory, until the host reads it. All zero at first.
struct GpuConsole {
  static constexpr uint64_t lineBytes = 1 << 20;
  uint64_t launch = 0; // number of the running launch, from 1; the host writes it before the launch
  // The failed check of the earliest launch, and there of the lowest program.
  uint32_t lock = 0, unused = 0; // 1 while a program writes the next fields
  uint64_t failedLaunch = 0;     // 0: none
  uint64_t program = 0, element = 0;
  uint32_t message = 0, where = 0; // indices of texts
  /// Bytes that all lines needed, including those for which there was no room. A line is a GpuLine, then its elements,
  /// dense, padded to a multiple of 8.
  uint64_t printed = 0;
  char lines[lineBytes] = {};
};
/// The header of a line.
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
/// Prints a tile. It has `rank` extents at `extents`, and elements of type `type`, kiln::Type as a number, dense in
/// row-major order at `data`. bool and i8 are bytes, bf16 is 2 bytes, ….
void kiln_print(const char *label, int64_t program, int32_t type, int64_t rank, const int64_t *extents,
                const void *data);
/// An iteration of a loop that does nothing except wait for memory to change has ended. `again` says whether the
/// program goes on waiting. If the result is not 0, it would wait forever, and the loop must end. `where` is as above.
int64_t kiln_waits(const char *where, int64_t program, int64_t again);
}
