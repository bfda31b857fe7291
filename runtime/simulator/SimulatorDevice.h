// A simulated GPU as a device: "simulator:sm_80" runs the PTX that this GPU would get, and checks it.
//
// A launch runs inside the call. Its findings (runtime/simulator/README.md lists the checks) are an Error of the next
// synchronize(). Every allocation has redzones. Memory holds NaN patterns until it is written. Released memory stays
// known for a while, so that a kernel or a copy that touches it is reported.

#pragma once

#include "runtime/Device.h"

namespace kiln {

/// Counts of a launch, without times; runtime/simulator/Metrics.h defines each number.
struct LaunchCounts {
  std::string kernel;
  int64_t launch = 0;       // number of the launch on its device, from 1
  int64_t instructions = 0; // warp instructions
  int64_t sharedAccesses = 0, globalAccesses = 0;
  int64_t wavefronts = 0, idealWavefronts = 0; // of shared memory; without bank conflicts
  int64_t sectors = 0, idealSectors = 0;       // of global memory; if every byte of each sector were used
  std::string table;                           // counts by line, as `kiln-sim --report` prints them
};

namespace simulator {
struct Program;
class Metrics;
struct Finding;
} // namespace simulator

/// A launch with all that was counted and found (runtime/simulator: Program.h, Metrics.h, Findings.h).
struct LaunchRecord {
  std::shared_ptr<const simulator::Program> program;
  std::shared_ptr<const simulator::Metrics> metrics;
  std::vector<simulator::Finding> findings;
  int64_t sharedBytes = 0; // of a program, static and dynamic
};

class SimulatorDevice : public Device {
public:
  /// Device::open for a name such as "simulator:sm_80"; throws Error for any other name.
  static std::shared_ptr<SimulatorDevice> open(const std::string &name);

  /// The schedule of later launches: settings in the form of KILN_SIM; others get their defaults. Throws Error for an
  /// unknown setting.
  virtual void setSchedule(const std::string &settings) = 0;
  /// Turns counting on or off for later launches. Counting about doubles the time of a launch.
  virtual void setCounting(bool on) = 0;
  /// Lets kernels touch `bytes` of the host's memory, such as an array of another library, until takeBack(). Bytes
  /// round them are found out of bounds as those round an allocation. Throws Error where some are the device's already.
  virtual void lend(void *memory, int64_t bytes) = 0;
  virtual void takeBack(void *memory) = 0;
  /// The counts of the last launch; throws Error if none was counted.
  virtual const LaunchCounts &lastLaunch() const = 0;
  /// The last launch that was counted, step by step; throws Error if there was none.
  virtual const LaunchRecord &lastRecord() const = 0;
};

/// The names of simulators.
std::vector<std::string> simulatorDevices();
/// The simulator with this name, or null. Throws Error if KILN_SIM is invalid.
std::shared_ptr<SimulatorDevice> openSimulator(const std::string &name);

} // namespace kiln
