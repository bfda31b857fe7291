// Moves of elements: one property for all functions. Element i of the result is element source(i) of the operand, or
// the padding. A case is drawn by its number: a tile; its origin (loaded, computed, reduced, …); one to three functions
// of the table below; and the views in memory, which may end within the tile and have strides. Memory around a view is
// inaccessible, or must not change. `Chains.MoveElements/cpu_17` is case 17 on the CPU.

#include "test/runtime/semantics/drawn.h"

#include <bit>
#include <functional>
#include <optional>

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr int cases = 240;
constexpr int64_t maxElements = 4096; // of a tile

// --- Verbs -----------------------------------------------------------------------------------------------------------

/// The source of an element: an element of the operand, unchanged or changed, or the padding, 1.
struct Origin {
  Shape at;
  bool isChanged = false, isPadding = false;
};

/// A verb with its arguments.
struct Move {
  Shape shape; // of the result
  std::function<Tile(const Tile &)> apply;
  std::function<Origin(Shape)> source;
  std::string text = {};
};

std::optional<Move> drawReshape(const Shape &from, Draw &draw) {
  Shape to;
  int64_t left = countOf(from);
  for (int64_t rank = draw.between(1, 5); rank > 1; --rank) {
    Shape divisors;
    for (int64_t extent = 1; extent <= left; ++extent)
      if (left % extent == 0)
        divisors.push_back(extent);
    to.push_back(draw.pick(divisors));
    left /= to.back();
  }
  to.push_back(left);
  return Move{to, [=](const Tile &t) { return reshape(t, to); },
              [=](const Shape &at) { return Origin{indexOf(numberOf(at, to), from)}; }};
}

std::optional<Move> drawTranspose(const Shape &from, Draw &draw) {
  std::vector<int> order(from.size());
  std::iota(order.begin(), order.end(), 0);
  for (size_t axis = order.size(); axis-- > 1;)
    std::swap(order[axis], order[draw.between(0, axis)]);
  Shape to;
  for (const int axis : order)
    to.push_back(from[axis]);
  return Move{to, [=](const Tile &t) { return transpose(t, order); },
              [=](const Shape &at) {
                Origin origin{Shape(at.size())};
                for (size_t axis = 0; axis < at.size(); ++axis)
                  origin.at[order[axis]] = at[axis];
                return origin;
              }};
}

/// A new dimension; its elements repeat by `broadcast`, or by an operand of that extent.
std::optional<Move> drawBroadcast(const Shape &from, Draw &draw) {
  if (from.size() == 5)
    return std::nullopt;
  const int axis = static_cast<int>(draw.between(0, std::ssize(from)));
  Shape to = from, other(from.size() + 1 - axis, 1);
  to.insert(to.begin() + axis, other[0] = draw.pick({1, 2, 3, 5, 8, 16}));
  const bool isOperand = draw.chance(50), isLeft = draw.chance(50);
  return Move{to,
              [=](const Tile &t) {
                const Tile x = unsqueeze(t, axis);
                if (!isOperand)
                  return broadcast(x, to);
                const Tile zero = zeros(t.type(), other);
                if (t.type() == boolean)
                  return isLeft ? zero | x : x | zero;
                return cast(isLeft ? zero + x : x + zero, t.type());
              },
              [=](Shape at) {
                at.erase(at.begin() + axis);
                return Origin{at};
              }};
}

std::optional<Move> drawRoll(const Shape &from, Draw &draw) {
  const int axis = draw.axis(from), named = draw.chance(30) ? axis - static_cast<int>(from.size()) : axis;
  const int64_t extent = from[axis], by = draw.between(-2 * extent, 2 * extent);
  return Move{from, [=](const Tile &t) { return roll(t, by, named); },
              [=](Shape at) {
                at[axis] = ((at[axis] - by) % extent + extent) % extent;
                return Origin{at};
              }};
}

std::optional<Move> drawExtract(const Shape &from, Draw &draw) {
  Shape begin, to, steps;
  for (const int64_t extent : from) {
    const int64_t step = draw.pick({1, 1, 1, -1, 2, -2, 3, -3}), size = std::abs(step);
    to.push_back(draw.between(1, (extent + size - 1) / size));
    const int64_t first = draw.between(0, extent - 1 - (to.back() - 1) * size);
    begin.push_back(step > 0 ? first : extent - 1 - first);
    steps.push_back(step);
  }
  return Move{to, [=](const Tile &t) { return extract(t, begin, to, steps); },
              [=](Shape at) {
                for (size_t axis = 0; axis < at.size(); ++axis)
                  at[axis] = begin[axis] + at[axis] * steps[axis];
                return Origin{at};
              }};
}

std::optional<Move> drawFlip(const Shape &from, Draw &draw) {
  const int axis = draw.axis(from);
  return Move{from, [=](const Tile &t) { return flip(t, axis); },
              [=](Shape at) {
                at[axis] = from[axis] - 1 - at[axis];
                return Origin{at};
              }};
}

/// One element of each pair of a row.
std::optional<Move> drawSplit(const Shape &from, Draw &draw) {
  if (from.back() % 2 != 0 || from.size() == 5)
    return std::nullopt;
  Shape to = from, pairs = from;
  to.back() = pairs.back() /= 2;
  pairs.push_back(2);
  const int64_t which = draw.between(0, 1);
  return Move{to, [=](const Tile &t) { return split(reshape(t, pairs))[which]; },
              [=](Shape at) {
                at.back() = 2 * at.back() + which;
                return Origin{at};
              }};
}

std::optional<Move> drawJoin(const Shape &from, Draw &) {
  if (from.size() == 5)
    return std::nullopt;
  Shape to = from;
  to.push_back(2);
  return Move{to, [=](const Tile &t) { return join(t, changed(t)); },
              [=](Shape at) {
                const bool isSecond = at.back() == 1;
                at.pop_back();
                return Origin{at, isSecond};
              }};
}

std::optional<Move> drawInterleave(const Shape &from, Draw &draw) {
  const bool isChanged = draw.chance(70);
  Shape to = from;
  to.back() *= 2;
  return Move{to, [=](const Tile &t) { return interleave(t, isChanged ? changed(t) : t); },
              [=](Shape at) {
                const bool isSecond = at.back() % 2 == 1;
                at.back() /= 2;
                return Origin{at, isSecond && isChanged};
              }};
}

/// The tile, the tile changed, and a part of the tile's end.
std::optional<Move> drawConcat(const Shape &from, Draw &draw) {
  const int axis = draw.axis(from), named = draw.chance(30) ? axis - static_cast<int>(from.size()) : axis;
  const int64_t extent = from[axis], third = draw.between(0, extent);
  Shape to = from, begin(from.size(), 0), part = from;
  to[axis] = 2 * extent + third;
  begin[axis] = extent - third;
  part[axis] = third;
  return Move{to,
              [=](const Tile &t) {
                std::vector<At> parts{t, changed(t)};
                if (third > 0)
                  parts.push_back(extract(t, begin, part));
                return concat(parts, named);
              },
              [=](Shape at) {
                const int64_t number = at[axis] / extent;
                at[axis] = at[axis] % extent + (number == 2 ? extent - third : 0);
                return Origin{at, number == 1};
              }};
}

std::optional<Move> drawPad(const Shape &from, Draw &draw) {
  Shape before, after, to;
  for (const int64_t extent : from) {
    before.push_back(draw.pick({0, 0, 1, 2}));
    after.push_back(draw.pick({0, 0, 1, 3}));
    to.push_back(before.back() + extent + after.back());
  }
  return Move{to, [=](const Tile &t) { return pad(t, before, after, t.type() == boolean ? At(true) : At(1)); },
              [=](Shape at) {
                bool isPadding = false;
                for (size_t axis = 0; axis < at.size(); ++axis) {
                  at[axis] -= before[axis];
                  isPadding |= at[axis] < 0 || at[axis] >= from[axis];
                }
                return Origin{at, false, isPadding};
              }};
}

/// A part of the tile, changed, somewhere in it.
std::optional<Move> drawInsert(const Shape &from, Draw &draw) {
  Shape part, taken, begin;
  for (const int64_t extent : from) {
    part.push_back(draw.between(1, extent));
    taken.push_back(draw.between(0, extent - part.back()));
    begin.push_back(draw.between(0, extent - part.back()));
  }
  return Move{from, [=](const Tile &t) { return insert(t, changed(extract(t, taken, part)), begin); },
              [=](Shape at) {
                Shape inside(at.size());
                for (size_t axis = 0; axis < at.size(); ++axis) {
                  const int64_t place = at[axis] - begin[axis];
                  if (place < 0 || place >= part[axis])
                    return Origin{at};
                  inside[axis] = taken[axis] + place;
                }
                return Origin{inside, true};
              }};
}

/// Elements up to a position of an axis as they are, and the others changed.
std::optional<Move> drawWhere(const Shape &from, Draw &draw) {
  const int axis = draw.axis(from);
  const int64_t begin = draw.between(0, from[axis]);
  Shape line(from.size() - axis, 1);
  line[0] = from[axis];
  return Move{from, [=](const Tile &t) { return where(reshape(iota(line[0]), line) < begin, t, changed(t)); },
              [=](const Shape &at) { return Origin{at, at[axis] >= begin}; }};
}

const struct Verb {
  const char *name;
  std::optional<Move> (*draw)(const Shape &from, Draw &draw);
} verbs[] = {
    {"reshape", drawReshape}, {"reshape", drawReshape}, {"transpose", drawTranspose},   {"transpose", drawTranspose},
    {"roll", drawRoll},       {"extract", drawExtract}, {"broadcast", drawBroadcast},   {"flip", drawFlip},
    {"split", drawSplit},     {"join", drawJoin},       {"interleave", drawInterleave}, {"concat", drawConcat},
    {"pad", drawPad},         {"insert", drawInsert},   {"where", drawWhere},
};

// --- Cases -----------------------------------------------------------------------------------------------------------

enum Form { loaded, computed, named, largest, product, truth, forms };
const char *const formNames[] = {"loaded", "computed", "rows by index", "reduce_max", "dot", "truth"};

struct Case {
  Type type = f32, result = f32;
  Form form = loaded;
  Shape tile, loadedTile; // what the verbs take; what is loaded for it
  std::vector<Move> moves;
  Window x, y;
  int64_t from = 0; // the row of x at which the tile begins
  bool isInPlace = false, isTwice = false;
  int axis = 0; // of isTwice
  int64_t warps = 4;
  std::string text;

  explicit Case(int number);
  const Shape &stored() const { return moves.back().shape; }
};

Case::Case(int number) {
  Draw draw(number * 7919 + 11);
  type = computedTypes[number % std::size(computedTypes)];
  form = static_cast<Form>(draw.between(0, forms - 1));
  tile = draw.shape(maxElements / 2);
  if ((form == largest && (tile.size() == 5 || type == boolean)) || (form == truth && type == boolean) ||
      (form == product && (tile.size() != 2 || tile[1] > 64 || (type != f32 && type != bf16 && type != f16))))
    form = loaded;
  result = form == truth ? boolean : type;
  loadedTile = tile;
  if (form == largest)
    loadedTile.push_back(2);
  x = drawWindow(loadedTile, type, true, draw);
  from = form == named || draw.chance(70) ? 0 : draw.pick({-1, 1});
  text = std::string(nameOf(type)) + " " + textOf(tile) + " " + formNames[form];
  Shape shape = tile;
  for (int64_t left = draw.between(1, 3); left > 0;) {
    const Verb &verb = verbs[draw.between(0, std::ssize(verbs) - 1)];
    std::optional<Move> move = verb.draw(shape, draw);
    if (!move || countOf(move->shape) > maxElements)
      continue;
    move->text = std::string(" ") + verb.name + " " + textOf(move->shape);
    text += move->text;
    shape = move->shape;
    moves.push_back(*std::move(move));
    --left;
  }
  isTwice = result != boolean && !(isFloat(type) && bytesOf(type) == 1) && draw.chance(20);
  axis = draw.axis(shape);
  isInPlace = result == type && shape == x.extents && x.isOnce() && draw.chance(60);
  Shape room = shape; // the view may continue behind the tile
  room.back() += draw.chance(25) ? draw.between(1, 3) : 0;
  y = isInPlace ? x : drawWindow(room, result, false, draw);
  warps = draw.pick({1, 2, 4, 8, 16});
  for (const Move &move : moves) // more elements of a thread compile for seconds
    warps = std::max(warps, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(countOf(move.shape) / 512))));
  text += std::string(isTwice ? ", and its largest" : "") + (isInPlace ? ", in place" : "") + ", views " +
          textOf(x.extents) + " " + textOf(x.strides) + ", " + textOf(y.extents) + " " + textOf(y.strides);
}

struct ChainConfig {
  int number = 0, warps = 4;
};

/// x begins `from` rows before or after the tile; `rows` names its rows.
void chain(View x, View rows, View y, Tile from, ChainConfig cfg) {
  const Case one(cfg.number);
  Offsets at(one.loadedTile.size(), 0);
  at[0] = from;
  Shape shape = one.loadedTile;
  if (one.form == named) {
    at[0] = load(rows, {0}, {shape[0]});
    shape.erase(shape.begin());
  }
  Tile t = load(x, at, shape);
  if (one.form == computed)
    t = changed(t);
  if (one.form == largest)
    t = reduce_max(t, -1);
  if (one.form == truth)
    t = t != 0;
  if (one.form == product) {
    const Tile line = iota(shape[1]);
    t = cast(dot(t, cast(unsqueeze(line, 1) == line, t.type())), x.type());
  }
  for (const Move &move : one.moves)
    t = move.apply(t);
  if (one.isTwice)
    t = cast(t + reduce_max(t, one.axis, true), y.type());
  store(y, Offsets(t.rank(), 0), t);
}
const Kernel chainKernel =
    kernel("chain", chain, {field("number", &ChainConfig::number), field("warps", &ChainConfig::warps)});

// --- The property ----------------------------------------------------------------------------------------------------

/// The row selected for row i: all in reverse, one outside.
int64_t rowNamed(int64_t i, int64_t rows) { return i == 1 ? -7 : rows - 1 - i; }

/// The number of an element of the operand.
int64_t sourceNumber(const Case &one, const Shape &at) {
  const auto loadedNumber = [&](Shape place) {
    place[0] = one.form == named ? rowNamed(place[0], one.tile[0]) : place[0] + one.from;
    for (size_t axis = 0; axis < place.size(); ++axis)
      if (place[axis] < 0 || place[axis] >= one.x.extents[axis])
        return int64_t(0);
    return numberAt(one.type, one.x.placeOf(place));
  };
  if (one.form == largest) {
    Shape first = at, second = at;
    first.push_back(0);
    second.push_back(1);
    return std::max(loadedNumber(first), loadedNumber(second));
  }
  const int64_t number = loadedNumber(at);
  return one.form == computed ? changedNumber(one.type, number) : one.form == truth ? number != 0 : number;
}

/// The numbers of the result in row-major order.
std::vector<int64_t> resultOf(const Case &one) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < countOf(one.stored()); ++i) {
    Origin origin{indexOf(i, one.stored())};
    int changes = 0;
    for (size_t move = one.moves.size(); move-- > 0 && !origin.isPadding;) {
      origin = one.moves[move].source(origin.at);
      changes += origin.isChanged;
    }
    int64_t number = origin.isPadding ? 1 : sourceNumber(one, origin.at);
    while (changes-- > 0)
      number = changedNumber(one.result, number);
    numbers.push_back(number);
  }
  if (!one.isTwice)
    return numbers;
  std::vector<int64_t> both = numbers;
  for (int64_t i = 0; i < std::ssize(numbers); ++i) {
    Shape at = indexOf(i, one.stored());
    int64_t most = numbers[i];
    for (at[one.axis] = 0; at[one.axis] < one.stored()[one.axis]; ++at[one.axis])
      most = std::max(most, numbers[numberOf(at, one.stored())]);
    both[i] += most;
  }
  return both;
}

class Chains : public Drawn {};

TEST_P(Chains, MoveElements) {
  const Case one(number);
  SCOPED_TRACE(one.text);
  Raw have(one.x.size), order, untouched(one.y.size, wordOf(one.result, 1));
  for (int64_t place = 0; place < one.x.size; ++place)
    have[place] = wordOf(one.type, numberAt(one.type, place));
  for (int64_t i = 0; i < one.tile[0]; ++i)
    order.push_back(rawOfInteger(i32, rowNamed(i, one.tile[0])));
  const Tensor rows = tensor(i32, {one.tile[0]}, order);
  const GuardedPages x(*device, one.type, have), other(*device, one.result, untouched);
  const GuardedPages &y = one.isInPlace ? x : other;
  launch(chainKernel, {one.x.of(x, one.type), rows.ref(), one.y.of(y, one.result), one.from},
         ChainConfig{number, static_cast<int>(one.warps)});
  Raw want = one.isInPlace ? have : untouched;
  const std::vector<int64_t> numbers = resultOf(one);
  for (int64_t i = 0; i < countOf(one.y.extents); ++i) {
    const Shape at = indexOf(i, one.y.extents);
    if (at.back() < one.stored().back())
      want[one.y.placeOf(at)] = wordOf(one.result, numbers[numberOf(at, one.stored())]);
  }
  const Raw got = y.read(one.result);
  for (size_t place = 0; place < got.size(); ++place)
    ASSERT_EQ(got[place], want[place]) << "element " << place << " of the buffer";
}

KILN_ON_CASES(Chains, cases, processors);

} // namespace
