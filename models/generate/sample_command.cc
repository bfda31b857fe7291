// The sampling loop.

#include "models/generate/sample_command.h"
#include "models/data/random.h"
#include "models/data/text.h"
#include "models/generate/text_stream.h"
#include "runtime/Streams.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <fmt/format.h>
#include <utility>

namespace kiln {

static std::string promptOf(const GenerationOptions &o) {
  if (!o.promptFile)
    return o.prompt.value_or("");
  const std::vector<uint8_t> bytes = readWholeText(*o.promptFile == "-" ? "/dev/stdin" : *o.promptFile);
  return {bytes.begin(), bytes.end()};
}

namespace {
/// A text in progress.
struct GrowingText {
  TextStream stream;
  std::vector<int32_t> tokens;
  std::string shown; // the text, unless it is streamed
  bool isFinished = false;
};
} // namespace

void write(const std::string &program, const std::function<Generator(Generator::Options)> &make, const TextForm &form,
           const GenerationOptions &o) {
  verify(o);
  const std::string prompt = promptOf(o);
  const std::vector<int32_t> begin = form.encode(prompt);
  // In vocabularies whose words' last token includes the following space, the continuation begins after a space.
  const bool lacksSpace =
      !prompt.empty() && !std::isspace(static_cast<unsigned char>(prompt.back())) && form.decode(begin).ends_with(' ');
  if (begin.empty() && !form.beginsAlone)
    throw Error("expected a prompt of at least one byte, but got an empty one");
  int64_t restarts = 0;
  Generator generator = make({.sequences = o.texts, .restarts = [&] { ++restarts; }});
  std::vector<GrowingText> texts(o.texts, {TextStream(o.stops), begin, {}});
  const auto put = [&](GrowingText &text, const std::string &part) {
    if (o.texts == 1)
      writeResult(part);
    else
      text.shown += part;
  };
  for (int64_t s = 0; s < o.texts; ++s) {
    generator.append(s, begin);
    put(texts[s], lacksSpace ? prompt + " " : prompt);
  }
  const Random random(o.seed, Stream::sampling);
  int64_t written = 0;
  std::chrono::duration<double> reading{}, writing{};
  for (int64_t i = 0; i < o.tokens; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const std::vector<std::vector<float>> logits = generator.next();
    (i == 0 ? reading : writing) += std::chrono::steady_clock::now() - start;
    for (int64_t s = 0; s < o.texts; ++s) {
      GrowingText &text = texts[s];
      if (text.isFinished)
        continue;
      const std::span<const float> known = std::span(logits[s]).first(form.size);
      const double uniform = random.uniform(static_cast<uint64_t>(i) + (static_cast<uint64_t>(s) << 32));
      const auto token = static_cast<int32_t>(sampleToken(known, text.tokens, o.sampling, uniform));
      text.isFinished = std::find(form.ends.begin(), form.ends.end(), token) != form.ends.end();
      if (!text.isFinished) {
        ++written;
        text.tokens.push_back(token);
        put(text, text.stream.push(form.decode({&token, 1})));
        text.isFinished = text.stream.isStopped();
      }
      if (!text.isFinished)
        generator.append(s, {&token, 1});
    }
    if (std::all_of(texts.begin(), texts.end(), [](const GrowingText &text) { return text.isFinished; }))
      break;
  }
  for (GrowingText &text : texts) {
    put(text, text.stream.finish() + "\n");
    if (o.texts > 1)
      writeResult(text.shown + "---------------\n");
  }
  if (restarts > 0)
    say(program + ": a text became longer than the model's context; it continued from the last half of it\n");
  if (o.speed)
    say(fmt::format(
        "{}: {} tokens read and the first logits in {:.3f} s, {} tokens written, {:.2f} ms per decoding step\n",
        program, std::ssize(begin) * o.texts, reading.count(), written,
        1e3 * writing.count() / std::max<double>(1, static_cast<double>(written / o.texts - 1))));
}

} // namespace kiln
