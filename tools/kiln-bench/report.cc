// The table and the JSON file.

#include "tools/kiln-bench/report.h"
#include "dialect/dsl/Types.h"
#include "runtime/Streams.h"

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

static kiln::Error unwritable(const std::string &path) {
  return kiln::Error(fmt::format("expected to write '{}', but could not: {}", path, std::strerror(errno)),
                     kiln::Fault::device);
}

Report::Report(int threads, std::string path) : threads(threads), json(std::move(path)) {
  if (json.empty())
    return;
  std::FILE *file = std::fopen(json.c_str(), "a"); // existing content is kept until the rows are written
  if (!file)
    throw unwritable(json);
  std::fclose(file);
}

void Report::section(const std::string &title) {
  writeResult(
      fmt::format("\n{}\n{:<38} {:>12} {:>11} {:>18} {:>7}\n", title, "shape", "metric", "kiln", "baseline", "ratio"));
}

void Report::add(Row row) {
  row.threads = threads;
  if (!row.peer.empty() && !row.ratio)
    row.ratio = row.value / row.peerValue;
  std::string baseline = row.peer.empty() ? "" : row.peer + " " + numberText(row.peerValue);
  std::string ratio = row.ratio ? fmt::format("{:.3f}", *row.ratio) : "";
  writeResult(fmt::format("{:<38} {:>12} {:>11} {:>18} {:>7}\n", row.shape, row.metric, numberText(row.value), baseline,
                          ratio));
  rows.push_back(std::move(row));
}

void Report::addObject(std::string object) { objects.push_back(std::move(object)); }

void Report::writeJson() const {
  if (json.empty())
    return;
  std::string text;
  for (const Row &row : rows) {
    nlohmann::ordered_json object{{"bench", row.bench},     {"shape", row.shape},   {"dtype", row.dtype},
                                  {"threads", row.threads}, {"metric", row.metric}, {"value", row.value}};
    object["peer"] = row.peer.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(row.peer);
    object["peer_value"] = row.peer.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(row.peerValue);
    object["ratio"] = row.ratio ? nlohmann::ordered_json(*row.ratio) : nlohmann::ordered_json();
    text += (text.empty() ? "[\n" : ",\n") + object.dump();
  }
  for (const std::string &object : objects)
    text += (text.empty() ? "[\n" : ",\n") + object;
  text = (text.empty() ? "[" : text) + "\n]\n";
  std::FILE *file = std::fopen(json.c_str(), "w");
  bool written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (!file || std::fclose(file) != 0 || !written)
    throw unwritable(json);
}
