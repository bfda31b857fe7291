// A simulated GPU as a device: "simulator:sm_80" runs the PTX that this GPU would get, and checks it.
//
// A launch runs when it is called. What it did wrong (runtime/simulator/README.md lists what is looked for) is an Error
// of the next synchronize(). Memory has redzones round every allocation, holds NaN patterns until something is written,
// and is known to be gone for a while after its release, so that a kernel or a copy which touches it is told so.

#pragma once

#include "runtime/Device.h"

namespace kiln {

/// What a launch did. It is no time: see runtime/simulator/Metrics.h, which says what each number means.
struct LaunchCounts {
  std::string kernel;
  int64_t launch = 0;       // number of the launch on its device, from 1
  int64_t instructions = 0; // of warps
  int64_t sharedAccesses = 0, globalAccesses = 0;
  int64_t wavefronts = 0, idealWavefronts = 0; // of shared memory; without a bank conflict
  int64_t sectors = 0, idealSectors = 0;       // of global memory; if no byte of one went unused
  std::string table;                           // the same by line, as `kiln-sim --report` prints it
};

class SimulatorDevice : public Device {
public:
  /// Device::open for a name such as "simulator:sm_80"; throws Error when it is no simulator's.
  static std::shared_ptr<SimulatorDevice> open(const std::string &name);

  /// How launches run from now on: settings as KILN_SIM spells them, all others as they are without it. Throws Error
  /// for one that there is not.
  virtual void setSchedule(const std::string &settings) = 0;
  /// From now on counts what launches do, or stops; counting takes about as long again as running.
  virtual void setCounting(bool on) = 0;
  /// Lets kernels touch `bytes` of the host's memory, such as an array of another library, until takeBack(). Bytes
  /// round them are found out of bounds as those round an allocation. Throws Error where some are the device's already.
  virtual void lend(void *memory, int64_t bytes) = 0;
  virtual void takeBack(void *memory) = 0;
  /// What the last launch did; throws Error when none was counted.
  virtual const LaunchCounts &lastLaunch() const = 0;
};

/// The names of simulators.
std::vector<std::string> simulatorDevices();
/// The simulator called `name`, or null when there is none. Throws Error when KILN_SIM is wrong.
std::shared_ptr<SimulatorDevice> openSimulator(const std::string &name);

} // namespace kiln
