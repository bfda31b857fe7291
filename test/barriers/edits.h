// The simulator's findings after an edit of a kernel: one instruction that orders accesses, or that copies to a ring of
// slots in shared memory, is replaced or removed.
//
// A barrier that Kiln inserts has the C++ line of the access that must wait, in a `.loc` of the PTX. Without the
// barrier, that access races with an earlier one. The edit is *reported* if some finding names that line, as its own or
// as that of the other access. If findings name other lines only, or if a launch does not end, the edit is *elsewhere*.
// Without findings in all schedules, results may be *wrong*; otherwise the edit is *silent*.

#pragma once

#include "runtime/simulator/SimulatorDevice.h"
#include "test/forwarding_device.h"

#include <map>
#include <mutex>

namespace kiln::test {

/// A change of one instruction.
struct Edit {
  size_t line = 0;                     // of the PTX text, from 0
  std::string instruction;             // in the original text
  std::string place;                   // `file:line` of the C++ source
  std::string what;                    // is changed
  bool ofCopy = false;                 // or of instructions that order accesses
  std::map<size_t, std::string> lines; // of the text, that become others
};

/// All edits of a PTX text, in order. Operations that order accesses (a barrier, a fence, a commit or a wait of
/// asynchronous copies) are *deleted*. The order of an atomic *releases nothing*, or *acquires nothing*. A wait for
/// groups of copies leaves *one more pending*, or moves *behind the barrier* that follows it last before the slot is
/// read. A copy goes *to the next slot*; a slot is a part of its buffer (`// kiln.shared`), as large as the awaited
/// groups imply. A copy copies *all bytes*, where it would fill up with zeros, or is done *in every round*, without
/// its predicate.
std::vector<Edit> editsOf(const std::string &ptx);

/// The text with the edit's lines.
std::string edited(const std::string &ptx, const Edit &edit);

struct Verdict {
  enum class Kind { reported, elsewhere, wrong, silent };
  std::string kernel;
  int variant = 0; // of the kernel, from 1
  Edit edit;
  Kind kind = Kind::silent;
  std::string said; // by the run that the verdict is of
};

/// A simulator that, before a launch, runs the kernel with each of its edits, one at a time, until it was reported: in
/// three orders with three deliveries, and again at later launches, whose extents may differ. All memory is then
/// restored.
class EditingDevice : public ForwardingDevice {
public:
  /// Clears the compilation caches, so that this device loads every kernel. With `copies`, copies to rings are edited,
  /// too. Their handling of edges and of unused copies shows only at extents that have these.
  explicit EditingDevice(const std::shared_ptr<SimulatorDevice> &simulator, bool copies);

  void *allocate(int64_t bytes) override;
  void release(void *memory) override;
  std::shared_ptr<const Executable> load(const std::string &kernel, Signature signature,
                                         const std::vector<char> &code) override;
  using Device::launch;
  void launch(const Executable &executable, const uint64_t *block) override;

  /// In the order of the kernels' first launches. launch() throws Error if an unedited kernel has findings.
  const std::vector<Verdict> &verdicts() const { return all; }

private:
  struct Kernel {
    std::shared_ptr<const Executable> executable;
    std::string ptx;
    bool wasLaunched = false;
    size_t first = 0, end = 0; // of its edits
  };
  /// The content of all memory.
  using Image = std::map<void *, std::vector<char>>;
  Image image() const;
  void put(const Image &image);
  /// Runs a kernel in a schedule; returns its reports, or nothing.
  std::string said(const Executable &executable, const uint64_t *block, const std::string &schedule);
  void judge(const Kernel &kernel, Verdict &verdict, const uint64_t *block, const Image &before,
             const std::map<std::string, Image> &right);

  const std::shared_ptr<SimulatorDevice> simulator;
  const bool copies;
  std::mutex loading; // kernels are compiled several at a time
  std::map<const Executable *, Kernel> kernels;
  std::map<std::string, int> variants;
  std::map<void *, int64_t> memory; // bytes of each allocation
  std::vector<Verdict> all;
};

} // namespace kiln::test
