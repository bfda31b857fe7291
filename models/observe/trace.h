// A profile of steps: as a timeline for Chrome and Perfetto, and as tables.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kiln {

//===-- Timeline ------------------------------------------------------------------------------------------------===//
// A timeline: stretches of time on tracks, as a file for Chrome's about://tracing and Perfetto ("Trace Event Format",
// JSON object form).

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
  double shareOfPeak(double flops, double bytes, double seconds) const;
};

struct TraceFacts {
  std::string device, clock; // the machine of the launches, and the meaning of their times (DeviceClock::what)
  Roof roof;
};

/// The file. Tracks are threads of one process; times begin at 0. Launches have their kernel, shapes, rates and share
/// of the roofline. A stretch within another one of its track is shown below it.
std::string chromeTrace(const std::vector<Stretch> &stretches, const TraceFacts &facts);

//===-- Tables --------------------------------------------------------------------------------------------------===//
// Tables that show where the time of steps went: launches by kernel and by label.

/// Launches of one kernel, or of one label.
struct ProfileRow {
  std::string name;
  int64_t launches = 0;
  double seconds = 0, flops = 0, bytes = 0;
  void add(const ProfileRow &other);
};

/// Groups launches by kernel or by label, longest first. Beyond `most` groups, one last row sums the rest, and its name
/// says how many there are. The rows add up to all launches.
enum class ProfileBy { kernel, label };
std::vector<ProfileRow> profileRows(const std::vector<Stretch> &stretches, ProfileBy by, size_t most = 20);

/// The tables, their total, and its share of the steps, which are the host's stretches called `step …`. `isTime`: the
/// device's seconds are comparable with the host's.
std::string profileText(const std::vector<Stretch> &stretches, const TraceFacts &facts, bool isTime = true);

} // namespace kiln
