// Writes a profile's file and its tables.

#include "models/observe/trace.h"
#include "models/data/json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <map>

namespace kiln {

//===-- Timeline ------------------------------------------------------------------------------------------------===//

using Json = nlohmann::ordered_json;

double Roof::shareOfPeak(double flopsDone, double bytesMoved, double seconds) const {
  if (flops <= 0 || bytes <= 0 || seconds <= 0)
    return -1;
  return std::max(flopsDone / flops, bytesMoved / bytes) / seconds;
}

static constexpr std::array<const char *, 3> trackNames = {"host", "device", "data"};

/// Microseconds since `first`, rounded to nanoseconds. The format has begin and duration; both are computed from
/// rounded ends, so that nested events stay nested.
static double microseconds(double time, double first) { return std::round((time - first) * 1e9) / 1e3; }

static Json formatArguments(const Stretch &s, const Roof &roof) {
  Json args = {{"kernel", s.kind}, {"shapes", s.shapes}};
  if (s.seconds() <= 0)
    return args;
  if (s.flops > 0)
    args["GFLOP/s"] = s.flops / s.seconds() / 1e9;
  args["GB/s"] = static_cast<double>(s.bytes) / s.seconds() / 1e9;
  if (const double share = roof.shareOfPeak(s.flops, static_cast<double>(s.bytes), s.seconds()); share >= 0)
    args["share of the roof"] = share;
  return args;
}

std::string chromeTrace(const std::vector<Stretch> &stretches, const TraceFacts &facts) {
  std::vector<const Stretch *> order;
  double first = std::numeric_limits<double>::infinity();
  for (const Stretch &s : stretches) {
    order.push_back(&s);
    first = std::min(first, s.begin);
  }
  std::stable_sort(order.begin(), order.end(), [](const Stretch *a, const Stretch *b) { // enclosing events first
    return std::tuple(a->track, a->begin, -a->end) < std::tuple(b->track, b->begin, -b->end);
  });
  Json events = Json::array();
  const auto add = [&](const char *name, size_t track, Json args) { // fields that readers require of every event
    events.push_back({{"ph", "M"}, {"name", name}, {"ts", 0}, {"pid", 0}, {"tid", track}, {"args", std::move(args)}});
  };
  add("process_name", 0, {{"name", "kiln on " + facts.device}});
  for (size_t track = 0; track < trackNames.size(); ++track) {
    add("thread_name", track, {{"name", trackNames[track]}});
    add("thread_sort_index", track, {{"sort_index", track}});
  }
  for (const Stretch *s : order) {
    const double begin = microseconds(s->begin, first), end = microseconds(s->end, first);
    Json event = {{"ph", "X"},
                  {"name", s->name.empty() ? s->kind : s->name},
                  {"cat", s->kind.empty() ? trackNames[static_cast<size_t>(s->track)] : s->kind},
                  {"ts", begin},
                  {"dur", std::round((end - begin) * 1e3) / 1e3},
                  {"pid", 0},
                  {"tid", static_cast<int>(s->track)}};
    if (s->track == Track::device)
      event["args"] = formatArguments(*s, facts.roof);
    events.push_back(std::move(event));
  }
  const Json trace = {{"traceEvents", std::move(events)},
                      {"displayTimeUnit", "ms"},
                      {"otherData",
                       {{"device", facts.device},
                        {"clock of the device", facts.clock},
                        {"roof GFLOP/s", facts.roof.flops / 1e9},
                        {"roof GB/s", facts.roof.bytes / 1e9},
                        {"roof", facts.roof.what}}}};
  return textOf(trace) + "\n";
}

//===-- Tables --------------------------------------------------------------------------------------------------===//

void ProfileRow::add(const ProfileRow &other) {
  launches += other.launches;
  seconds += other.seconds;
  flops += other.flops;
  bytes += other.bytes;
}

std::vector<ProfileRow> profileRows(const std::vector<Stretch> &stretches, ProfileBy by, size_t most) {
  std::map<std::string, ProfileRow> named;
  for (const Stretch &s : stretches) {
    if (s.track != Track::device)
      continue;
    const std::string &name = by == ProfileBy::label && !s.name.empty() ? s.name : s.kind;
    named.try_emplace(name, ProfileRow{name})
        .first->second.add({name, 1, s.seconds(), s.flops, static_cast<double>(s.bytes)});
  }
  std::vector<ProfileRow> rows;
  for (const auto &[name, row] : named)
    rows.push_back(row);
  std::stable_sort(rows.begin(), rows.end(), [](const auto &a, const auto &b) { return a.seconds > b.seconds; });
  if (rows.size() <= most)
    return rows;
  ProfileRow rest = {fmt::format("{} others", rows.size() - most)};
  for (size_t i = most; i < rows.size(); ++i)
    rest.add(rows[i]);
  rows.resize(most);
  rows.push_back(rest);
  return rows;
}

/// Times and launches are per step, averaged over `steps`.
static std::string formatLine(const ProfileRow &row, double all, double steps, const Roof &roof) {
  const double share = roof.shareOfPeak(row.flops, row.bytes, row.seconds);
  const auto rate = [&](double amount) {
    return amount > 0 && row.seconds > 0 ? fmt::format("{:10.1f}", amount / row.seconds / 1e9)
                                         : fmt::format("{:>10}", "");
  };
  return fmt::format("{:12.4f} {:6.1f} % {:9.0f} {} {} {}  {}\n", 1e3 * row.seconds / steps,
                     all > 0 ? 100 * row.seconds / all : 0, static_cast<double>(row.launches) / steps, rate(row.flops),
                     rate(row.bytes), share < 0 ? fmt::format("{:>7}", "") : fmt::format("{:5.0f} %", 100 * share),
                     row.name);
}

static std::string formatTable(const std::vector<Stretch> &stretches, ProfileBy by, double steps, const Roof &roof) {
  const std::vector<ProfileRow> rows = profileRows(stretches, by);
  ProfileRow sum = {"all launches"};
  for (const ProfileRow &row : rows)
    sum.add(row);
  std::string text = fmt::format("\n{:>12} {:>8} {:>9} {:>10} {:>10} {:>7}  {}\n", "ms a step", "share", "launches",
                                 "GFLOP/s", "GB/s", "roof", by == ProfileBy::kernel ? "kernel" : "label");
  for (const ProfileRow &row : rows)
    text += formatLine(row, sum.seconds, steps, roof);
  return text + formatLine(sum, sum.seconds, steps, roof);
}

std::string profileText(const std::vector<Stretch> &stretches, const TraceFacts &facts, bool isTime) {
  double whole = 0, device = 0, data = 0;
  int64_t steps = 0;
  for (const Stretch &s : stretches) {
    const bool isStep = s.track == Track::host && s.name.starts_with("step ");
    steps += isStep;
    whole += isStep ? s.seconds() : 0;
    device += s.track == Track::device ? s.seconds() : 0;
    data += s.track == Track::data ? s.seconds() : 0;
  }
  const double count = static_cast<double>(std::max<int64_t>(steps, 1));
  std::string text =
      fmt::format("{} step{} on {}: {:.4f} ms a step", steps, steps == 1 ? "" : "s", facts.device, 1e3 * whole / count);
  if (isTime && whole > 0)
    text += fmt::format(", of which launches take {:.1f} %, making batches {:.1f} %, all else {:.1f} %",
                        100 * device / whole, 100 * data / whole, 100 * (whole - device - data) / whole);
  text += fmt::format("\nlaunches by {}", facts.clock);
  if (facts.roof.flops > 0)
    text += fmt::format("; the roof is {:.1f} GFLOP/s and {:.1f} GB/s ({})", facts.roof.flops / 1e9,
                        facts.roof.bytes / 1e9, facts.roof.what);
  return text + "\n" + formatTable(stretches, ProfileBy::kernel, count, facts.roof) +
         formatTable(stretches, ProfileBy::label, count, facts.roof);
}

} // namespace kiln
