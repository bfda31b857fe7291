// A timeline: stretches of time on tracks, as a file for Chrome's about://tracing and Perfetto ("Trace Event Format",
// JSON object form).

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kiln {

/// Tracks: the host thread that runs the steps, the device, and batch preparation.
enum class Track { host, device, data };

struct Stretch {
  Track track = Track::host;
  std::string name;          // of a launch: its label, the part of the network that it belongs to
  std::string kind;          // of a launch: its kernel
  double begin = 0, end = 0; // seconds, on one clock for all
  double flops = 0;          // of a launch: operations of its GEMMs
  int64_t bytes = 0;         // of a launch: bytes it moves
  std::string shapes = {};   // of a launch: shapes of its arguments
  double seconds() const { return end - begin; }
};

/// The roofline of a machine: its peaks; 0: unknown.
struct Roof {
  double flops = 0, bytes = 0; // per second
  std::string what = {};       // names the peaks
  /// A launch's share of the roofline: the least time that its GEMMs and its bytes take, over its own time. Below 0 if
  /// unknown.
  double shareOf(double flops, double bytes, double seconds) const;
};

struct TraceFacts {
  std::string device, clock; // the machine of the launches, and the meaning of their times (DeviceClock::what)
  Roof roof;
};

/// The file. Tracks are threads of one process; times begin at 0. Launches have their kernel, shapes, rates and share
/// of the roofline. A stretch within another one of its track is shown below it.
std::string chromeTrace(const std::vector<Stretch> &stretches, const TraceFacts &facts);

} // namespace kiln
