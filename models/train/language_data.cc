// Token streams for training and validation.

#include "models/train/language_data.h"
#include "models/data/files.h"
#include "models/data/shards.h"
#include "models/data/text.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <thread>

namespace kiln {

namespace {
struct Streams {
  DataIdentity identity;
  std::shared_ptr<const TokenStream> train, held;
  uint64_t heldHash = identity.hash; // hash of the validation file
  std::vector<int64_t> ends = {};    // ends of the files in `train`, if there are several
};
} // namespace

/// Splits off the last tenth for validation. Throws Error if a part is shorter than a sequence and the token after it.
static Streams parted(DataIdentity identity, std::shared_ptr<const TokenStream> all, int64_t context) {
  const int64_t tenth = all->size() / 10, rest = all->size() - tenth;
  if (tenth < context + 1)
    throw Error(
        fmt::format("expected at least {} tokens in '{}' for a context of {} (the last tenth validates), but got {}",
                    10 * (context + 1), identity.path, context, all->size()));
  return {std::move(identity), std::make_shared<StreamPart>(all, 0, rest),
          std::make_shared<StreamPart>(all, rest, tenth)};
}

static Streams readBytes(const LanguageSource &source, int64_t context) {
  Text text = readText(source.data, context);
  return {{source.data, std::ssize(text.train),
           fnv1a({reinterpret_cast<const char *>(text.train.data()), text.train.size()})},
          std::make_shared<MemoryTokens<uint8_t>>(std::move(text.train)),
          std::make_shared<MemoryTokens<uint8_t>>(std::move(text.validation))};
}

static Streams encoded(const LanguageSource &source, int64_t context) {
  const std::vector<uint8_t> text = readWholeText(source.data);
  const int threads =
      source.threads > 0 ? source.threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  std::vector<int32_t> tokens =
      source.tokenizer->encode({reinterpret_cast<const char *>(text.data()), text.size()}, /*specials=*/false, threads);
  const uint64_t hash = fnv1a({reinterpret_cast<const char *>(tokens.data()), tokens.size() * sizeof(int32_t)});
  return parted({source.data, std::ssize(text), hash}, std::make_shared<MemoryTokens<int32_t>>(std::move(tokens)),
                context);
}

static Streams shards(const LanguageSource &source, int64_t context) {
  const auto all = std::make_shared<TokenShards>(source.data, source.vocab);
  const DataIdentity identity = {source.data, all->bytes(), all->hash()};
  if (!source.held) {
    Streams streams = parted(identity, all, context);
    for (const int64_t end : all->fileEnds())
      if (end < streams.train->size())
        streams.ends.push_back(end);
    return streams;
  }
  const auto held = std::make_shared<TokenShards>(*source.held, source.vocab);
  for (const auto &[path, stream] : {std::pair(source.data, all), {*source.held, held}})
    if (stream->size() < context + 1)
      throw Error(fmt::format("expected at least {} tokens in '{}' for a context of {}, but got {}", context + 1, path,
                              context, stream->size()));
  return {identity, all, held, held->hash(), {all->fileEnds().begin(), all->fileEnds().end() - 1}};
}

static Streams open(const LanguageSource &source, int64_t context) {
  if (namesShards(source.data))
    return shards(source, context);
  if (source.held)
    throw Error(fmt::format(
        "--validation requires token files (.bin), but --data is '{}'; the last tenth of a text is the validation set",
        source.data));
  return source.tokenizer ? encoded(source, context) : readBytes(source, context);
}

std::optional<int64_t> rowsOfLlmc(const TrainSettings &settings) {
  return settings.order == DataOrder::llmc ? std::optional(settings.batch) : std::nullopt;
}

/// The documents of the part `name` of the source.
static std::vector<DocumentPlace> placesIn(const LanguageSource &source, const TokenStream &stream, uint64_t hash,
                                           const char *name) {
  const bool isHeld = name == std::string("held");
  const std::string where = fmt::format("{}'{}'", isHeld && !source.held ? "the last tenth of " : "",
                                        isHeld ? source.held.value_or(source.data) : source.data);
  if (source.folder.empty())
    return findDocuments(stream, *source.documents, where);
  const std::string index = (std::filesystem::path(source.folder) / fmt::format("documents-{}.index", name)).string();
  return locateDocuments(stream, *source.documents, where, index, hash);
}

/// Whether a document is empty.
static bool isEmpty(const DocumentPlace &place, const TokenStream &stream, const DocumentMarks &marks) {
  if (place.targets > 1)
    return false;
  int32_t target = 0;
  stream.read(place.begin + 1, 1, &target);
  return target == marks.begin || target == marks.end;
}

LanguageData::LanguageData(const LanguageSource &source, int64_t context, uint64_t seed)
    : context(context), batch(source.documents && source.pack == 0 ? source.batch : 0),
      givesPlaces(source.givesPlaces) {
  Streams streams = open(source, context);
  known = std::move(streams.identity);
  train = std::move(streams.train);
  held = std::move(streams.held);
  if (!source.documents) {
    streams.ends.push_back(train->size());
    batches.emplace(train, context,
                    source.llmcRows ? llmcOrder(std::move(streams.ends), context, *source.llmcRows)
                                    : shuffledOrder(train->size(), context, seed));
    return;
  }
  if (source.llmcRows)
    throw Error("--order llmc requires --batching stream");
  const Packing packing = {source.pack, source.pack > 0 ? std::optional(seed) : std::nullopt};
  const std::vector<DocumentPlace> places = placesIn(source, *train, known.hash, "train");
  documentCount = std::ssize(places);
  cutCount = std::count_if(places.begin(), places.end(), [&](const DocumentPlace &p) { return p.targets > context; });
  emptyCount = std::count_if(places.begin(), places.end(),
                             [&](const DocumentPlace &p) { return isEmpty(p, *train, *source.documents); });
  documents.emplace(std::make_shared<Documents>(train, places, context, packing), seed);
  const std::vector<DocumentPlace> heldPlaces = placesIn(source, *held, streams.heldHash, "held");
  heldDocuments = std::make_shared<Documents>(held, heldPlaces, context, Packing{source.pack});
  for (const std::vector<DocumentPlace> *all : {&places, &heldPlaces})
    for (const DocumentPlace &p : *all)
      for (const int64_t part : {std::min(p.targets, context), p.targets % context}) // the parts of a cut document
        if (part > 0)
          lengths.insert(part);
}

std::vector<std::string> LanguageData::notes() const {
  std::vector<std::string> lines;
  if (cutCount > 0)
    lines.push_back(fmt::format("{} of {} documents are longer than the context of {}, and are cut", cutCount,
                                documentCount, context));
  if (emptyCount > 0)
    lines.push_back(
        fmt::format("{} of {} documents are empty, and teach nothing but their end", emptyCount, documentCount));
  return lines;
}

std::vector<BatchShape> LanguageData::shapes() const {
  std::vector<BatchShape> all;
  if (batch > 0)
    for (const int64_t length : lengths)
      all.push_back({batch, length});
  return all;
}

/// The first `length` columns of a matrix of `context`.
static std::vector<int32_t> narrowed(const std::vector<int32_t> &all, int64_t context, int64_t length) {
  std::vector<int32_t> some;
  for (auto row = all.begin(); row != all.end(); row += context)
    some.insert(some.end(), row, row + length);
  return some;
}

/// The number of columns of a matrix of `context` that have targets, at least 1.
static int64_t longestSequence(const std::vector<int32_t> &targets, int64_t context) {
  int64_t length = 1;
  for (int64_t i = 0; i < std::ssize(targets); ++i)
    if (targets[i] != ignoredTarget)
      length = std::max(length, i % context + 1);
  return length;
}

HostBatch LanguageData::makeInputs(const Batch &given) const {
  if (batch > 0) {
    const int64_t length = *lengths.lower_bound(longestSequence(given.targets, context));
    HostBatch inputs = languageBatch(narrowed(given.tokens, context, length), narrowed(given.targets, context, length));
    inputs.shape = {std::ssize(given.targets) / context, length};
    return inputs;
  }
  HostBatch inputs = languageBatch(given.tokens, given.targets);
  if (!given.ranges.empty()) {
    if (givesPlaces)
      inputs["positions"] = given.positions;
    inputs["ranges"] = given.ranges;
    inputs["column ranges"] = given.queryRanges;
  }
  return inputs;
}

HostBatch LanguageData::training(int64_t first, int64_t count) {
  return makeInputs(documents ? documents->sequences(first, count) : batches->sequences(first, count));
}

int64_t LanguageData::trainingTargets(int64_t first, int64_t count) {
  return documents ? documents->targets(first, count) : count * context;
}

int64_t LanguageData::validationSequences() const {
  return heldDocuments ? heldDocuments->sequences() : kiln::validationSequences(held->size(), context);
}

int64_t LanguageData::validationTargets(const std::vector<int64_t> &sequences) const {
  int64_t all = 0;
  for (const int64_t number : sequences) // every token of a stream except the first is a target
    all += heldDocuments ? heldDocuments->targets(number) : std::min(held->size() - 1 - number * context, context);
  return all;
}

HostBatch LanguageData::validation(const std::vector<int64_t> &sequences, int64_t count) const {
  if (!heldDocuments)
    return makeInputs(validationBatch(*held, context, sequences, count));
  Batch some = heldDocuments->padding(count);
  for (int64_t row = 0; row < std::ssize(sequences); ++row)
    heldDocuments->read(sequences[row], some, row);
  return makeInputs(some);
}

} // namespace kiln
