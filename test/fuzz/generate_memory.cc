// Views and their accesses: of every rank, padded, permuted, reversed, strided, repeated and overlapping, and tiles
// that extend past either end of them.

#include "test/fuzz/generator.h"

#include <algorithm>

namespace kiln::fuzz {

/// Margin elements on both sides of the views of a buffer: more than any vector register holds.
static constexpr int64_t margin = 128;

static Facts factsOf(Type type, Buffer::Fill fill) {
  if (type == boolean || isUnsigned(type) || !hasArithmetic(type) || fill == Buffer::Fill::wild)
    return anything(type);
  const double bound = fill == Buffer::Fill::small ? 4 : isFloat(type) ? 8 : 40;
  return {.bound = bound, .whole = !isFloat(type) || fill == Buffer::Fill::small};
}

int Generator::newBuffer(Access access, Type type) {
  Buffer buffer;
  const int64_t draw = below(10);
  buffer.fill = draw < 5 ? Buffer::Fill::small : draw < 7 ? Buffer::Fill::real : Buffer::Fill::wild;
  if (access != Access::read && (access != Access::write || chance(60)))
    buffer.fill = Buffer::Fill::wild;
  else if (even && chance(70))
    buffer.fill = Buffer::Fill::small; // what a product takes as it is
  buffer.type = type;
  buffer.elements = margin;
  buffer.facts = factsOf(type, buffer.fill);
  buffer.written = access != Access::read;
  buffer.facts.openZero = isFloat(type) && buffer.written;
  buffer.loaded = access != Access::writeLoose;
  program.buffers.push_back(buffer);
  return static_cast<int>(program.buffers.size()) - 1;
}

/// Strides for the window's extents: dense at first, then made odd.
void Generator::drawStrides(Window &result, bool writable, bool leads) {
  const int rank = static_cast<int>(result.extents.size());
  std::vector<int> order(rank);
  for (int axis = 0; axis < rank; ++axis)
    order[axis] = axis;
  if (rank > 1 && chance(20))
    std::shuffle(order.begin() + (leads ? 1 : 0), order.end(), random);
  result.strides.assign(rank, 1);
  if (even) {
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; stride *= std::max<int64_t>(1, result.extents[order[i--]])) {
      if (i < rank - 1)
        stride = (stride + 15) / 16 * 16 + 16 * (chance(30) ? below(3) : 0);
      result.strides[order[i]] = stride;
    }
    return;
  }
  int64_t stride = chance(15) ? between(2, 4) : 1;
  for (int i = rank - 1; i >= 0; --i) {
    result.strides[order[i]] = stride;
    stride *= std::max<int64_t>(1, result.extents[order[i]]);
    if (chance(20))
      stride += between(1, 9);
    if (chance(15))
      stride = (stride + 15) / 16 * 16;
  }
  for (int axis = 0; axis < rank; ++axis)
    if (chance(8))
      result.strides[axis] *= -1;
    else if (!writable && chance(6))
      result.strides[axis] = between(0, 1); // repeats, or slides
}

/// Puts the window into its buffer, which grows to hold it.
void Generator::place(Window &result, bool isNew) {
  Buffer &buffer = program.buffers[result.buffer];
  int64_t low = 0, high = 0;
  for (size_t axis = 0; axis < result.extents.size(); ++axis) {
    const int64_t reach = (std::max<int64_t>(1, result.extents[axis]) - 1) * result.strides[axis];
    (reach < 0 ? low : high) += reach;
  }
  const int64_t shift = !chance(isNew ? 40 : 70) ? 0 : even ? 16 * below(3) : between(0, 17);
  result.offset = margin + shift - low;
  buffer.elements = std::max(buffer.elements, result.offset + high + 1 + margin);
}

/// Whether each program of a grid accesses a separate part: the first dimension selects it.
bool Generator::isOwn(Access access) const {
  return program.grid > 1 && (access == Access::write || access == Access::writeLoose);
}

int Generator::newWindow(Access access, Type type, const Shape &tile, bool closed) {
  const bool leads = isOwn(access);
  const int tileRank = static_cast<int>(tile.size());
  int rank = std::max(1, tileRank + (leads ? 1 : 0));
  while (rank < 5 && chance(30))
    ++rank;
  Window result;
  int64_t elements = 1;
  for (int axis = 0; axis < rank; ++axis) {
    const int at = axis - (rank - tileRank);
    const int64_t wanted = at < 0 ? between(1, 4) : tile[at], draw = below(10);
    int64_t extent = draw < 3   ? wanted
                     : draw < 5 ? wanted + between(1, 5)
                     : draw < 7 ? std::max<int64_t>(1, wanted - between(1, 5))
                     : draw < 8 ? 2 * wanted + between(0, 3)
                     : draw < 9 ? (even ? between(3, 5) * wanted : between(1, 40))
                                : wanted + 16;
    if (elements * extent > (even ? 20000 : 6000))
      extent = 1;
    if (leads && axis == 0)
      extent = program.grid;
    else if (chance(1))
      extent = 0;
    elements *= std::max<int64_t>(1, extent);
    result.extents.push_back(extent);
    if (chance(25))
      result.asked.push_back(axis);
  }
  // Another window of existing memory, or of new memory.
  std::vector<int> shared;
  for (size_t i = 0; i < program.buffers.size(); ++i)
    if (program.buffers[i].type == type && program.grid == 1 && program.buffers[i].loaded && !closed &&
        !program.buffers[i].closed && (access == Access::read || program.buffers[i].written) &&
        access != Access::writeLoose)
      shared.push_back(static_cast<int>(i));
  const bool isNew = shared.empty() || !chance(30);
  result.buffer = isNew ? newBuffer(access, type) : pick(shared);
  program.buffers[result.buffer].closed |= closed;
  result.writable = access != Access::read;
  drawStrides(result, result.writable, leads);
  place(result, isNew);
  program.windows.push_back(result);
  purposes.push_back(access);
  return static_cast<int>(program.windows.size()) - 1;
}

int Generator::sibling(int other, Access access) {
  Window result = program.windows[other];
  Buffer &buffer = program.buffers[result.buffer];
  const int64_t row = std::abs(pick(result.strides));
  const int64_t shift = chance(30) ? 0 : (chance(50) ? 1 : row) * (chance(50) ? 1 : -1);
  // The margin on each side permits one shift by a row; few views have rows of that length.
  if (row < margin / 2 && result.offset + shift >= margin / 2)
    result.offset += shift;
  buffer.elements += std::max<int64_t>(0, shift);
  result.writable = access != Access::read;
  program.windows.push_back(result);
  purposes.push_back(access);
  return static_cast<int>(program.windows.size()) - 1;
}

int Generator::window(Access access, Type type, const Shape &tile) {
  std::vector<int> fitting;
  for (size_t i = 0; i < program.windows.size(); ++i) {
    const Window &candidate = program.windows[i];
    const Buffer &buffer = program.buffers[candidate.buffer];
    const size_t room = candidate.extents.size() - (isOwn(purposes[i]) ? 1 : 0);
    // A single program may read and write all memory. In a grid a window has one purpose, and a written element may be
    // read by the same program.
    const bool allowed = access == Access::writeLoose ? !buffer.loaded
                         : !buffer.loaded             ? false
                         : access == Access::read     ? program.grid == 1 || purposes[i] != Access::atomic
                         : program.grid == 1          ? candidate.writable
                                                      : purposes[i] == access;
    if (allowed && !buffer.closed && buffer.type == type && room >= tile.size())
      fitting.push_back(static_cast<int>(i));
  }
  if (!fitting.empty() && (program.windows.size() > 8 || chance(50)))
    return pick(fitting);
  if (!fitting.empty() && program.grid == 1 && access != Access::writeLoose && chance(30))
    if (const int other = pick(fitting); program.windows[other].writable)
      return sibling(other, access);
  return newWindow(access, type, tile);
}

/// The first position of a tile along a dimension of a view: inside, across an end, or far outside.
Operand Generator::offset(int64_t tile, int64_t extent) {
  const int64_t draw = below(100);
  if (draw < 35)
    return Operand::number(int64_t(0));
  if (draw < 55)
    return Operand::number(between(-17, 17));
  if (draw < 72)
    return Operand::number(extent - tile + between(-3, 3));
  if (draw < 78)
    return Operand::number(between(0, std::max<int64_t>(1, extent)));
  if (draw < 80)
    return Operand::number(chance(50) ? extent + between(0, 20) : -tile - between(0, 20));
  if (draw < 81) {
    static const std::vector<int64_t> far = {INT64_MIN, INT64_MAX,       INT64_MAX - 7, 1ll << 31, -(1ll << 31),
                                             1ll << 32, (1ll << 32) + 3, -(1ll << 33),  1ll << 61};
    return Operand::number(pick(far));
  }
  Operand at = scalar().operand();
  if (chance(50))
    at = apply("$0 * $1", {at, Operand::number(chance(50) ? tile : between(1, 9))}, i64, {}, anything(i64)).operand();
  if (chance(40))
    at = apply("$0 + $1", {at, Operand::number(between(-17, 17))}, i64, {}, anything(i64)).operand();
  return at;
}

/// Offsets of a tile in a window, without the first `skip`; in a grid, for writes, the program's own part.
std::vector<Operand> Generator::offsets(int index, const Shape &tile, int skip) {
  std::vector<Operand> result;
  const Window window = program.windows[index]; // a copy: drawing offsets may add windows
  const int rank = static_cast<int>(window.extents.size()), dropped = rank - static_cast<int>(tile.size());
  for (int axis = skip; axis < rank; ++axis) {
    const int64_t extent = window.extents[axis];
    if (axis == 0 && isOwn(purposes[index]))
      result.push_back(programNumber.operand());
    else if (axis < dropped && chance(85))
      result.push_back(Operand::number(below(std::max<int64_t>(1, extent))));
    else
      result.push_back(offset(axis < dropped ? 1 : tile[axis - dropped], extent));
  }
  return result;
}

int Generator::padding(Type type) {
  return isFloat(type) && bytesOf(type) > 1 && chance(20) ? static_cast<int>(between(1, 4)) : 0;
}

Facts Generator::padded(const Facts &facts, int padding) const {
  Facts result = facts;
  if (padding > 1) {
    result.bound = infinity;
    result.whole = false;
  }
  return result;
}

Known Generator::loadAt(int index, const Shape &shape, std::vector<Operand> at) {
  const int mask = maskFor(shape, 10);
  const Buffer &buffer = program.buffers[program.windows[index].buffer];
  Op op{.verb = Verb::load, .type = buffer.type, .shape = shape, .which = padding(buffer.type), .window = index};
  op.offsets = std::move(at);
  op.mask = mask;
  if (mask < 0 && chance(4)) {
    op.verb = Verb::atomicLoad;
    op.which = static_cast<int>(below(2));
    op.scope = atomicScope();
    select(op);
    return emit(op, buffer.facts);
  }
  op.cache = cache();
  select(op);
  return emit(op, padded(buffer.facts, op.which));
}

Known Generator::load(Type type, const Shape &shape) {
  const int index = window(Access::read, type, shape);
  return loadAt(index, shape, offsets(index, shape));
}

bool Generator::store(const Known &value) {
  const Access access = value.facts.exact() ? Access::write : Access::writeLoose;
  const int index = window(access, value.type, value.shape);
  Buffer &buffer = program.buffers[program.windows[index].buffer];
  const int target = program.windows[index].buffer;
  if (access == Access::writeLoose) {
    buffer.facts.relative = std::max(buffer.facts.relative, value.facts.relative);
    buffer.facts.absolute = std::max(buffer.facts.absolute, value.facts.absolute);
  }
  const Known stored = access == Access::write ? fit(value, program.buffers[target].facts) : value;
  storeAt(index, stored, offsets(index, value.shape));
  return true;
}

void Generator::storeAt(int index, const Known &value, std::vector<Operand> at) {
  Op op{.verb = Verb::store, .type = value.type, .shape = value.shape, .window = index};
  op.mask = maskFor(value.shape, 10);
  op.offsets = std::move(at);
  if (chance(4)) {
    op.verb = Verb::atomicStore;
    op.which = chance(50) ? 0 : 2;
    op.scope = atomicScope();
  } else {
    op.cache = cache();
  }
  select(op);
  op.operands = {value.operand()};
  emit(op, {});
}

/// Row numbers for a view of `extent` rows, some of them outside; `unique` ones contain no row twice.
Known Generator::rows(int64_t count, int64_t extent, bool unique) {
  const Type type = chance(50) ? i32 : i64;
  if (!unique && chance(50))
    return fit(load(type, {count}), wholeNumbers(chance(80) ? static_cast<double>(extent) : 4e4));
  Op op{.verb = Verb::iota, .type = type, .shape = {count}};
  Known result = emit(op, wholeNumbers(static_cast<double>(count)));
  const int64_t factor = chance(50) ? 1 : chance(50) ? -1 : between(2, 3);
  if (factor != 1)
    result = apply("$0 * $1", {result.operand(), Operand::number(factor)}, type, {count},
                   wholeNumbers(static_cast<double>(3 * count)));
  if (chance(15)) { // one of two rows each, by a mask
    const Known first = apply("$0 * $1", {result.operand(), Operand::number(int64_t(2))}, type, {count},
                             wholeNumbers(static_cast<double>(6 * count)));
    result = apply("$0 + $1", {first.operand(), cast(condition({count}), type).operand()}, type, {count},
                   wholeNumbers(static_cast<double>(6 * count + 1)));
  }
  return apply("$0 + $1", {result.operand(), Operand::number(between(-3, extent))}, type, {count},
               wholeNumbers(static_cast<double>(6 * count + 1 + extent)));
}

bool Generator::loadRows() {
  const Type type = pick(types);
  const Shape shape = drawShape(static_cast<int>(between(1, 3)));
  const int index = newWindow(Access::read, type, shape);
  const Window window = program.windows[index];
  const int dropped = static_cast<int>(window.extents.size() - shape.size());
  Op op{.verb = Verb::loadRows, .type = type, .shape = shape, .which = padding(type), .window = index};
  op.offsets = offsets(index, {shape.begin() + 1, shape.end()}, 1);
  op.operands = {rows(shape[0], window.extents[0], false).operand()};
  emit(op, padded(program.buffers[window.buffer].facts, op.which));
  return dropped >= 0;
}

bool Generator::storeRows() {
  if (program.grid > 1)
    return false; // rows are not a program's own
  const auto value = find([](const Known &k) { return k.facts.exact() && !k.shape.empty() && k.shape.size() <= 4; });
  if (!value)
    return false;
  const int index = newWindow(Access::write, value->type, value->shape);
  const Window window = program.windows[index];
  const Known stored = fit(*value, program.buffers[window.buffer].facts);
  Op op{.verb = Verb::storeRows, .type = value->type, .shape = value->shape, .window = index};
  op.offsets = offsets(index, {value->shape.begin() + 1, value->shape.end()}, 1);
  op.operands = {rows(value->shape[0], window.extents[0], true).operand(), stored.operand()};
  emit(op, {});
  return true;
}

} // namespace kiln::fuzz
