// Interleaved measurements and medians; the table and the JSON file; tensors of random numbers, and repeated runs of
// plans.

#include "tools/kiln-bench/bench.h"

#include "runtime/Streams.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>

namespace kiln::bench {

// --- Times ----------------------------------------------------------------------------------------------------------

/// The pause after a contender whose threads spin for more work. Those of libgomp, which oneDNN uses, spin for about
/// ten milliseconds and would disturb the next contender.
static constexpr std::chrono::milliseconds rest(20);

static double secondsOf(const Contender &contender, int64_t calls, const std::function<void()> &finish) {
  using Clock = std::chrono::steady_clock;
  std::this_thread::sleep_for(rest);
  auto begin = Clock::now();
  for (int64_t i = 0; i < calls; ++i)
    contender();
  finish();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::vector<double> measure(const std::vector<Contender> &contenders, int rounds, double sampleSeconds,
                            const std::function<void()> &finish) {
  std::vector<int64_t> calls;
  for (const Contender &contender : contenders) {
    contender();
    finish();
    double once = secondsOf(contender, 1, finish);
    calls.push_back(std::max<int64_t>(1, std::llround(sampleSeconds / std::max(once, 1e-9))));
  }
  std::vector<std::vector<double>> samples(contenders.size());
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < contenders.size(); ++i)
      samples[i].push_back(secondsOf(contenders[i], calls[i], finish) / static_cast<double>(calls[i]));
  std::vector<double> medians;
  for (const std::vector<double> &sample : samples)
    medians.push_back(median(sample));
  return medians;
}

double median(std::vector<double> values) {
  auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double geometricMean(const std::vector<double> &values) {
  double sum = 0;
  for (double value : values)
    sum += std::log(value);
  return values.empty() ? 0 : std::exp(sum / static_cast<double>(values.size()));
}

// --- Results --------------------------------------------------------------------------------------------------------

static std::string numberText(double value) {
  if (value != 0 && (value < 0.001 || value >= 1e7))
    return fmt::format("{:.3e}", value);
  return fmt::format("{:.{}f}", value, value < 10 ? 3 : 1);
}

static kiln::Error unwritable(const std::string &path) {
  return kiln::Error(fmt::format("expected to write '{}', but could not: {}", path, std::strerror(errno)),
                     kiln::Fault::device);
}

Report::Report(std::string bench, std::string dtype, int threads, std::string json)
    : bench(std::move(bench)), dtype(std::move(dtype)), threads(threads), json(std::move(json)) {
  if (this->json.empty())
    return;
  std::FILE *file = std::fopen(this->json.c_str(), "a"); // existing content is kept until the rows are written
  if (!file)
    throw unwritable(this->json);
  std::fclose(file);
}

void Report::section(const std::string &title) {
  writeResult(
      fmt::format("\n{}\n{:<38} {:>12} {:>11} {:>18} {:>7}\n", title, "shape", "metric", "kiln", "baseline", "ratio"));
}

void Report::add(Row row) {
  row.threads = threads;
  row.bench = row.bench.empty() ? bench : row.bench;
  row.dtype = row.dtype.empty() ? dtype : row.dtype;
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

// --- Tensors and plans ----------------------------------------------------------------------------------------------

Tensor randomTensor(const Setting &setting, const Shape &extents, uint64_t seed) {
  Tensor tensor(setting.device, setting.type, extents);
  const float scale = isFloat(setting.type) ? 1 : 127;
  std::minstd_rand generator(static_cast<uint32_t>(seed * 2654435761u + 1));
  std::vector<float> values(static_cast<size_t>(tensor.count()));
  for (float &value : values)
    value = scale * (static_cast<float>(generator()) * 0x1p-30f - 1.0f);
  tensor.uploadFloats(values);
  return tensor;
}

Tensor zeroTensor(const Setting &setting, const Shape &extents, Type type) {
  return Tensor(setting.device, type, extents);
}

/// Random bytes that are numbers in (−1, 1) as bf16 and as f32, and finite as f16.
static std::vector<uint16_t> someNumbers(int64_t bytes) {
  std::vector<uint16_t> numbers(static_cast<size_t>(cdiv(bytes, 2)));
  std::minstd_rand random(1);
  for (uint16_t &number : numbers) {
    const auto bits = static_cast<uint32_t>(random());
    number = static_cast<uint16_t>((bits & 0x8000) | (0x3a00 + (bits >> 16) % 0x580)); // at least 2⁻¹¹
  }
  return numbers;
}

Space makeSpace(const Setting &setting, std::vector<std::unique_ptr<Tensor>> &held, bool zeroed) {
  static constexpr int64_t large = 1 << 20;
  const auto allocate = [&held, &setting, numbers = someNumbers(zeroed ? 0 : large)](int64_t bytes) {
    held.push_back(std::make_unique<Tensor>(setting.device, i8, Shape{std::max<int64_t>(1, bytes)}));
    char *const data = static_cast<char *>(held.back()->data());
    for (int64_t at = 0; !numbers.empty() && bytes >= large && at < bytes; at += large)
      setting.device->upload(data + at, numbers.data(), std::min(large, bytes - at));
    return data;
  };
  return {allocate, [&](void *to, const void *from, int64_t bytes) { setting.device->upload(to, from, bytes); }};
}

void addByKernel(Setting &setting, const std::string &shape, const std::map<std::string, double> &milliseconds,
                 const char *whole, double all) {
  std::vector<std::pair<double, std::string>> times;
  for (const auto &[kernel, time] : milliseconds)
    times.emplace_back(time, kernel);
  std::sort(times.rbegin(), times.rend());
  for (const auto &[time, kernel] : times)
    setting.report.add(
        {.shape = shape + ": " + kernel, .metric = "ms", .value = time, .peer = whole, .peerValue = all});
}

Contender copyOf(const Setting &setting, double bytes) {
  const Shape count = {static_cast<int64_t>(bytes / 8)}; // a copied float is read and written
  const auto from = std::make_shared<Tensor>(zeroTensor(setting, count)),
             to = std::make_shared<Tensor>(zeroTensor(setting, count));
  if (!setting.isHost())
    return [&setting, from, to] { setting.device->copy(to->data(), from->data(), from->bytes()); };
  return [&setting, from, to] {
    copyFloats(static_cast<float *>(to->data()), static_cast<const float *>(from->data()), from->count(),
               setting.threads);
  };
}

Runner::Runner(const Setting &setting, Plan plan)
    : device(setting.device), plan(std::move(plan)),
      workspace(
          std::make_shared<Tensor>(setting.device, Type::i8, Shape{std::max<int64_t>(1, this->plan.workspaceBytes)})) {}

} // namespace kiln::bench
