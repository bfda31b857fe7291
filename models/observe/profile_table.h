// Tables that show where the time of steps went: launches by kernel and by label.

#pragma once

#include "models/observe/trace.h"

namespace kiln {

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
