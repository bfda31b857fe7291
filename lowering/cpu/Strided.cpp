// Reads and writes a vector of elements that are not adjacent in memory: along a dimension whose stride is not 1, or
// across rows.
//
// One check for each vector finds whether all lanes are in the view. If so, elements at a small constant distance are
// accessed by whole vectors and shuffles, and runs of adjacent elements by shorter vectors. Other elements are accessed
// one by one without a check, which takes half the time of Zen 5's gather instructions. At a view's edges each lane is
// checked.

#include "lowering/cpu/Evaluator.h"

using namespace mlir;

namespace kiln::lowering::cpu {

int64_t Evaluator::knownStride(Value view, int64_t axis) const {
  const auto taken = pitches.find({view, axis});
  return taken != pitches.end() ? taken->second : cast<MemRefType>(view.getType()).getStridesAndOffset().first[axis];
}

Value Evaluator::eitherWay(int where, Value condition, Type result, const Index &index, function_ref<Value()> then,
                           function_ref<Value(const Index &)> otherwise) {
  SmallVector<Level> saved(levels);
  levels.resize(where + 1);
  if (!condition) {
    Value value = then();
    levels = saved;
    return value;
  }
  moveTo(where);
  auto choice = scf::IfOp::create(builder, loc, result ? TypeRange(result) : TypeRange(), condition, true);
  auto side = [&](Block *block, function_ref<Value()> body) {
    levels.back().before = choice;
    levels.push_back({block, block->empty() ? nullptr : block->getTerminator()});
    Value value = body();
    moveTo(depth());
    if (value)
      scf::YieldOp::create(builder, loc, value);
    levels.pop_back();
    forgetWithin(choice);
  };
  side(choice.thenBlock(), then);
  side(choice.elseBlock(), [&] {
    Index deeper(index);
    for (Ix &ix : deeper)
      ix.depth = depth(); // values computed there are local to it
    return otherwise(deeper);
  });
  levels = saved;
  return result ? noted(choice.getResult(0), where) : Value();
}

// --- The line: memory from the base of the lanes on -----------------------------------------------------------------

Value Evaluator::strideAlong(Value view, int64_t axis) {
  const int64_t stride = knownStride(view, axis);
  if (ShapedType::isStatic(stride))
    return constantIndex(stride);
  moveTo(0);
  return memref::ExtractStridedMetadataOp::create(builder, loc, view).getStrides()[axis];
}

Evaluator::Line Evaluator::lineOf(Value view, const Access &access) {
  if (view.getDefiningOp<memref::AllocaOp>())
    return {view, access.indices, access.depth};
  Value first = constantIndex(0);
  for (auto [axis, position] : llvm::enumerate(access.indices))
    first = make<arith::AddIOp>(first, make<arith::MulIOp>(position, strideAlong(view, axis)));
  moveTo(0);
  Value memory = memref::ExtractStridedMetadataOp::create(builder, loc, view).getBaseBuffer();
  const int64_t dynamic = ShapedType::kDynamic;
  auto type = MemRefType::get({dynamic}, cast<MemRefType>(view.getType()).getElementType(),
                              StridedLayoutAttr::get(builder.getContext(), dynamic, {1}));
  const int where = depthOf(first);
  const OpFoldResult one = builder.getIndexAttr(1); // the extent is not used
  moveTo(where);
  Value line =
      noted(memref::ReinterpretCastOp::create(builder, loc, type, memory, OpFoldResult(first), {one}, {one}), where);
  return {line, {constantIndex(0)}, where};
}

SmallVector<Value> Evaluator::placeIn(const Line &line, Value distance) {
  SmallVector<Value> at = line.first;
  APInt constant;
  if (!matchPattern(distance, m_ConstantInt(&constant)) || !constant.isZero())
    at.back() = make<arith::AddIOp>(at.back(), distance);
  return at;
}

Value Evaluator::distanceOf(Value view, const Access &access, int64_t lane) {
  int64_t known = 0;
  Value distance;
  for (const auto &[axis, ix] : access.along) {
    const int64_t stride = knownStride(view, axis), step = ix.stepOf(lane);
    if (ShapedType::isStatic(stride)) {
      known += step * stride;
    } else if (step != 0) {
      Value part = make<arith::MulIOp>(strideAlong(view, axis), constantIndex(step));
      distance = distance ? make<arith::AddIOp>(distance, part) : part;
    }
  }
  if (!distance)
    return constantIndex(known);
  return known ? make<arith::AddIOp>(distance, constantIndex(known)) : distance;
}

std::optional<Steps> Evaluator::nearDistances(Value view, const Access &access) const {
  Steps distances(access.valid(), 0);
  for (const auto &[axis, ix] : access.along) {
    const int64_t stride = knownStride(view, axis);
    if (ShapedType::isDynamic(stride))
      return std::nullopt;
    for (int64_t lane = 0; lane < access.valid(); ++lane)
      distances[lane] += ix.stepOf(lane) * stride;
  }
  auto [least, most] = std::minmax_element(distances.begin(), distances.end());
  if (*least < 0 || *most >= machine.widestStride() * machine.lanes())
    return std::nullopt;
  return distances;
}

SmallVector<std::pair<int64_t, int64_t>> Evaluator::neighbours(Value view, const Access &access) const {
  SmallVector<std::pair<int64_t, int64_t>> runs;
  const auto follows = [&](int64_t lane) { // whether it follows the previous lane in memory
    int64_t distance = 0;
    for (const auto &[axis, ix] : access.along) {
      const int64_t stride = knownStride(view, axis), step = ix.stepOf(lane) - ix.stepOf(lane - 1);
      if (ShapedType::isDynamic(stride) && step != 0)
        return false;
      distance += step == 0 ? 0 : step * stride;
    }
    return distance == 1;
  };
  for (int64_t lane = 0; lane < access.valid(); ++lane) {
    if (lane > 0 && follows(lane))
      ++runs.back().second;
    else
      runs.push_back({lane, 1});
  }
  return runs;
}

/// The `count` numbers from `first` on.
static SmallVector<int64_t> numbersFrom(int64_t first, int64_t count) {
  return llvm::to_vector(llvm::seq(first, first + count));
}

/// Whether runs of adjacent elements are long enough for vectors.
static bool haveNeighbours(ArrayRef<std::pair<int64_t, int64_t>> runs) {
  return llvm::all_of(runs, [](const auto &run) { return run.second > 1; });
}

// --- Reading --------------------------------------------------------------------------------------------------------

/// The number of elements of the vectors that access `span` elements of memory: more than the lanes for narrow
/// elements, and at most a native vector. With `within`, at most `span`, unless a mask is cheaper than two vectors.
int64_t Evaluator::widthFor(Type stored, int64_t span, bool within) const {
  const bool masksAreFree = machine.vectorBits == 512;
  const int64_t native = masksAreFree ? machine.vectorBits / stored.getIntOrFloatBitWidth() : 0;
  int64_t width = machine.lanes();
  while (within && width > span && !(masksAreFree && !llvm::isPowerOf2_64(span)))
    width /= 2;
  while (2 * width <= native && (within ? 2 * width : width + 1) <= span)
    width *= 2;
  return width;
}

/// A vector of `width` elements of the line from `begin` on. Only `needed` elements are readable; the others are 0.
Value Evaluator::readPart(const Line &line, int64_t begin, int64_t needed, int64_t width) {
  const auto type = VectorType::get({width}, cast<MemRefType>(line.memory.getType()).getElementType());
  SmallVector<Value> at = placeIn(line, constantIndex(begin));
  if (needed >= width) {
    moveTo(depth());
    return vector::LoadOp::create(builder, loc, type, line.memory, at);
  }
  Value mask = lanesBelow(constantIndex(needed)),
        zero = make<arith::ConstantOp>(cast<TypedAttr>(builder.getZeroAttr(type)));
  moveTo(depth());
  return vector::MaskedLoadOp::create(builder, loc, type, line.memory, at, mask, zero);
}

SmallVector<int64_t> Evaluator::partsOf(const Steps &distances, int64_t readable, int64_t width) const {
  SmallVector<int64_t> parts;
  for (int64_t part = 0; part < readable; part += width)
    if (llvm::any_of(distances, [&](int64_t distance) { return distance >= part && distance < part + width; }))
      parts.push_back(part);
  return parts;
}

/// Reads adjacent vectors up to the farthest lane. The last one overlaps with the previous one if the length is not a
/// multiple of the vectors'. If the block around the lanes is known to be in the view, complete vectors are read. The
/// even and the odd elements of a row then share them.
Value Evaluator::readWide(Value view, Access access, Steps distances) {
  const Type stored = cast<MemRefType>(view.getType()).getElementType();
  const int64_t lanes = machine.lanes(), farthest = *std::max_element(distances.begin(), distances.end());
  int64_t readable = farthest + 1, width = widthFor(stored, readable, true);
  if (access.along.size() == 1 && access.after > farthest) {
    int64_t before = access.before % lanes;
    if (before + access.after < lanes && access.before >= lanes) // at the end of a row
      before += lanes;
    Steps inBlock(distances);
    for (int64_t &distance : inBlock)
      distance += before;
    const int64_t span = std::min<int64_t>(before + access.after, llvm::alignTo(before + farthest + 1, lanes));
    const int64_t wider = widthFor(stored, span, true);
    const size_t parts = partsOf(distances, readable, width).size(), fewer = partsOf(inBlock, span, wider).size();
    const bool takesAnyOrder = stored.getIntOrFloatBitWidth() >= 32; // complete vectors of these are shuffled anyway
    if (fewer < parts || (fewer == parts && (wider == width || takesAnyOrder))) {
      Value &first = access.indices[access.along[0].first];
      if (before > 0)
        first = make<arith::SubIOp>(first, constantIndex(before));
      distances = inBlock;
      readable = span;
      width = wider;
    }
  }
  Line line = lineOf(view, access);
  if (const int64_t nearest = *std::min_element(distances.begin(), distances.end());
      nearest > 0 && access.along.size() > 1) { // begins in the middle of a row
    line.first = placeIn(line, constantIndex(nearest));
    for (int64_t &distance : distances)
      distance -= nearest;
    readable -= nearest;
    width = std::min(width, widthFor(stored, readable, true));
  }
  Value result = make<arith::ConstantOp>(cast<TypedAttr>(builder.getZeroAttr(vectorOf(stored))));
  for (int64_t part : partsOf(distances, readable, width)) {
    const int64_t begin = std::max<int64_t>(0, std::min(part, readable - width));
    SmallVector<int64_t> places(lanes, 0), order = numbersFrom(0, lanes);
    for (auto [lane, distance] : llvm::enumerate(distances))
      if (distance >= part && distance < part + width) {
        places[lane] = distance - begin;
        order[lane] = lanes + (width != lanes ? static_cast<int64_t>(lane) : places[lane]);
      }
    Value elements = readPart(line, begin, readable, width);
    moveTo(depth());
    if (width != lanes) // MLIR shuffles only vectors of equal length
      elements = vector::ShuffleOp::create(builder, loc, elements, elements, places);
    result = vector::ShuffleOp::create(builder, loc, result, elements, order);
  }
  return noted(result, depth());
}

/// Reads each run of adjacent elements with one vector.
Value Evaluator::readRuns(Value view, const Access &access, const Line &line) {
  const int64_t lanes = machine.lanes();
  Type stored = cast<MemRefType>(view.getType()).getElementType();
  Value result = make<arith::ConstantOp>(cast<TypedAttr>(builder.getZeroAttr(vectorOf(stored))));
  for (auto [first, count] : neighbours(view, access)) {
    SmallVector<Value> at = placeIn(line, distanceOf(view, access, first));
    SmallVector<int64_t> widened(lanes, 0), order = numbersFrom(0, lanes);
    for (int64_t i = 0; i < count; ++i) {
      widened[i] = i;
      order[first + i] = lanes + i;
    }
    moveTo(depth());
    Value run = vector::LoadOp::create(builder, loc, VectorType::get({count}, stored), line.memory, at);
    run = vector::ShuffleOp::create(builder, loc, run, run, widened);
    result = vector::ShuffleOp::create(builder, loc, result, run, order);
  }
  return noted(result, depth());
}

Value Evaluator::readApart(Value view, const Access &access) {
  if (auto distances = nearDistances(view, access))
    return readWide(view, access, *distances);
  const Line line = lineOf(view, access);
  if (haveNeighbours(neighbours(view, access)))
    return readRuns(view, access, line);
  Type stored = cast<MemRefType>(view.getType()).getElementType();
  Value zero = make<arith::ConstantOp>(cast<TypedAttr>(builder.getZeroAttr(stored)));
  SmallVector<Value> elements(machine.lanes(), zero);
  SmallVector<SmallVector<Value>> places;
  for (int64_t lane = 0; lane < access.valid(); ++lane)
    places.push_back(placeIn(line, distanceOf(view, access, lane)));
  moveTo(depth());
  for (auto [element, place] : llvm::zip(elements, places))
    element = memref::LoadOp::create(builder, loc, line.memory, place);
  return noted(vector::FromElementsOp::create(builder, loc, vectorOf(stored), elements), depth());
}

// --- Writing --------------------------------------------------------------------------------------------------------

/// Writes adjacent vectors with masks, because elements between the lanes may belong to another program.
void Evaluator::writeWide(Value value, const Line &line, const Steps &distances) {
  const int64_t last = *std::max_element(distances.begin(), distances.end());
  const int64_t width = widthFor(getElementTypeOrSelf(value.getType()), last + 1, false);
  for (int64_t part = 0; part <= last; part += width) {
    SmallVector<int64_t> order(width, 0);
    SmallVector<bool> isWritten(width, false);
    for (auto [lane, distance] : llvm::enumerate(distances))
      if (distance >= part && distance < part + width) {
        order[distance - part] = static_cast<int64_t>(lane);
        isWritten[distance - part] = true;
      }
    if (!llvm::is_contained(isWritten, true))
      continue;
    const auto bits = VectorType::get({width}, builder.getI1Type());
    Value mask = make<arith::ConstantOp>(DenseElementsAttr::get(bits, isWritten));
    SmallVector<Value> at = placeIn(line, constantIndex(part));
    moveTo(depth());
    Value spread = vector::ShuffleOp::create(builder, loc, value, value, order);
    vector::MaskedStoreOp::create(builder, loc, line.memory, at, mask, spread);
  }
}

void Evaluator::writeApart(Value value, Value view, const Access &access) {
  const bool masksAreFree = machine.vectorBits == 512; // otherwise a mask costs as much as its lanes
  Type stored = cast<MemRefType>(view.getType()).getElementType();
  if (getElementTypeOrSelf(value.getType()) != stored)
    value = make<arith::ExtUIOp>(vectorOf(stored), value);
  const Line line = lineOf(view, access);
  auto runs = neighbours(view, access);
  if (auto distances = nearDistances(view, access)) {
    const int64_t first = distances->front();
    if (llvm::equal(*distances, llvm::seq(first, first + machine.lanes()))) {
      SmallVector<Value> at = placeIn(line, constantIndex(first));
      moveTo(depth());
      vector::StoreOp::create(builder, loc, value, line.memory, at);
      return;
    }
    if (masksAreFree)
      return writeWide(value, line, *distances);
  }
  if (!haveNeighbours(runs))
    runs = llvm::map_to_vector(llvm::seq(access.valid()), [](int64_t lane) { return std::pair(lane, int64_t(1)); });
  for (auto [first, count] : runs) {
    SmallVector<Value> at = placeIn(line, distanceOf(view, access, first));
    moveTo(depth());
    if (count == 1) {
      Value element = vector::ExtractOp::create(builder, loc, value, first);
      memref::StoreOp::create(builder, loc, element, line.memory, at);
    } else {
      Value run = vector::ShuffleOp::create(builder, loc, value, value, numbersFrom(first, count));
      vector::StoreOp::create(builder, loc, run, line.memory, at);
    }
  }
}

} // namespace kiln::lowering::cpu
