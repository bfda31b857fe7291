// What happened when: stretches of time on tracks, as a file that Chrome's about://tracing and Perfetto show
// (the "Trace Event Format" of Chrome's project, JSON object form).

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kiln {

/// Who was busy: the host's thread that runs the steps, the device, or whoever makes batches.
enum class Track { host, device, data };

struct Stretch {
  Track track = Track::host;
  std::string name;          // of a launch its label, the part of the network that it belongs to
  std::string kind;          // of a launch its kernel
  double begin = 0, end = 0; // seconds, of one clock for all
  double flops = 0;          // of a launch: of its matrix products
  int64_t bytes = 0;         // of a launch: that it goes through
  std::string shapes = {};   // of a launch: of its arguments
  double seconds() const { return end - begin; }
};

/// What a machine can do at best; 0: nobody knows.
struct Roof {
  double flops = 0, bytes = 0; // a second
  std::string what = {};       // these are
  /// The share of it that a launch reached: the least time that its products and its bytes take over its own. None
  /// (below 0) where nothing is known.
  double shareOf(double flops, double bytes, double seconds) const;
};

struct TraceFacts {
  std::string device, clock; // what ran the launches, and what their times are (DeviceClock::what)
  Roof roof;
};

/// The file. Tracks are threads of one process; times begin at 0; launches have their kernel, shapes, rates and the
/// share of the roof. A stretch that lies within another of its track is shown below it.
std::string chromeTrace(const std::vector<Stretch> &stretches, const TraceFacts &facts);

} // namespace kiln
