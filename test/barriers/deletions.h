// What the simulator says when one instruction that orders accesses is missing from a kernel.
//
// A barrier that Kiln writes stands at the C++ line of the access that has to wait: `.loc` says so in the PTX. Without
// the barrier that access races with one before it, so that the deletion is *reported* when some finding names that
// line, as the place where it was seen or as the other access's. A finding that names other lines only is one
// *elsewhere*; without any, in all schedules, the deletion is *silent*.

#pragma once

#include "runtime/simulator/SimulatorDevice.h"
#include "test/forwarding_device.h"

#include <map>
#include <mutex>

namespace kiln::test {

/// An instruction that orders accesses: a barrier, a fence, a commit or a wait of asynchronous copies.
struct Ordering {
  size_t line = 0;         // of the PTX text, from 0
  std::string instruction; // as it stands there
  std::string place;       // `file:line` of the C++ source
};

/// All of a PTX text, in order.
std::vector<Ordering> orderingsOf(const std::string &ptx);

/// The text with that line empty.
std::string without(const std::string &ptx, size_t line);

struct Deletion {
  enum class Verdict { reported, elsewhere, silent };
  std::string kernel;
  int variant = 0; // of the kernel, from 1
  Ordering ordering;
  Verdict verdict = Verdict::silent;
  std::string said; // by the run that the verdict is of
};

/// A simulator that, before a launch, runs the kernel without each of its orderings, one at a time, until it was
/// reported: in three orders, and again at later launches, whose extents may be others. All memory is then put back.
class DeletingDevice : public ForwardingDevice {
public:
  /// Forgets what was compiled, so that every kernel is loaded by this device.
  explicit DeletingDevice(const std::shared_ptr<SimulatorDevice> &simulator);

  void *allocate(int64_t bytes) override;
  void release(void *memory) override;
  std::shared_ptr<const Executable> load(const std::string &kernel, Signature signature,
                                         const std::vector<char> &code) override;
  using Device::launch;
  void launch(const Executable &executable, const uint64_t *block) override;

  /// In the order of the kernels' first launches. Throws Error from launch() where a whole kernel has findings.
  const std::vector<Deletion> &deletions() const { return all; }

private:
  struct Kernel {
    std::shared_ptr<const Executable> executable;
    std::string ptx;
    bool wasLaunched = false;
    size_t first = 0, end = 0; // of its deletions
  };
  void judge(const Kernel &kernel, Deletion &deletion, const uint64_t *block);

  const std::shared_ptr<SimulatorDevice> simulator;
  std::mutex loading; // kernels are compiled several at a time
  std::map<const Executable *, Kernel> kernels;
  std::map<std::string, int> variants;
  std::map<void *, int64_t> memory; // bytes of each allocation
  std::vector<Deletion> all;
};

} // namespace kiln::test
