// The end of a step, on one or several ranks.

#include "models/train/optimizer.h"
#include "kernels/sum.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace kiln {

/// A rank's sums of squares.
static int64_t countPartialSums(const Target &target, const Shards &shards) {
  int64_t all = 0;
  for (int64_t b = 0; b < shards.buckets(); ++b)
    all += countPartialSums(target, shards.piece(b, 0).count);
  return all;
}

int64_t exchangeBytes(const Target &target, const Shards &shards) {
  return shards.ranks == 1 ? 0 : shards.ranks * (shards.largest() + countPartialSums(target, shards)) * bytesOf(f32);
}

Optimizer::Optimizer(std::shared_ptr<Device> opened, const Target &target, const Model &model, const TrainSettings &s,
                     const TensorRef &record, double lossFactor, std::shared_ptr<Collective> given)
    : device(std::move(opened)), target(target), model(model), ranks(std::move(given)),
      shards(Shards::of(model.parameters().count(), ranks->size(), s.bucket)),
      types(kiln::bufferTypes(model, s, ranks->size())), lossFactor(lossFactor), record(record),
      value(device, types.weights, {shards.padded}), gradient(device, types.gradients, {shards.padded}),
      first(device, f32, {shards.own()}), second(device, f32, {shards.own()}) {
  adamw = {.beta1 = s.beta1,
           .beta2 = s.beta2,
           .epsilon = s.epsilon,
           .decay = s.decay,
           .decayed = model.parameters().decayedCount(),
           .rounding = s.rounding,
           .seed = s.seed};
  if (types.hasMasters())
    master.emplace(device, types.kept, Shape{shards.own()});
  if (s.leavesOutliers()) {
    const auto limit = [](double z) { return z > 0 ? z : std::numeric_limits<double>::infinity(); };
    limits = {limit(s.skipLossZ), limit(s.skipNormZ)};
    outliers.emplace(device, f32, outlierWindowShape);
    outliers->fillZero();
  }
  if (ranks->isAlone())
    return;
  between = DeviceExchange::of(*device, *ranks);
  received = Tensor(device, f32, {ranks->size() * shards.largest()});
  partials = Tensor(device, f32, {ranks->size() * countPartialSums(target, shards)});
}

std::vector<float> Optimizer::outlierWindow() const {
  return outliers ? outliers->downloadFloats() : std::vector<float>();
}

void Optimizer::setOutlierWindow(const std::vector<float> &window) {
  if (outliers && window.empty())
    outliers->fillZero();
  else if (outliers)
    outliers->uploadFloats(window);
}

/// Elements converted at a time.
static constexpr int64_t converted = int64_t{1} << 16;

void Optimizer::initialize(uint64_t seed) {
  const Random random(seed, Stream::weights);
  const BufferSink to = sink();
  for (size_t i = 0; i < model.parameters().all().size(); ++i) {
    const Parameter &p = model.parameters()[static_cast<int>(i)];
    const std::vector<float> begun = firstNumbers(p, random, static_cast<uint32_t>(i));
    std::vector<char> part(std::min(converted, p.count()) * bytesOf(types.kept));
    for (int64_t k = 0; k < p.count(); k += converted) {
      const int64_t count = std::min(converted, p.count() - k);
      fromDoubles({begun.begin() + k, begun.begin() + k + count}, types.kept, part.data());
      to(FlatBuffer::values, p.offset + k, count, part.data());
    }
  }
  first.fillZero();
  second.fillZero();
}

const Tensor &Optimizer::held(FlatBuffer which) const {
  return which == FlatBuffer::first ? first : which == FlatBuffer::second ? second : *master;
}

BufferSink Optimizer::sink() {
  return [this](FlatBuffer which, int64_t begin, int64_t count, const void *from) {
    const auto *const bytes = static_cast<const char *>(from);
    const auto put = [&](Tensor &to, int64_t at, int64_t number, const void *data) {
      const int64_t size = bytesOf(to.type());
      device->upload(static_cast<char *>(to.data()) + at * size, data, number * size);
    };
    const auto keepMine = [&](Tensor &to) {
      shards.parts(ranks->rank(), begin, count, [&](int64_t at, int64_t local, int64_t number) {
        put(to, local, number, bytes + (at - begin) * bytesOf(to.type()));
      });
    };
    if (which != FlatBuffer::values)
      return keepMine(which == FlatBuffer::first ? first : second);
    if (!master)
      return put(value, begin, count, from);
    keepMine(*master);
    std::vector<char> narrow(std::min(converted, count) * bytesOf(types.weights));
    for (int64_t k = 0; k < count; k += converted) {
      const int64_t number = std::min(converted, count - k);
      fromDoubles(toDoubles(bytes + k * bytesOf(types.kept), types.kept, number), types.weights, narrow.data());
      put(value, begin + k, number, narrow.data());
    }
  };
}

//===-- Reading the parts of several ranks ----------------------------------------------------------------------===//

namespace {
/// The first rank's request to the others: a bucket of a buffer, or to continue, and whether it succeeded.
struct Request {
  int64_t ends = 0, succeeded = 0;
  int64_t which = 0, bucket = 0;
};
} // namespace

static void tell(Collective &ranks, Request request) { ranks.broadcast(&request, sizeof(request)); }

void Optimizer::collect(FlatBuffer which, int64_t bucket) const {
  const Tensor &from = held(which);
  const Piece own = mine(bucket);
  const int64_t size = bytesOf(from.type());
  bucketHeld.resize(shards.whole(bucket).count * size);
  device->download(bucketHeld.data() + ranks->rank() * own.count * size,
                   static_cast<const char *>(from.data()) + own.local * size, own.count * size);
  ranks->gather(bucketHeld.data(), own.count * size);
}

void Optimizer::read(FlatBuffer which, int64_t begin, int64_t count, void *to) const {
  if (ranks->isAlone() || (which == FlatBuffer::values && !master)) {
    const Tensor &from = which == FlatBuffer::values && !master ? value : held(which);
    const int64_t size = bytesOf(from.type());
    return device->download(to, static_cast<const char *>(from.data()) + begin * size, count * size);
  }
  const int64_t size = bytesOf(held(which).type());
  for (int64_t at = begin; at < begin + count;) {
    const int64_t bucket = at / shards.bucket;
    if (const std::pair asked(which, bucket); bucketOf != asked) {
      bucketOf.reset();
      tell(*ranks, {.which = static_cast<int64_t>(which), .bucket = bucket});
      collect(which, bucket);
      bucketOf = asked;
    }
    const Piece all = shards.whole(bucket);
    const int64_t number = std::min(begin + count, all.begin + all.count) - at;
    std::memcpy(static_cast<char *>(to) + (at - begin) * size, bucketHeld.data() + (at - all.begin) * size,
                number * size);
    at += number;
  }
}

bool Optimizer::share(const std::function<void(const BufferSource &)> &save) const {
  bucketOf.reset();
  if (!ranks->isFirst())
    while (true) {
      Request asked;
      ranks->broadcast(&asked, sizeof(asked));
      if (asked.ends)
        return asked.succeeded != 0;
      collect(static_cast<FlatBuffer>(asked.which), asked.bucket);
    }
  try {
    save({types.kept,
          [this](FlatBuffer which, int64_t begin, int64_t count, void *to) { read(which, begin, count, to); }});
  } catch (...) {
    tell(*ranks, {.ends = 1, .succeeded = 0});
    throw;
  }
  tell(*ranks, {.ends = 1, .succeeded = 1});
  return true;
}

//===-- The end of a step ---------------------------------------------------------------------------------------===//

TensorRef Optimizer::whole(const Tensor &of, int64_t bucket) const {
  const Piece all = shards.whole(bucket);
  return of.ref().slice(0, all.begin, all.count);
}

/// Sums all ranks' gradients of this rank's piece, in the order of ranks.
Plan Optimizer::planSum(int64_t bucket) const {
  const Piece own = mine(bucket);
  const TensorRef all = received.ref().slice(0, 0, own.count * shards.ranks).reshape({shards.ranks, 1, own.count});
  Plan plan;
  plan.launches.push_back(
      launchSum(target, all, gradient.ref().slice(0, own.begin, own.count).reshape({1, own.count}), false));
  return labelled(plan, "sum of ranks");
}

Plan Optimizer::planSquaresOfMine() const {
  Plan plan;
  int64_t at = ranks->rank() * (partials.count() / shards.ranks);
  for (int64_t b = 0; b < shards.buckets(); ++b) {
    const Piece own = mine(b);
    const int64_t number = countPartialSums(target, own.count);
    plan += planSquares(target, gradient.ref().slice(0, own.begin, own.count), partials.ref().slice(0, at, number));
    at += number;
  }
  return labelled(plan, "gradient norm");
}

Plan Optimizer::planUpdate() const {
  Plan plan = ranks->isAlone() ? planGradNorm(target, gradient, record) : planNorm(target, partials.ref(), record);
  plan = labelled(plan, "gradient norm");
  if (outliers)
    plan += labelled(planOutliers(record, *outliers, lossFactor, limits), "outliers");
  for (int64_t b = 0; b < shards.buckets(); ++b) {
    const Piece own = mine(b);
    AdamWSettings part = adamw;
    part.decayed = std::clamp<int64_t>(adamw.decayed - own.begin, 0, own.count);
    part.offset = own.begin;
    const auto local = [&](const Tensor &of) { return of.ref().slice(0, own.local, own.count); };
    const TensorRef g = gradient.ref().slice(0, own.begin, own.count), v = value.ref().slice(0, own.begin, own.count);
    plan += labelled(master ? planAdamW(target, local(*master), g, local(first), local(second), record, part, v)
                            : planAdamW(target, v, g, local(first), local(second), record, part),
                     "update");
  }
  return plan;
}

Plan Optimizer::plan() const {
  Plan all;
  if (!ranks->isAlone()) {
    for (int64_t b = 0; b < shards.buckets(); ++b)
      all += planSum(b);
    all += planSquaresOfMine();
  }
  all += planUpdate();
  return all;
}

void Optimizer::prepare(const std::function<PreparedPlan(const Plan &)> &ready, const Plan &backward) {
  if (!ranks->isAlone()) {
    order = orderOfBuckets(backward, gradient.ref(), shards);
    for (int64_t b = 0; b < shards.buckets(); ++b)
      sums.push_back(ready(planSum(b)));
    squares = ready(planSquaresOfMine());
  }
  step = ready(planUpdate());
  prepared = true;
}

/// Finishes the pending exchange, so that `received` is free again.
void Optimizer::addReceived() {
  if (!exchanging)
    return;
  between->join();
  sums[*exchanging].run();
  exchanging.reset();
}

void Optimizer::exchangeNext() {
  addReceived();
  const int64_t bucket = order.at(begun++);
  between->begin(whole(gradient, bucket), received.ref().slice(0, 0, shards.whole(bucket).count));
  exchanging = bucket;
}

void Optimizer::exchangeAll() {
  while (begun < order.size())
    exchangeNext();
  addReceived();
  between->finish();
}

void Optimizer::update() {
  if (ranks->isAlone())
    return step.run();
  while (begun < order.size())
    exchangeNext();
  addReceived();
  begun = 0;
  squares.run();
  between->gather(partials);
  step.run();
  for (int64_t b = 0; b < shards.buckets(); ++b)
    between->gather(whole(value, b));
  between->finish();
}

void Optimizer::gatherGradients() {
  for (int64_t b = 0; between && b < shards.buckets(); ++b)
    between->gather(whole(gradient, b));
  if (between)
    between->finish();
}

} // namespace kiln
