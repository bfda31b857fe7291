// Takes, drops and recomputes an activation.

#include "models/nn/saved_activation.h"

namespace kiln {

const TensorRef &SavedActivation::take(Build &b, Site site, const std::string &called, Type type, Shape extents,
                                       Fill with) {
  name = called;
  fill = std::move(with);
  isMadeAgain = b.recompute.makes(site, b.block);
  isThere = true;
  return memory = b.arena.take(name, type, std::move(extents));
}

void SavedActivation::drop(Build &b) {
  if (isMadeAgain)
    release(b);
}

const TensorRef &SavedActivation::get(Build &b) {
  if (!isThere) {
    place(b);
    const LaunchScope scope(b, "again");
    fill(b);
  }
  return memory;
}

const TensorRef &SavedActivation::place(Build &b) {
  if (!isThere)
    memory = b.arena.take(name, memory.type, memory.extents);
  isThere = true;
  return memory;
}

const TensorRef &SavedActivation::operator*() const {
  if (!isThere)
    throw Error("expected '" + name + "' to be in memory, but it was dropped", Fault::internal);
  return memory;
}

void SavedActivation::release(Build &b) {
  b.release(**this);
  isThere = false;
}

} // namespace kiln
