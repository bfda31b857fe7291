// The results of a benchmark: rows, each printed to a table at once, and all written as JSON at the end.

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace kiln::bench {

/// One measured number. If a peer was measured too, also the peer's number and the ratio of the two.
struct Row {
  std::string bench;  // matmul, attention, …
  std::string shape;  // `qkv 256x2304x768 nn`
  std::string metric; // `gflops`, `gb_per_s`, `ms`, …
  double value = 0;
  std::string peer = {}; // the peer: `onednn`, `copy`, `fma_peak`, …; empty: none
  double peerValue = 0;
  /// The ratio; default: value / peerValue.
  std::optional<double> ratio = {};
  std::string dtype = "f32";
  int threads = 1;
};

class Report {
public:
  /// A report that is also written to the file `json`, unless the name is empty. Throws Error at once, before anything
  /// is measured, if that file cannot be written.
  Report(int threads, std::string json);

  /// Adds a row and prints it.
  void add(Row row);
  /// Adds an object of another form, as JSON; it is written only to the file.
  void addObject(std::string json);
  /// Prints a title line above the next rows.
  void section(const std::string &title);
  /// Writes all rows as a JSON array, one row per line: {bench, shape, dtype, threads, metric, value, peer, peer_value,
  /// ratio}; peer, peer_value and ratio are null without a peer. The objects follow. Throws Error if the file cannot be
  /// written.
  void writeJson() const;

private:
  int threads;
  std::string json;
  std::vector<Row> rows;
  std::vector<std::string> objects;
};

} // namespace kiln::bench
