// Writes events in Chrome's trace format, sorted by track and time.

#include "models/observe/trace.h"
#include "models/data/json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace kiln {

using Json = nlohmann::ordered_json;

double Roof::shareOf(double flopsDone, double bytesMoved, double seconds) const {
  if (flops <= 0 || bytes <= 0 || seconds <= 0)
    return -1;
  return std::max(flopsDone / flops, bytesMoved / bytes) / seconds;
}

static constexpr std::array<const char *, 3> trackNames = {"host", "device", "data"};

/// Microseconds since `first`, rounded to nanoseconds. The format has begin and duration; both are computed from
/// rounded ends, so that nested events stay nested.
static double microseconds(double time, double first) { return std::round((time - first) * 1e9) / 1e3; }

static Json argumentsOf(const Stretch &s, const Roof &roof) {
  Json args = {{"kernel", s.kind}, {"shapes", s.shapes}};
  if (s.seconds() <= 0)
    return args;
  if (s.flops > 0)
    args["GFLOP/s"] = s.flops / s.seconds() / 1e9;
  args["GB/s"] = static_cast<double>(s.bytes) / s.seconds() / 1e9;
  if (const double share = roof.shareOf(s.flops, static_cast<double>(s.bytes), s.seconds()); share >= 0)
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
      event["args"] = argumentsOf(*s, facts.roof);
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

} // namespace kiln
