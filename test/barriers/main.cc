// kiln-barriers: deletes each barrier, fence and wait, and changes each wait of a ring, one at a time. It reports
// whether the simulator finds it at the C++ line that it guards (edits.h). The kernels are those of a GPT-2 training
// step and of attention in its other forms (packed documents, an arbitrary mask, dropout of the weights, grouped heads,
// plain).
//
// The kernels' arguments are those of a step of a model with random weights and tokens; its sizes are flags. Exit
// codes: 0 all are reported, or have a known reason not to be; 1 some are not; 2, 3 and 4 as everywhere.

#include "kernels/plain_attention.h"
#include "models/gpt2/network.h"
#include "models/train/trainer.h"
#include "runtime/Streams.h"
#include "runtime/Version.h"
#include "test/barriers/edits.h"
#include "test/paths.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <array>
#include <fstream>
#include <map>
#include <random>

using namespace kiln;
using test::Verdict;

namespace {

struct Options {
  std::string device = "simulator:sm_80";
  Gpt2Config model{.layers = 1, .heads = 2, .width = 128, .context = 144, .vocab = 257};
  std::string dtype = "fp32";
  int64_t batch = 2;
};

/// A barrier that no step needs: at most one of each variant of the kernel.
struct Known {
  const char *kernel;
  const char *line; // a part of it
  Verdict::Kind verdict;
  const char *reason;
};

/// Edits of one variant of a kernel, by verdict.
struct Row {
  std::string kernel;
  std::array<int, 4> counts{};
};

} // namespace

static constexpr Known allKnown[] = {
    {"layernorm_backward", "load(dout", Verdict::Kind::elsewhere,
     "dx may be the memory of dout, and shifted as far as the kernel knows; in a step it lies right on it. What is "
     "seen is that the barrier keeps two rounds' use of shared memory apart, too"},
    {"weight_gradient", "store(db", Verdict::Kind::silent,
     "db is read, then rows are added, each round of which has barriers, then db is written: without rows there are "
     "none but this one"}};

/// The source line that a place `../folder/file:line` names; empty if there is none.
static std::string sourceLine(const std::string &place) {
  const size_t colon = place.rfind(':'), begin = place.find_first_not_of("./");
  std::ifstream file(kiln::test::sourcePath(place.substr(begin, colon - begin)));
  std::string line;
  for (int number = std::stoi(place.substr(colon + 1)); number > 0; --number)
    std::getline(file, line);
  return line.substr(std::min(line.size(), line.find_first_not_of(' ')));
}

/// The reason for which an edit is not reported at its line; null when none is known.
static const char *reasonOf(const Verdict &verdict, const std::string &line) {
  for (const Known &known : allKnown)
    if (verdict.kernel == known.kernel && verdict.kind == known.verdict && line.find(known.line) != std::string::npos)
      return known.reason;
  return nullptr;
}

/// A step of two micro-batches and an evaluation launches every kernel of a GPT-2 training.
static void train(const std::shared_ptr<test::EditingDevice> &device, const Options &options) {
  const Network network(options.model);
  Trainer trainer(device, network, {.batch = options.batch, .accumulate = 2, .type = options.model.type});
  trainer.initialize(1);
  std::mt19937 random(1);
  const auto draw = [&] {
    std::vector<int32_t> tokens(static_cast<size_t>(options.batch * options.model.context));
    for (int32_t &token : tokens)
      token = static_cast<int32_t>(random() % static_cast<uint32_t>(options.model.vocab));
    return tokens;
  };
  trainer.beginStep(1e-3, 1);
  for (int64_t micro = 0; micro < 2; ++micro)
    trainer.addGradient(languageBatch(draw(), draw()), micro);
  trainer.update();
  trainer.lossSum(languageBatch(draw(), draw()));
}

/// Both passes of attention in the forms that the step does not use, with some large numbers.
static void attend(const std::shared_ptr<test::EditingDevice> &device, const Options &options) {
  const int64_t B = 1, H = 2, T = options.model.context, D = options.model.headWidth();
  const Type type = options.model.type;
  std::mt19937 random(2);
  const auto tensor = [&](const Shape &extents) {
    Tensor made(device, type, extents);
    std::vector<float> numbers(static_cast<size_t>(made.count()));
    for (float &number : numbers)
      number = static_cast<float>(random() % 64) / 32 - 1;
    made.uploadFloats(numbers);
    return made;
  };
  const auto uploaded = [&](const Shape &extents, Type of, const auto &numbers) {
    Tensor made(device, of, extents);
    made.upload(numbers.data(), made.bytes());
    return made;
  };
  std::vector<int32_t> ranges;
  std::vector<int8_t> seen;
  for (int32_t i = 0; i < T; ++i) {
    ranges.insert(ranges.end(), {i < T / 3 ? 0 : static_cast<int32_t>(T / 3), i + 1});
    for (int64_t j = 0; j < T; ++j)
      seen.push_back(random() % 3 != 0);
  }
  const Tensor rows = uploaded({B, T, 2}, i32, ranges), columns = uploaded({B, T, 2}, i32, queryRanges(ranges, T, T)),
               mask = uploaded({1, 1, T, T}, i8, seen), site = uploaded({2}, i64, std::vector<int64_t>{77, 0});
  const Tensor q = tensor({B, H, T, D}), o = tensor({B, H, T, D}), dout = tensor({B, H, T, D}),
               dq = tensor({B, H, T, D}), lse(device, f32, {B, H, T}), weights(device, f32, {B, H, T, T});
  const AttentionMask packed = {.causal = false, .ranges = rows.ref(), .queryRanges = columns.ref()},
                      dropping = {.dropout = Dropout{{0.1}, site.ref(), T, T}};
  for (const auto &[heads, form] :
       {std::pair(H, packed), {H, {.causal = false, .mask = mask.ref()}}, {H, dropping}, {H / 2, {}}}) {
    const Tensor k = tensor({B, heads, T, D}), v = tensor({B, heads, T, D}), dk = tensor({B, heads, T, D}),
                 dv = tensor({B, heads, T, D});
    run(*device, planAttention(device->target(), q.ref(), k.ref(), v.ref(), o.ref(), lse.ref(), 0.125F, form));
    run(*device, planAttentionBackward(device->target(), {q.ref(), k.ref(), v.ref(), o.ref(), lse.ref(), dout.ref()},
                                       dq.ref(), dk.ref(), dv.ref(), 0.125F, form));
  }
  const Tensor k = tensor({B, H, T, D}), v = tensor({B, H, T, D}), dk = tensor({B, H, T, D}), dv = tensor({B, H, T, D});
  run(*device,
      planPlainAttention(device->target(), q.ref(), k.ref(), v.ref(), o.ref(), weights.ref(), 0.125F, dropping));
  run(*device, planPlainAttentionBackward(device->target(), {q.ref(), k.ref(), v.ref(), weights.ref(), dout.ref()},
                                          dq.ref(), dk.ref(), dv.ref(), 0.125F, dropping));
}

/// Whether an edit needs a reason. A deletion must be reported at its line; other edits at any line.
static bool isLost(const Verdict &each) {
  return each.edit.what == "deleted" ? each.kind != Verdict::Kind::reported : each.kind == Verdict::Kind::silent;
}

/// Prints a row for each kernel and for each kind of edit, then every edit that is lost; whether each of these has its
/// reason.
static bool print(const std::vector<Verdict> &verdicts) {
  std::vector<Row> rows;
  Row total{.kernel = "all"};
  std::map<std::string, Row> kinds;
  for (const Verdict &each : verdicts) {
    const std::string name = each.variant == 1 ? each.kernel : fmt::format("{} #{}", each.kernel, each.variant);
    if (rows.empty() || rows.back().kernel != name)
      rows.push_back({.kernel = name});
    Row &kind = kinds[each.edit.what];
    kind.kernel = "  " + each.edit.what;
    for (Row *row : {&rows.back(), &total, &kind})
      ++row->counts[static_cast<size_t>(each.kind)];
  }
  rows.push_back(total);
  for (const auto &[what, row] : kinds)
    rows.push_back(row);
  fmt::print("{:28} {:>8} {:>9} {:>9} {:>6} {:>6}\n", "kernel", "edits", "reported", "elsewhere", "wrong", "silent");
  for (const auto &[kernel, counts] : rows)
    fmt::print("{:28} {:>8} {:>9} {:>9} {:>6} {:>6}\n", kernel, counts[0] + counts[1] + counts[2] + counts[3],
               counts[0], counts[1], counts[2], counts[3]);
  bool isKnown = true;
  for (const Verdict &each : verdicts) {
    if (!isLost(each))
      continue;
    const std::string line = sourceLine(each.edit.place);
    const char *const reason = reasonOf(each, line);
    isKnown &= reason != nullptr;
    fmt::print("\n{} #{}, PTX line {}, {} {} at {}, {}\n{}: {}\n", each.kernel, each.variant, each.edit.line + 1,
               each.edit.instruction, each.edit.what, each.edit.place, line,
               each.kind == Verdict::Kind::silent ? "silent" : "seen elsewhere", reason ? reason : each.said);
  }
  return isKnown;
}

static int run(int count, const char *const *arguments) {
  Options options;
  CLI::App app("Edits the barriers and waits of the kernels of a GPT-2 step and says what the simulator reports.",
               "kiln-barriers");
  app.add_option("--device", options.device, "a simulator")->capture_default_str();
  app.add_option("--layers", options.model.layers)->capture_default_str();
  app.add_option("--heads", options.model.heads)->capture_default_str();
  app.add_option("--width", options.model.width)->capture_default_str();
  app.add_option("--context", options.model.context)->capture_default_str();
  app.add_option("--vocab", options.model.vocab)->capture_default_str();
  app.add_option("--batch", options.batch, "sequences")->capture_default_str();
  app.add_option("--dtype", options.dtype, "of weights and activations: fp32, bf16 or fp16")->capture_default_str();
  app.set_version_flag("--version", versionText("kiln-barriers"), "print the version of Kiln");
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) ? 2 : 0;
  }
  setenv("KILN_CACHE", "", 1);
  options.model.type = dtypeNamed("--dtype", options.dtype);
  verify(options.model);
  const auto device = std::make_shared<test::EditingDevice>(SimulatorDevice::open(options.device), /*copies=*/false);
  train(device, options);
  attend(device, options);
  return print(device->verdicts()) ? 0 : 1;
}

int main(int count, char **arguments) {
  return kiln::runProgram("kiln-barriers", [=] { return run(count, arguments); });
}
