// Shared by the simulator's tests: running PTX text on buffers, and one instruction on many operands.

#pragma once

#include "dialect/dsl/Types.h"
#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/Launch.h"
#include "runtime/simulator/ptx/Parser.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace kiln::simulator::test {

using Column = std::vector<uint64_t>;

/// A place of memory as an argument of a kernel.
inline uint64_t address(const void *place) { return reinterpret_cast<uint64_t>(place); }

/// A launch that the simulator has run and found nothing wrong with.
struct Launched {
  const std::string &text, &kernel;
  const Extents &grid, &block;
  const std::vector<char> &parameters; // as they lie in memory
  uint32_t dynamicShared;
  struct Buffer {
    char *place; // what it holds now
    std::vector<char> before;
  };
  const std::vector<Buffer> &buffers;
  const Memory &memory;      // in which they lie, with whatever else the test has made
  const std::string &varies; // why a GPU may leave other results; empty where it may not
};

/// A module and the memory that its kernels run on.
class Machine {
public:
  explicit Machine(const std::string &text) : module(std::make_shared<ptx::Module>(ptx::parse(text))), text(text) {}

  /// If set, called after every launch described by Launched.
  inline static std::function<void(const Launched &)> observer;

  /// Device memory with these elements.
  template <class T> T *buffer(const std::vector<T> &values) {
    auto *place = static_cast<T *>(memory.allocate(static_cast<int64_t>(values.size() * sizeof(T))));
    std::copy(values.begin(), values.end(), place);
    buffers.push_back({reinterpret_cast<char *>(place), std::vector<char>(values.size() * sizeof(T))});
    return place;
  }
  /// Runs the kernel with 8-byte or 4-byte parameters, as the kernel declares them.
  void run(const std::string &kernel, const Extents &grid, const Extents &block, const std::vector<uint64_t> &arguments,
           uint32_t dynamicShared = 0, Schedule schedule = {});
  /// With a parameter block given as bytes.
  void runBlock(const std::string &kernel, const Extents &grid, const Extents &block,
                const std::vector<char> &parameters, uint32_t dynamicShared = 0, Schedule schedule = {});
  /// `check: text` of each finding, without the thread.
  std::vector<std::string> found() const;

  Memory memory;
  Findings findings;
  std::string printed; // by all launches
  std::string varies;  // a test's word why a GPU may leave other results than the simulator

private:
  std::shared_ptr<const ptx::Module> module;
  const std::string text;
  std::vector<Launched::Buffer> buffers;
};

/// `.version` and `.target` lines before `body`.
std::string module(const std::string &body);
/// A kernel `k` with pointers %p0, %p1, … as 8-byte parameters; thread number in %t, and its eightfold in %o.
std::string kernel(int pointers, const std::string &registers, const std::string &body);

/// The PTX of another compiler, of the source next to it in compiled/.
std::string compiled(const std::string &name);

/// A text of kernel(), for the first GPU of which the simulator takes it.
std::string forFirstTarget(const std::string &text);

/// For sm_90a. If there is a ptxas, it must accept the text; AcceptanceTest says if there is none.
std::string hopperKernel(int pointers, const std::string &registers, const std::string &body);
/// Whether there is a ptxas.
bool hasPtxas();
/// Runs it, with words of the shell as its arguments; its exit status.
int runPtxas(const std::string &arguments);

/// The results of one instruction, `add.s32 %d, %a, %b;`, for every row of the operands' columns. Types are those of
/// the registers: `b16`, `b32`, `b64` or `pred`. `varies` is Machine's.
Column evaluate(const std::string &instruction, const std::string &resultType, const std::vector<std::string> &types,
                const std::vector<Column> &operands, const std::string &varies = "");

/// Every pair (triple) of the values: the first, second (and third) column.
std::vector<Column> combinations(const Column &values, size_t columns);

/// Runs the instruction on all combinations of `values` and compares the results with `want` of these operands; prints
/// the first differences. `same` compares, or else equality.
void expectEach(const std::string &instruction, const std::string &resultType, const std::vector<std::string> &types,
                const Column &values, const std::function<uint64_t(const Column &row)> &want,
                const std::function<bool(uint64_t got, uint64_t want)> &same = {});

inline const Column words16 = {0, 1, 2, 7, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xfffe, 0xffff, 0x1234};
inline const Column words32 = {0,      1,      2,       31,         32,         33,         0x7f,       0xff,
                               0x8000, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff, 0x12345678};
inline const Column words64 = {0,
                               1,
                               2,
                               63,
                               64,
                               0x7fffffff,
                               0x80000000,
                               0xffffffff,
                               0x100000000,
                               0x7fffffffffffffff,
                               0x8000000000000000,
                               0xfffffffffffffffe,
                               0xffffffffffffffff,
                               0x123456789abcdef0};
/// f32 and f64 words: zeros, ones, denormals, ends, infinities, NaN, numbers that round.
extern const Column floats32, floats64;
/// Whether two f32 (f64) words are equal numbers, with all NaN equal.
bool sameFloat(uint64_t got, uint64_t want);
bool sameDouble(uint64_t got, uint64_t want);

} // namespace kiln::simulator::test
