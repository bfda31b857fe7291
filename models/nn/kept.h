// An activation that the backward pass reads: kept from the forward pass on, or made again when it is needed, by the
// launches that made it first or by others that give the same bits.

#pragma once

#include "models/nn/build.h"

namespace kiln {

class Kept {
public:
  /// Appends the launches that write it; what they read they get() themselves. It refers to the layer and to what was
  /// saved of it, which stay where they are while a plan is built.
  using Fill = std::function<void(Build &)>;

  Kept() = default;
  Kept(const Kept &) = delete; // fills refer to it

  /// Takes memory, which the launches that follow write. Where the build makes `site` again, drop() gives it back, and
  /// get() takes memory anew and has `fill` write that.
  const TensorRef &take(Build &build, Site site, const std::string &name, Shape extents, Fill fill) {
    return take(build, site, name, build.type, std::move(extents), std::move(fill));
  }
  const TensorRef &take(Build &build, Site site, const std::string &name, Type type, Shape extents, Fill fill);
  /// After its last reader in the forward pass.
  void drop(Build &build);
  /// What it holds, made again if it was dropped.
  const TensorRef &get(Build &build);
  /// Takes memory again if it was dropped, for the fill of another that writes both.
  const TensorRef &place(Build &build);
  /// Its memory, which it has.
  const TensorRef &operator*() const;
  void release(Build &build);

private:
  std::string name;
  TensorRef memory;
  Fill fill;
  bool isThere = false, isMadeAgain = false;
};

/// What gives a layer its input, made again if need be.
using Reader = std::function<TensorRef(Build &)>;

} // namespace kiln
