// Accesses by the whole of the language: elements that tiles name, masks, views of views, and every atomic.

#include "test/fuzz/generator.h"

#include <algorithm>

namespace kiln::fuzz {

/// A mask for a tile of that shape, or −1: one that broadcasts to it.
int Generator::maskFor(const Shape &shape, int percent) {
  if (isAnyones || !chance(percent))
    return -1;
  Shape narrow = shape;
  for (int64_t &extent : narrow)
    if (chance(15))
      extent = 1;
  while (!narrow.empty() && chance(10))
    narrow.erase(narrow.begin());
  return condition(narrow).value;
}

/// Accesses a part of the view, or positions beyond it; not in a grid, where each element belongs to one program.
void Generator::slice(Op &op) {
  const Shape &extents = program.windows[op.window].extents;
  while (program.grid == 1 && chance(8)) {
    const auto axis = static_cast<int>(below(static_cast<int64_t>(extents.size())));
    const int64_t begin = chance(50) ? 0 : between(-3, 9);
    op.slices.push_back({axis, begin, chance(50) ? extents[axis] - between(-2, 5) : between(-2, 20)});
  }
}

/// Spells some of the subscripts before the tile's by views of the view.
void Generator::select(Op &op) {
  slice(op);
  const size_t blocks = op.shape.size() - static_cast<size_t>(op.index);
  size_t scalars = op.offsets.size();
  for (const Operand &offset : op.offsets)
    scalars -= isTile(offset);
  for (size_t axis = 0; axis < op.offsets.size() && scalars > blocks && op.offsets.size() > 1;) {
    if (isTile(op.offsets[axis]) || !chance(15)) {
      scalars -= !isTile(op.offsets[axis++]);
      continue;
    }
    op.selects.push_back({static_cast<int>(axis), op.offsets[axis]});
    op.offsets.erase(op.offsets.begin() + static_cast<ptrdiff_t>(axis));
    --scalars;
  }
}

bool Generator::isTile(const Operand &offset) const {
  return std::ranges::any_of(known, [&](const Known &k) { return k.value == offset.value && !k.shape.empty(); });
}

/// Positions in a dimension of that extent, some of them outside.
Known Generator::numbers(const Shape &shape, int64_t extent, bool unique) {
  if (!unique && chance(50)) {
    static const std::vector<Type> numbering = {i32, i32, i32, i64, i64, i64, i16, u8, u16, u32, u64};
    const Known any = load(pick(numbering), shape);
    return isUnsigned(any.type) || chance(5) ? any
                                             : fit(any, wholeNumbers(chance(80) ? static_cast<double>(extent) : 4e4));
  }
  const Known line = rows(countOf(shape), extent, true);
  if (line.shape == shape)
    return line;
  return emit({.verb = Verb::reshape, .type = line.type, .shape = shape, .operands = {line.operand()}}, line.facts);
}

/// A window and a position where tiles that broadcast to `index` select elements, or where blocks begin; nothing if the
/// window has too few or too many dimensions. `unique`: no element is selected twice.
std::optional<Generator::Place> Generator::named(int at, const Shape &index, const Shape &blocks, bool unique) {
  const Window window = program.windows[at]; // a copy: drawing subscripts may add windows
  const size_t rank = window.extents.size(), own = isOwn(purposes[at]) ? 1 : 0;
  const size_t most = std::min(rank - 1, 5 - std::min<size_t>(5, index.size()));
  if (blocks.size() + own > most)
    return {};
  const size_t scalars = chance(60) ? blocks.size() + own : between(blocks.size() + own, most);
  std::vector<size_t> axes; // those that are named
  for (size_t axis = own; axis < rank; ++axis)
    axes.push_back(axis);
  std::shuffle(axes.begin(), axes.end(), random);
  axes.resize(rank - scalars);
  std::ranges::sort(axes);
  // Each dimension of the index belongs to one subscript. If the numbers of each are distinct, so are the combinations.
  std::vector<Shape> shapes(axes.size(), Shape(index.size(), 1));
  for (size_t i = 0; i < index.size(); ++i)
    for (const int64_t owner = below(shapes.size()); Shape &shape : shapes)
      if (&shape == &shapes[owner] || (!unique && chance(40)))
        shape[i] = index[i];
  for (size_t i = 1; i < shapes.size(); ++i)
    while (shapes[i].size() > 1 && shapes[i][0] == 1 && chance(50))
      shapes[i].erase(shapes[i].begin());
  Place place{.index = static_cast<int>(index.size()), .unique = unique};
  size_t nextNamed = 0, nextScalar = 0;
  for (size_t axis = 0; axis < rank; ++axis) {
    const int64_t extent = window.extents[axis];
    if (nextNamed < axes.size() && axes[nextNamed] == axis) {
      place.offsets.push_back(numbers(shapes[nextNamed++], extent, unique).operand());
      continue;
    }
    const size_t dropped = scalars - blocks.size(), scalar = nextScalar++;
    if (own && axis == 0)
      place.offsets.push_back(programNumber.operand());
    else if (scalar < dropped && chance(85))
      place.offsets.push_back(Operand::number(below(std::max<int64_t>(1, extent))));
    else
      place.offsets.push_back(offset(scalar < dropped ? 1 : blocks[scalar - dropped], extent));
  }
  return place;
}

/// Extents for a view that is accessed so.
Shape Generator::extentsFor(int named, const Shape &blocks) {
  Shape result = blocks;
  for (int i = 0; i < named; ++i)
    result.insert(result.begin() + below(result.size() + 1), pick(palette));
  return result;
}

bool Generator::loadNamed() {
  const Type type = pick(types);
  const Shape index = drawShape(static_cast<int>(between(1, 2))), blocks = drawShape(static_cast<int>(below(3)));
  if (countOf(index) * countOf(blocks) > 2048 || blocks.size() > 3)
    return false;
  const int at = newWindow(Access::read, type, extentsFor(static_cast<int>(between(1, 2)), blocks));
  const auto place = named(at, index, blocks, false);
  if (!place)
    return false;
  Op op{.verb = Verb::load, .type = type, .shape = index, .which = padding(type), .window = at};
  op.shape.insert(op.shape.end(), blocks.begin(), blocks.end());
  op.offsets = place->offsets;
  op.index = place->index;
  op.mask = maskFor(op.shape, 40);
  op.cache = cache();
  select(op);
  emit(op, padded(program.buffers[program.windows[at].buffer].facts, op.which));
  return true;
}

bool Generator::storeNamed() {
  const auto value = find([](const Known &k) { return k.facts.exact() && !k.shape.empty() && k.shape.size() <= 4; });
  if (!value)
    return false;
  const auto split = value->shape.begin() + between(1, static_cast<int64_t>(value->shape.size()));
  const Shape index(value->shape.begin(), split), blocks(split, value->shape.end());
  if (blocks.size() > 2)
    return false;
  const int at = newWindow(Access::write, value->type, extentsFor(static_cast<int>(between(1, 2)), blocks));
  const auto place = named(at, index, blocks, true);
  if (!place)
    return false;
  const Known stored = fit(*value, program.buffers[program.windows[at].buffer].facts);
  Op op{.verb = Verb::store, .type = stored.type, .shape = stored.shape, .operands = {stored.operand()}, .window = at};
  op.offsets = place->offsets;
  op.index = place->index;
  op.mask = maskFor(op.shape, 40);
  op.cache = cache();
  select(op);
  emit(op, {});
  return true;
}

// --- Atomics: what they leave does not depend on the order of programs or elements -----------------------------------

static constexpr int add = 0, least = 1, greatest = 2, exchange = 6, compareExchange = 7;

static std::vector<Type> typesOf(int kind) {
  if (kind == least || kind == greatest)
    return {i32, i64, u32, u64, f32, f64};
  if (kind == add)
    return {i32, u32, i64, u64, bf16, f16, f32, f64};
  if (kind >= exchange)
    return {i32, i64, i16, u16, u32, bf16, f16, f32, f64};
  return {i32, i64, u32, u64};
}

/// Integers up to the largest that the type holds exactly, so that sums are exact.
static double maxExact(Type type) { return 2 / unitOf(type); }

bool Generator::atomic() {
  const int kind = static_cast<int>(below(8));
  const Type type = pick(typesOf(kind));
  const bool isSum = kind == add && isFloat(type);
  if (isSum && depth > 0)
    return false; // how many are added is not known
  const bool isClosed = isSum || kind == compareExchange;
  const Shape shape = drawShape(static_cast<int>(between(0, 2)));
  const auto split = shape.begin() + (shape.empty() || chance(50) ? 0 : between(1, static_cast<int64_t>(shape.size())));
  const Shape index(shape.begin(), split), blocks(split, shape.end());
  const bool isNamed = !index.empty(), unique = !isNamed || chance(50);
  const int at =
      newWindow(Access::atomic, type, isNamed ? extentsFor(static_cast<int>(between(1, 2)), blocks) : shape, isClosed);
  auto place = isNamed ? named(at, index, blocks, unique) : std::optional(Place{.offsets = offsets(at, shape)});
  if (!place)
    return false;
  Buffer &buffer = program.buffers[program.windows[at].buffer];
  if (isClosed) {
    buffer.fill = Buffer::Fill::small;
    buffer.facts = within(type, {.bound = 4, .openZero = false});
  }
  Op op{.verb = kind == compareExchange ? Verb::compareExchange : Verb::atomic,
        .type = type,
        .shape = shape,
        .which = static_cast<int>(below(4)),
        .window = at,
        .offsets = place->offsets,
        .index = place->index,
        .scope = atomicScope()};
  if (op.verb == Verb::atomic)
    op.axes = {kind};
  if (!drawAtomicOperands(op, kind, place->unique))
    return false;
  op.mask = maskFor(shape, 25);
  select(op);
  emit(op, program.buffers[program.windows[at].buffer].facts);
  if (program.grid > 1 || !place->unique)
    known.pop_back(); // the previous value depends on the order
  return true;
}

/// The operands of an atomic; returns whether suitable ones exist.
bool Generator::drawAtomicOperands(Op &op, int kind, bool unique) {
  const int target = program.windows[op.window].buffer;
  // If several numbers replace one element, the last one stays, unless all are equal.
  const bool isOne = kind >= exchange && (program.grid > 1 || !unique);
  const auto value = [&](const Facts &facts) {
    if (isOne || (kind == compareExchange && isFloat(op.type))) { // whose zeros have a known sign
      const Operand one = literal(op.type);
      return isOne ? emit({.verb = Verb::full, .type = op.type, .shape = op.shape, .operands = {one}},
                          literalFacts(op.type, one))
                   : number(op.type, op.shape);
    }
    return fit(valueOf(op.type, op.shape), facts);
  };
  const Facts facts = program.buffers[target].facts; // a copy: drawing values may add buffers
  if (kind == compareExchange) {
    const Known expected = value(wholeNumbers(2)), desired = value(facts);
    op.operands = {expected.operand(), desired.operand()};
    program.buffers[target].facts = either(facts, desired.facts);
    return true;
  }
  if (kind == add && isFloat(op.type)) {
    const double times = static_cast<double>(program.grid) * (unique ? 1 : static_cast<double>(countOf(op.shape)));
    const double most = std::floor(std::min(8.0, (maxExact(op.type) - facts.bound) / times));
    if (most < 1)
      return false;
    op.operands = {value(wholeNumbers(most)).operand()};
    program.buffers[target].facts.bound += times * most;
    return true;
  }
  const bool isBounded = kind == least || kind == greatest || kind >= exchange;
  if (!isBounded && !anything(op.type).implies(facts))
    return false; // the results exceed the range of the facts
  const Known drawn = value(facts);
  op.operands = {drawn.operand()};
  if (!drawn.facts.implies(facts)) {
    if (program.grid == 1)
      return false; // other windows of this memory rely on its facts
    program.buffers[target].facts = either(facts, drawn.facts);
  }
  return true;
}

} // namespace kiln::fuzz
