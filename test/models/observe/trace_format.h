// The requirements of Chrome's "Trace Event Format" (JSON object form) and of Perfetto's parser.

#pragma once

#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kiln::test {

/// Half of a nanosecond, the resolution of a trace's times, in microseconds. The rounding errors of a sum of two times,
/// which are doubles, are far below.
inline constexpr double halfOfATick = 0.5e-3;

/// Expects that every event has a phase, a name, a time, a process and a thread. It is metadata (`M`) or a span (`X`),
/// whose length is not negative. On a thread, spans are in the order of their times, and are nested or disjoint.
/// Metadata come first, and name every process and thread once. Returns the names of the threads by their numbers.
inline std::map<int, std::string> expectTraceFormat(const nlohmann::json &trace) {
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> open; // by thread: stretches under way
  std::map<std::pair<int, int>, double> last;
  std::map<std::pair<int, int>, std::string> threads;
  std::set<int> processes;
  bool hasStretches = false;
  for (const nlohmann::json &event : trace.at("traceEvents")) {
    SCOPED_TRACE(event.dump());
    for (const char *key : {"ts", "pid", "tid"})
      if (!event.contains(key) || !event.at(key).is_number()) {
        ADD_FAILURE() << "expected a number '" << key << "'";
        return {};
      }
    for (const char *key : {"ph", "name"})
      if (!event.contains(key) || !event.at(key).is_string() || event.at(key).get<std::string>().empty()) {
        ADD_FAILURE() << "expected a text '" << key << "'";
        return {};
      }
    const std::string phase = event.at("ph"), name = event.at("name");
    const std::pair<int, int> thread = {event.at("pid"), event.at("tid")};
    if (phase == "M") {
      EXPECT_FALSE(hasStretches) << "metadata behind stretches";
      if (name == "process_name") {
        EXPECT_TRUE(processes.insert(thread.first).second);
        EXPECT_FALSE(event.at("args").at("name").get<std::string>().empty());
      }
      if (name == "thread_name") {
        EXPECT_TRUE(threads.emplace(thread, event.at("args").at("name")).second);
      }
      continue;
    }
    EXPECT_EQ(phase, "X");
    hasStretches = true;
    EXPECT_TRUE(processes.contains(thread.first) && threads.contains(thread)) << "without a name";
    const double begin = event.at("ts"), end = begin + event.at("dur").get<double>();
    EXPECT_TRUE(std::isfinite(begin) && std::isfinite(end));
    EXPECT_GE(begin, last[thread]); // 0 in front of the first
    EXPECT_GE(end, begin);
    last[thread] = begin;
    auto &around = open[thread];
    while (!around.empty() && around.back().second <= begin + halfOfATick)
      around.pop_back();
    if (!around.empty()) {
      EXPECT_LE(end, around.back().second + halfOfATick) << "neither within the one before nor apart";
    }
    around.emplace_back(begin, end);
  }
  EXPECT_TRUE(hasStretches);
  std::map<int, std::string> names;
  for (const auto &[thread, name] : threads)
    names[thread.second] = name;
  return names;
}

} // namespace kiln::test
