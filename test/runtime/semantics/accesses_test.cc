// Accesses of memory: one property for all their forms. A load reads, and a store or an atomic changes, the elements
// that the subscripts name, if they are inside the view and their mask is true, and no others. A case is drawn by its
// number: up to three copies of a tile, each with its own types, views, views of views, subscripts, masks, padding and
// cache hints. All memory around the views is inaccessible, or must not change. `Accesses.ReachWhatTheyName/cpu_17` is
// case 17.

#include "test/runtime/semantics/drawn.h"

#include <limits>
#include <list>
#include <map>
#include <optional>
#include <set>

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr int cases = 360;
constexpr int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();

// --- Accesses --------------------------------------------------------------------------------------------------------

/// A block, or a tile of positions.
struct Subscript {
  bool isBlock = true;
  int64_t size = 1;       // of a block
  bool isDropped = false; // the block's dimension, of extent 1, is not in the tile
  Number from;            // where a block begins; added to positions that are computed
  Shape shape;            // of the positions; those that are computed are `step` apart
  int64_t step = 1;
  bool isNarrow = false;      // positions are i32
  std::optional<Type> stored; // of positions in memory
  Shape positions;
};

/// A view of a view.
struct Part {
  bool isPlane = false; // selected at `begin`
  int axis = 0;
  Number begin, end;
  int64_t first = 0, extent = 0; // of a slice, clamped
};

struct Mask {
  Shape shape;             // broadcasts to the tile
  bool isComputed = false; // positions along an axis are below `limit`, or `isAbove`
  bool isAbove = false;
  int axis = 0;
  Number limit;
  Raw bytes; // in memory; any but 0 is true

  bool at(const Shape &of) const {
    Shape place(of.end() - std::ssize(shape), of.end());
    for (size_t i = 0; i < shape.size(); ++i)
      place[i] = shape[i] == 1 ? 0 : place[i];
    return isComputed ? (place[axis] < limit.value) != isAbove : bytes[numberOf(place, shape)] != 0;
  }
};

struct Access {
  Window window;
  std::vector<Part> parts;
  Shape extents; // of the view that the parts give
  std::vector<Subscript> at;
  std::optional<Mask> mask;
  bool isKnown = false; // the extents are part of the specialisation
};

/// Positions in a dimension: most are inside, some across an end or far away.
int64_t drawOffset(int64_t extent, int64_t size, Draw &draw) {
  switch (draw.pick({0, 0, 0, 1, 1, 2, 2, 3, 3, 4})) {
  case 1:
    return draw.between(0, std::max<int64_t>(extent - size, 0));
  case 2:
    return -draw.between(1, size);
  case 3:
    return extent - size + draw.between(1, size);
  case 4:
    return draw.pick({least, least + 1, most, most - 7, most / 2, int64_t(1) << 61, (int64_t(1) << 32) + 3,
                      -(int64_t(1) << 32) + 3, -(int64_t(1) << 33), extent + 5});
  default:
    return 0;
  }
}

/// A slice of a dimension, and the view's extent after it.
Part drawSlice(int axis, Shape &extents, Numbers &numbers, Draw &draw) {
  const int64_t extent = extents[axis];
  const int64_t begin = draw.chance(85) ? draw.between(0, 3) : draw.pick({least, -1, extent + 1}),
                end = draw.chance(85) ? extent - draw.between(0, 3) : draw.pick({most, -1, begin});
  Part part{false, axis, numbers.draw(begin, draw), numbers.draw(end, draw)};
  part.first = std::clamp<int64_t>(begin, 0, extent);
  extents[axis] = part.extent = std::clamp(end, part.first, extent) - part.first;
  return part;
}

void drawPositions(Subscript &at, int64_t extent, Numbers &numbers, Draw &draw) {
  const int64_t count = countOf(at.shape);
  if (draw.chance(60)) {
    at.step = draw.pick({1, 1, 0, 2, -1});
    const int64_t inside = at.step < 0 ? count - 1 : draw.between(0, 2);
    at.from = numbers.draw(draw.chance(70) ? inside : drawOffset(extent, count, draw), draw);
    at.isNarrow = at.from.value > -1000 && at.from.value < 1000 && draw.chance(50);
    for (int64_t i = 0; i < count; ++i)
      at.positions.push_back(wrappedSum(at.from.value, at.step * i));
    return;
  }
  const Type types[] = {i8, i32, i64, u32};
  at.stored = types[draw.between(0, 3)];
  extent = std::min<int64_t>(extent, *at.stored == i8 ? 100 : 1 << 30);
  while (std::ssize(at.positions) < count)
    at.positions.push_back(isUnsigned(*at.stored) || draw.chance(80) ? draw.between(0, extent)
                           : *at.stored == i64                       ? drawOffset(extent, 1, draw)
                                                                     : draw.between(-2, extent + 1));
}

std::optional<Mask> drawMask(const Shape &tile, Numbers &numbers, Draw &draw) {
  if (draw.chance(60))
    return {};
  Mask mask{tile};
  for (int64_t &extent : mask.shape)
    extent = draw.chance(20) ? 1 : extent;
  while (!mask.shape.empty() && draw.chance(15))
    mask.shape.erase(mask.shape.begin());
  if (!mask.shape.empty() && draw.chance(40)) {
    mask.isComputed = true;
    mask.isAbove = draw.chance(30);
    mask.axis = draw.axis(mask.shape);
    mask.limit = numbers.draw(draw.chance(80) ? draw.between(0, mask.shape[mask.axis] + 1)
                                              : drawOffset(mask.shape[mask.axis], 1, draw),
                              draw);
    return mask;
  }
  // True for all elements of some vectors, and not of others.
  const int64_t form = draw.between(0, 4), row = mask.shape.empty() ? 1 : mask.shape.back(),
                split = draw.pick({row, row - 1, row / 2, std::min<int64_t>(row, 33), 0});
  for (int64_t i = 0; i < countOf(mask.shape); ++i) {
    const bool isTrue = form == 0   ? i % row < split
                        : form == 1 ? i % row >= split
                        : form == 2 ? i % 67 != 66
                        : form == 3 ? (i / row) % 2 == 0 // of whole rows
                                    : draw.chance(50);
    mask.bytes.push_back(isTrue ? draw.pick({1, 1, 0xAA}) : 0);
  }
  return mask;
}

/// Subscripts of a tile with these dimensions of positions, and then blocks; not yet where they are.
std::vector<Subscript> drawSubscripts(const Shape &index, const Shape &blocks, bool isRead, Draw &draw) {
  std::vector<Subscript> all;
  for (const int64_t size : blocks)
    all.push_back({.size = size});
  if (blocks.size() + index.size() == 0 || (blocks.size() < 3 && (isRead || index.empty()) && draw.chance(20)))
    all.insert(all.begin(), {.size = 1, .isDropped = true});
  int64_t named = index.empty() ? 0 : draw.between(1, std::max<int64_t>(1, 3 - std::ssize(all)));
  for (bool isFirst = true; named-- > 0; isFirst = false) {
    Subscript subscript{.isBlock = false, .shape = index};
    if (!isFirst) { // the first one alone has all extents, or a row and a column have them
      for (int64_t &extent : subscript.shape)
        extent = draw.chance(40) ? 1 : extent;
      if (subscript.shape.size() == 2 && draw.chance(40))
        subscript.shape.erase(subscript.shape.begin());
    } else if (index.size() == 2 && named > 0 && draw.chance(60)) {
      subscript.shape[1] = 1;
      all.insert(all.begin() + draw.between(0, std::ssize(all)),
                 {.isBlock = false, .shape = draw.chance(50) ? Shape{index[1]} : Shape{1, index[1]}});
      --named;
    }
    all.insert(all.begin() + draw.between(0, std::ssize(all)), subscript);
  }
  return all;
}

Access drawAccess(Type type, const Shape &index, const Shape &blocks, bool isRead, Numbers &numbers, Draw &draw) {
  Access access;
  access.at = drawSubscripts(index, blocks, isRead, draw);
  Shape extents;
  for (const Subscript &subscript : access.at)
    extents.push_back(subscript.isBlock ? std::max<int64_t>(subscript.size + draw.pick({0, 0, 0, -1, -3, 1, 3, 19}), 1)
                                        : draw.pick({1, 4, 8, 19, 40}));
  const auto scalars = std::ranges::count(access.at, true, &Subscript::isBlock);
  const bool hasPlane = extents.size() < 5 && std::ssize(index) + scalars < 5 && draw.chance(15);
  const auto plane = static_cast<int>(draw.between(0, std::ssize(extents)));
  if (hasPlane)
    extents.insert(extents.begin() + plane, draw.between(1, 4));
  while (countOf(extents) > 4096)
    *std::ranges::max_element(extents) /= 2;
  access.window = drawWindow(extents, type, isRead, draw);
  access.extents = access.window.extents;
  if (draw.chance(12))
    access.parts.push_back(drawSlice(draw.axis(access.extents), access.extents, numbers, draw));
  if (hasPlane) {
    const int64_t extent = access.extents[plane];
    access.parts.push_back(
        {true, plane,
         numbers.draw(draw.chance(90) ? draw.between(0, std::max<int64_t>(extent - 1, 0)) : drawOffset(extent, 1, draw),
                      draw)});
    access.extents.erase(access.extents.begin() + plane);
  }
  if (draw.chance(12))
    access.parts.push_back(drawSlice(draw.axis(access.extents), access.extents, numbers, draw));
  access.isKnown = draw.chance(30);
  Shape tile = index;
  for (size_t axis = 0; axis < access.at.size(); ++axis) {
    Subscript &subscript = access.at[axis];
    if (subscript.isBlock)
      subscript.from = numbers.draw(drawOffset(access.extents[axis], subscript.size, draw), draw, true);
    else
      drawPositions(subscript, access.extents[axis], numbers, draw);
  }
  tile.insert(tile.end(), blocks.begin(), blocks.end());
  access.mask = drawMask(tile, numbers, draw);
  return access;
}

// --- Cases -----------------------------------------------------------------------------------------------------------

/// An atomic that a type has; null if there is none.
const Atomic *drawAtomic(Type type, Draw &draw) {
  if (type == boolean || bytesOf(type) == 1)
    return nullptr;
  const bool isFew = bytesOf(type) == 2; // those of 2 bytes are exchanged, and floats are added, too
  return &atomics[!isFloat(type) ? isFew ? 6 : draw.between(0, 6)
                  : isFew        ? draw.pick({0, 6})
                                 : draw.pick({0, 1, 2, 6})];
}

/// A tile that is read, perhaps converted or changed, and written.
struct Copy {
  Type type = f32, result = f32;
  Shape index, blocks, tile;
  int64_t moving = -1; // the block that each program has further on by its size
  Access from, to;
  Padding padding = Padding::zero;
  Cache reading = Cache::evict_normal, writing = Cache::evict_normal; // change nothing
  Order order = Order::relaxed;                                       // of atomics
  bool isChanged = false, isSummed = false, isAliased = false;
  const Atomic *atomic = nullptr; // in place of a store
  bool isUnread = false;          // its result
  Scope scope = Scope::device;

  int64_t numberAt(int64_t place) const {
    const auto has = [&](auto property) { return property(type) || property(result); };
    const bool isSmall = has([](Type t) { return isFloat(t) && bytesOf(t) == 1; }),
               isSigned = !isSmall && !has([](Type t) { return isUnsigned(t) || t == boolean; });
    return test::numberAt(type == boolean ? boolean : isSmall ? f8e4m3 : f32, place) - (isSigned ? 26 : 0);
  }
};

Copy drawCopy(int number, int64_t programs, Numbers &numbers, Draw &draw) {
  Copy copy;
  copy.type = copy.result = computedTypes[number % std::size(computedTypes)];
  if (draw.chance(20))
    copy.result = computedTypes[draw.between(0, std::ssize(computedTypes) - 1)];
  if (draw.chance(50))
    copy.index = draw.chance(50) ? Shape{draw.pick({1, 5, 8, 17, 64})}
                                 : Shape{draw.pick({1, 2, 4, 8}), draw.pick({1, 3, 8, 33})};
  const int64_t blockCount = draw.between(programs > 1 || (copy.index.empty() && draw.chance(90)), 3);
  while (std::ssize(copy.blocks) < blockCount)
    copy.blocks.push_back(draw.pick({1, 2, 3, 5, 8, 9, 15, 16, 17, 24, 31, 32, 33, 64, 100, 300}));
  while (countOf(copy.index) * countOf(copy.blocks) > 1024)
    for (int64_t &size : copy.blocks)
      size = (size + 1) / 2;
  copy.tile = copy.index;
  copy.tile.insert(copy.tile.end(), copy.blocks.begin(), copy.blocks.end());
  copy.moving = programs > 1 ? draw.between(0, blockCount - 1) : -1;
  if (isFloat(copy.type) && bytesOf(copy.type) > 1 && copy.type == copy.result && draw.chance(25))
    copy.padding = static_cast<Padding>(draw.between(1, 4));
  copy.reading = static_cast<Cache>(draw.pick({0, 0, 1, 2}));
  copy.writing = static_cast<Cache>(draw.pick({0, 0, 1, 2}));
  copy.order = static_cast<Order>(draw.between(0, 3));
  copy.isChanged = copy.padding == Padding::zero && draw.chance(40);
  copy.isSummed = copy.padding == Padding::zero && !copy.tile.empty() && draw.chance(25);
  copy.atomic = copy.padding == Padding::zero && draw.chance(20) ? drawAtomic(copy.result, draw) : nullptr;
  copy.isUnread = draw.chance(30);
  copy.scope = programs == 1 ? static_cast<Scope>(draw.between(0, 2)) : Scope::device;
  copy.isAliased = copy.type == copy.result && programs == 1 && draw.chance(20);
  copy.from = drawAccess(copy.type, copy.index, copy.blocks, true, numbers, draw);
  copy.to = drawAccess(copy.result, copy.index, copy.blocks, false, numbers, draw);
  if (copy.isAliased)
    copy.from.window.size = copy.to.window.size = std::max(copy.from.window.size, copy.to.window.size);
  return copy;
}

std::string describe(const Copy &copy) {
  std::string text = std::string(nameOf(copy.type)) + " to " + nameOf(copy.result) + " " + textOf(copy.tile) +
                     (copy.isChanged ? ", changed" : "") + (copy.isSummed ? ", summed" : "") +
                     (copy.atomic ? ", atomic " + std::to_string(copy.atomic - atomics) : "") +
                     (copy.isAliased ? ", in one buffer" : "");
  for (const Access *access : {&copy.from, &copy.to}) {
    text += access == &copy.from ? "; from " : "; to ";
    text += textOf(access->window.extents) + " by " + textOf(access->window.strides) + (access->mask ? " masked" : "");
    for (const Part &part : access->parts)
      text += std::string(part.isPlane ? " plane " : " slice from ") + std::to_string(part.begin.value);
    for (const Subscript &at : access->at)
      text += at.isBlock ? " " + std::to_string(at.from.value) + ":" + std::to_string(at.size)
                         : " [" + textOf(at.positions) + "]";
  }
  return text + "\n";
}

struct Case {
  Numbers numbers;
  std::vector<Copy> copies;
  int64_t programs = 1, warps = 4;
  std::string text;

  explicit Case(int number) {
    Draw draw(number * 7919 + 3);
    programs = draw.chance(25) ? draw.between(2, 3) : 1;
    warps = draw.pick({1, 2, 4, 8});
    for (int64_t left = draw.between(1, 3); left > 0; --left)
      text += describe(copies.emplace_back(drawCopy(number + static_cast<int>(left), programs, numbers, draw)));
    numbers.complete();
  }
};

struct CaseConfig {
  int number = 0, warps = 4;
};

/// The views of positions and masks that accesses use one after the other.
struct Lists {
  std::vector<View> positions, masks;
  size_t position = 0, mask = 0;
};

View viewOf(const Access &access, View view, const Sources &scope) {
  if (access.isKnown)
    for (int axis = 0; axis < view.rank(); ++axis)
      (void)view.extent(axis);
  for (const Part &part : access.parts)
    view = part.isPlane ? view.select(part.axis, scope.tile(part.begin))
                        : view.slice(part.axis, scope.tile(part.begin), scope.tile(part.end));
  return view;
}

Offsets offsetsOf(const Access &access, View view, int64_t moving, const Sources &scope, Lists &lists) {
  Offsets offsets;
  for (int axis = 0; const Subscript &at : access.at) {
    if (at.isBlock) {
      const Tile from = scope.tile(at.from, view, axis, access.extents[axis]);
      const bool isMoving = !at.isDropped && moving-- == 0;
      offsets.emplace_back(isMoving ? from + program_id(0) * at.size : from);
    } else if (at.stored) {
      offsets.emplace_back(load(lists.positions[lists.position++], Offsets(at.shape.size(), 0), at.shape));
    } else {
      const Type type = at.isNarrow ? i32 : i64;
      const int64_t count = countOf(at.shape);
      const Tile base = cast(scope.tile(at.from), type);
      offsets.emplace_back(at.step == 0 ? base + zeros(type, at.shape)
                                        : base + reshape(iota(count, type) * at.step, at.shape));
    }
    ++axis;
  }
  return offsets;
}

At maskOf(const Access &access, const Sources &scope, Lists &lists) {
  if (!access.mask)
    return true;
  const Mask &mask = *access.mask;
  if (!mask.isComputed)
    return load(lists.masks[lists.mask++], Offsets(std::max<size_t>(mask.shape.size(), 1), 0), mask.shape);
  Shape line(mask.shape.size(), 1);
  line[mask.axis] = mask.shape[mask.axis];
  const Tile at = reshape(iota(line[mask.axis], i64), line), limit = scope.tile(mask.limit);
  return mask.isAbove ? at >= limit : at < limit;
}

/// sums: of the tiles' rows, for each program; olds: what atomics return.
void copyTiles(std::vector<View> xs, std::vector<View> ys, std::vector<View> positions, std::vector<View> masks,
               std::vector<View> sums, std::vector<View> olds, View list, Tile a, Tile b, Tile c, Tile d,
               CaseConfig cfg) {
  const Case one(cfg.number);
  const Sources scope{{a, b, c, d}, list};
  Lists lists{positions, masks};
  for (size_t i = 0; i < one.copies.size(); ++i) {
    const Copy &copy = one.copies[i];
    const View from = viewOf(copy.from, xs[i], scope), to = viewOf(copy.to, ys[i], scope);
    Offsets at = offsetsOf(copy.from, from, copy.moving, scope, lists);
    Tile tile = load(from, at, copy.blocks, {copy.padding, maskOf(copy.from, scope, lists), copy.reading});
    if (copy.isSummed) {
      const Tile sum = kiln::sum(cast(tile, i32), -1);
      store(sums[i], {program_id(0), 0}, reshape(sum, {1, countOf(sum.shape())}));
    }
    tile = copy.isChanged ? changed(tile) : tile;
    tile = copy.type == copy.result ? tile : cast(tile, copy.result);
    at = offsetsOf(copy.to, to, copy.moving, scope, lists);
    const At mask = maskOf(copy.to, scope, lists);
    if (!copy.atomic) {
      store(to, at, tile, {mask, copy.writing});
      continue;
    }
    const Tile old = copy.atomic->apply(to, at, tile, copy.order, {mask, copy.scope}, here());
    if (!copy.isUnread)
      store(olds[i], {program_id(0), 0}, reshape(old, {1, countOf(copy.tile)}));
  }
}
const Kernel copyTilesKernel =
    kernel("copy_tiles", copyTiles, {"xs", "ys", "positions", "masks", "sums", "olds", "list", "a", "b", "c", "d"},
           {field("number", &CaseConfig::number), field("warps", &CaseConfig::warps)});

// --- The property ----------------------------------------------------------------------------------------------------

/// The place in its buffer of the element that an access gives to element `at` of the tile; nothing if there is none.
std::optional<int64_t> placeOf(const Access &access, const Copy &copy, const Shape &at, int64_t program) {
  if (access.mask && !access.mask->at(at))
    return {};
  Shape element;
  size_t next = copy.index.size();
  int64_t block = 0;
  for (const Subscript &subscript : access.at) {
    if (subscript.isBlock) {
      const int64_t moved = !subscript.isDropped && block++ == copy.moving ? program * subscript.size : 0;
      element.push_back(wrappedSum(wrappedSum(subscript.from.value, moved), subscript.isDropped ? 0 : at[next++]));
      continue;
    }
    const Shape &shape = subscript.shape;
    Shape place(at.begin() + std::ssize(copy.index) - std::ssize(shape), at.begin() + std::ssize(copy.index));
    for (size_t i = 0; i < shape.size(); ++i)
      place[i] = shape[i] == 1 ? 0 : place[i];
    element.push_back(subscript.positions[numberOf(place, shape)]);
  }
  for (size_t i = access.parts.size(); i-- > 0;) {
    const Part &part = access.parts[i];
    if (part.isPlane)
      element.insert(element.begin() + part.axis, part.begin.value);
    else if (element[part.axis] < 0 || element[part.axis] >= part.extent)
      return {};
    else
      element[part.axis] += part.first;
  }
  for (size_t axis = 0; axis < element.size(); ++axis)
    if (element[axis] < 0 || element[axis] >= access.window.extents[axis])
      return {};
  return access.window.placeOf(element);
}

/// The words that memory and results must have.
struct Wants {
  std::map<int64_t, std::set<uint64_t>> stored; // any of them, if an element is named several times
  Raw sums, olds;                               // for each program
  std::vector<bool> hasOld;                     // whether only one order of the atomics is possible
};

Wants expectedResults(const Copy &copy, int64_t programs) {
  Wants wants;
  const double paddings[] = {0, -0.0, INFINITY, -INFINITY, NAN};
  const int64_t count = countOf(copy.tile);
  std::map<int64_t, int> changes;
  const auto each = [&](auto action) {
    for (int64_t program = 0; program < programs; ++program)
      for (int64_t i = 0; i < count; ++i)
        action(program, indexOf(i, copy.tile));
  };
  each([&](int64_t program, const Shape &at) {
    const std::optional<int64_t> to = placeOf(copy.to, copy, at, program);
    if (to)
      ++changes[*to];
  });
  std::map<int64_t, int64_t> numbers; // after atomics
  int64_t row = 0;
  each([&](int64_t program, const Shape &at) {
    const std::optional<int64_t> from = placeOf(copy.from, copy, at, program), to = placeOf(copy.to, copy, at, program);
    int64_t number = from ? copy.numberAt(*from) : 0;
    if (copy.isSummed) {
      row += number;
      if (at.back() == copy.tile.back() - 1)
        wants.sums.push_back(rawOfInteger(i32, std::exchange(row, 0)));
    }
    number = copy.isChanged ? changedNumber(copy.type, number) : number;
    const uint64_t word = from || copy.padding == Padding::zero
                              ? wordOf(copy.result, number)
                              : rawOfReal(copy.type, paddings[static_cast<int>(copy.padding)]);
    const int64_t old = to ? copy.numberAt(*to) : 0;
    wants.olds.push_back(wordOf(copy.result, old));
    wants.hasOld.push_back(!to || changes[*to] == 1);
    if (!to)
      return;
    if (!copy.atomic || copy.atomic->apply == atomic_exchange) {
      wants.stored[*to].insert(word);
      return;
    }
    int64_t &now = numbers.try_emplace(*to, old).first->second;
    wants.stored[*to] = {wordOf(copy.result, now = copy.atomic->after(now, number))};
  });
  return wants;
}

/// The words of a window's pages: the numbers of their places.
Raw wordsOf(const Copy &copy, const Window &window, Type type) {
  Raw words;
  for (int64_t place = 0; place < window.size; ++place)
    words.push_back(wordOf(type, copy.numberAt(place)));
  return words;
}

class Accesses : public Drawn {};

TEST_P(Accesses, ReachWhatTheyName) {
  const Case one(number);
  SCOPED_TRACE(one.text);
  std::list<GuardedPages> pages;
  std::vector<const GuardedPages *> targets;
  std::vector<TensorRef> xs, ys;
  std::vector<Tensor> positions, masks, sums, olds;
  for (const Copy &copy : one.copies) {
    const Window &from = copy.from.window, &to = copy.to.window;
    const GuardedPages &source = pages.emplace_back(*device, copy.type, wordsOf(copy, from, copy.type));
    targets.push_back(copy.isAliased ? &source
                                     : &pages.emplace_back(*device, copy.result, wordsOf(copy, to, copy.result)));
    xs.push_back(from.of(source, copy.type));
    ys.push_back(to.of(*targets.back(), copy.result));
    for (const Access *access : {&copy.from, &copy.to}) {
      for (const Subscript &at : access->at)
        if (at.stored) {
          Raw words;
          for (const int64_t position : at.positions)
            words.push_back(rawOfInteger(*at.stored, position));
          positions.push_back(tensor(*at.stored, at.shape, words));
        }
      if (access->mask && !access->mask->isComputed)
        masks.push_back(
            tensor(boolean, access->mask->shape.empty() ? Shape{1} : access->mask->shape, access->mask->bytes));
    }
    const int64_t count = countOf(copy.tile);
    sums.emplace_back(device, i32, Shape{one.programs, copy.tile.empty() ? 1 : count / copy.tile.back()});
    olds.emplace_back(device, copy.result, Shape{one.programs, count});
  }
  const Tensor list = tensor(i64, {std::ssize(one.numbers.loaded)}, one.numbers.words());
  const Shape &a = one.numbers.arguments;
  launch(copyTilesKernel, {xs, ys, positions, masks, sums, olds, list, a[0], a[1], a[2], a[3]},
         CaseConfig{number, static_cast<int>(one.warps)}, one.programs);
  for (size_t i = 0; i < one.copies.size(); ++i) {
    const Copy &copy = one.copies[i];
    const Wants wants = expectedResults(copy, one.programs);
    const Raw was = wordsOf(copy, copy.to.window, copy.result);
    const Raw got = targets[i]->read(copy.result);
    for (int64_t place = 0; place < std::ssize(was); ++place)
      if (const auto want = wants.stored.find(place); want == wants.stored.end())
        ASSERT_EQ(got[place], was[place]) << "copy " << i << ", element " << place << ", which nothing names";
      else
        ASSERT_TRUE(
            std::ranges::any_of(want->second, [&](uint64_t word) { return same(copy.result, got[place], word); }))
            << "copy " << i << ", element " << place << " is " << got[place] << ", expected " << *want->second.begin();
    if (copy.isSummed)
      ASSERT_EQ(read(sums[i]), wants.sums) << "copy " << i;
    const Raw old = read(olds[i]);
    for (size_t element = 0; copy.atomic && !copy.isUnread && element < old.size(); ++element)
      if (wants.hasOld[element])
        ASSERT_EQ(old[element], wants.olds[element]) << "copy " << i << ", old value of element " << element;
  }
}

KILN_ON_CASES(Accesses, cases, processors);

} // namespace
