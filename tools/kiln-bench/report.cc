// The table and the JSON file.

#include "tools/kiln-bench/report.h"
#include "dialect/dsl/Types.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using namespace kiln::bench;

static std::string numberText(double value) {
  if (value != 0 && (value < 0.001 || value >= 1e7))
    return fmt::format("{:.3e}", value);
  return fmt::format("{:.{}f}", value, value < 10 ? 3 : 1);
}

void Report::section(const std::string &title) {
  fmt::print("\n{}\n{:<38} {:>12} {:>11} {:>18} {:>7}\n", title, "shape", "metric", "kiln", "beside it", "ratio");
  std::fflush(stdout);
}

void Report::add(Row row) {
  row.threads = threads;
  if (!row.peer.empty() && !row.ratio)
    row.ratio = row.value / row.peerValue;
  std::string beside = row.peer.empty() ? "" : row.peer + " " + numberText(row.peerValue);
  std::string ratio = row.ratio ? fmt::format("{:.3f}", *row.ratio) : "";
  fmt::print("{:<38} {:>12} {:>11} {:>18} {:>7}\n", row.shape, row.metric, numberText(row.value), beside, ratio);
  std::fflush(stdout);
  rows.push_back(std::move(row));
}

void Report::writeJson(const std::string &path) const {
  std::string text;
  for (const Row &row : rows) {
    nlohmann::ordered_json json{{"bench", row.bench},     {"shape", row.shape},   {"dtype", row.dtype},
                                {"threads", row.threads}, {"metric", row.metric}, {"value", row.value}};
    json["peer"] = row.peer.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(row.peer);
    json["peer_value"] = row.peer.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(row.peerValue);
    json["ratio"] = row.ratio ? nlohmann::ordered_json(*row.ratio) : nlohmann::ordered_json();
    text += (text.empty() ? "[\n" : ",\n") + json.dump();
  }
  text = (text.empty() ? "[" : text) + "\n]\n";
  std::FILE *file = std::fopen(path.c_str(), "w");
  bool written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (!file || std::fclose(file) != 0 || !written)
    throw Error("cannot write '" + path + "': " + std::strerror(errno), Fault::device);
}
