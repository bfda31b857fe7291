// Verifiers and effects of the atomics.

#include "dialect/tile/AccessRules.h"
#include "dialect/tile/TypeRules.h"

using namespace mlir;

namespace kiln::tile {

static LogicalResult verifyAtomic(AccessOp access, AtomicUse use) {
  Type element = access.getTile().getType().getElementType();
  if (!isAtomic(use, element))
    return access->emitOpError("expected elements of type ") << atomicElements(use) << ", but got " << element;
  return verifyAccess(access);
}

LogicalResult AtomicRmwOp::verify() { return verifyAtomic(*this, static_cast<AtomicUse>(getKind())); }
LogicalResult AtomicCasOp::verify() { return verifyAtomic(*this, AtomicUse::compare); }

LogicalResult AtomicLoadOp::verify() {
  if (getOrder() != MemoryOrder::Relaxed && getOrder() != MemoryOrder::Acquire)
    return emitOpError("expected order 'relaxed' or 'acquire', but got '") << stringifyMemoryOrder(getOrder()) << "'";
  return verifyAccess(*this);
}

LogicalResult AtomicStoreOp::verify() {
  if (getOrder() != MemoryOrder::Relaxed && getOrder() != MemoryOrder::Release)
    return emitOpError("expected order 'relaxed' or 'release', but got '") << stringifyMemoryOrder(getOrder()) << "'";
  return verifyAccess(*this);
}

/// An order other than relaxed fences the whole memory. A load counts as a write, too, so that two loads are not
/// merged: other programs may change the element in between.
static void effectsOf(AccessOp access, OpOperand &view,
                      SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &view);
  effects.emplace_back(MemoryEffects::Write::get(), &view);
  if (!access.ordersAll())
    return;
  effects.emplace_back(MemoryEffects::Read::get());
  effects.emplace_back(MemoryEffects::Write::get());
}

void AtomicRmwOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  effectsOf(*this, getViewMutable(), effects);
}
void AtomicCasOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  effectsOf(*this, getViewMutable(), effects);
}
void AtomicLoadOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  effectsOf(*this, getViewMutable(), effects);
}
void AtomicStoreOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  effectsOf(*this, getViewMutable(), effects);
}

} // namespace kiln::tile
