// Where the time of steps went, for people: launches by kernel and by label.

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

/// The launches among the stretches, together by kernel or by label, the longest first; of more than `most` the rest is
/// one row behind them, whose name says of how many. Their sums are those of all launches.
enum class ProfileBy { kernel, label };
std::vector<ProfileRow> profileRows(const std::vector<Stretch> &stretches, ProfileBy by, size_t most = 20);

/// The tables, with the sum of all, and what of the steps, the host's stretches called `step …`, they make up.
/// `isTime`: the device's seconds are those of the host.
std::string profileText(const std::vector<Stretch> &stretches, const TraceFacts &facts, bool isTime = true);

} // namespace kiln
