// The results of a benchmark: rows, each printed to a table at once, and all written as JSON at the end.

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace kiln::bench {

/// One measured number, and, when something was measured beside it, that number and the ratio of the two.
struct Row {
  std::string bench;  // matmul, attention, …
  std::string shape;  // `qkv 256x2304x768 nn`
  std::string metric; // `gflops`, `gb_per_s`, `ms`, …
  double value = 0;
  std::string peer = {}; // what stands beside it: `onednn`, `copy`, `fma_peak`, …; empty: nothing
  double peerValue = 0;
  /// value / peerValue, unless the benchmark says otherwise.
  std::optional<double> ratio = {};
  std::string dtype = "f32";
  int threads = 1;
};

class Report {
public:
  /// A report that goes to the file `json` too, if it has a name. Throws Error when that file cannot be written: now,
  /// not when all has been measured.
  Report(int threads, std::string json);

  /// Adds a row and prints it.
  void add(Row row);
  /// Adds an object of another form, as JSON, that goes to the file alone.
  void addObject(std::string json);
  /// A line above the rows that follow.
  void section(const std::string &title);
  /// All rows as a JSON array, a row a line: {bench, shape, dtype, threads, metric, value, peer, peer_value, ratio};
  /// peer, peer_value and ratio are null where nothing was measured beside. Then the objects. Throws Error when the
  /// file cannot be written.
  void writeJson() const;

private:
  int threads;
  std::string json;
  std::vector<Row> rows;
  std::vector<std::string> objects;
};

} // namespace kiln::bench
