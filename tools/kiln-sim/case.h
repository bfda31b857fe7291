// Cases of a corpus: a folder with a kernel, its launch, its inputs and what must come out.
//
//     kernel.ptx
//     case.json    {"kernel": "add", "grid": [4, 1, 1], "block": [128, 1, 1], "shared": 0, "args": [ARGUMENT, ...]}
//
// An argument's `kind` is `buffer` (a `file` in the folder: what it holds before the launch; with `want`, `atol` and
// `rtol` what it must hold afterwards; `bits` names a format that NumPy lacks: bf16, e4m3, e5m2), `scratch` (`bytes`),
// `i32`, `i64`, `f32` (a `value`), `null`, or `tensormap` (tensor_map.h; of the array of argument `buffer`, or of one
// that the fields of a `buffer` describe).

#pragma once

#include "runtime/simulator/Launch.h"
#include "runtime/simulator/TensorMap.h"

#include <string>
#include <vector>

namespace kiln::simulator {

/// An array as its file has it.
struct CaseArray {
  std::string descr; // NumPy's name of the type: `<f4`
  std::string data;
};

struct CaseArgument {
  std::string kind;
  std::string name; // of the file, for messages
  CaseArray before, want;
  std::string bits;
  double atol = 0, rtol = 0;
  uint64_t value = 0; // of a number; of an array its address, once it is placed
  int64_t bytes = 0;  // of a scratch
  TensorMapDescription map;
  int64_t mapped = -1; // argument whose array a tensor map describes; −1: its own
};

struct Case {
  std::string text; // PTX
  std::string kernel;
  Extents grid, block;
  uint32_t shared = 0;
  std::vector<CaseArgument> arguments;
};

/// Reads a case; throws Error where the folder holds none.
Case readCase(const std::string &folder);

/// Puts the case's arrays into memory, and returns the parameter block.
std::vector<char> placeCase(Case &item, const Program &program, Memory &memory);

/// A line for each array that does not hold what it must, empty when all do.
std::string compareCase(const Case &item);

} // namespace kiln::simulator
