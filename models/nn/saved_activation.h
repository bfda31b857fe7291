// A saved activation: kept from the forward pass on, or recomputed when the backward pass needs it. The launches that
// recompute it are the original ones, or others with bit-equal results.

#pragma once

#include "models/nn/build.h"

namespace kiln {

class SavedActivation {
public:
  /// Appends the launches that write it; they get() their own inputs. It refers to the layer and to its saved
  /// activations, which must not move while a plan is built.
  using Fill = std::function<void(Build &)>;

  SavedActivation() = default;
  SavedActivation(const SavedActivation &) = delete; // because fills refer to it

  /// Takes memory for the launches that follow. If the build recomputes `site`, drop() releases it, and get() takes
  /// memory again and has `fill` write it.
  const TensorRef &take(Build &build, Site site, const std::string &name, Shape extents, Fill fill) {
    return take(build, site, name, build.type, std::move(extents), std::move(fill));
  }
  const TensorRef &take(Build &build, Site site, const std::string &name, Type type, Shape extents, Fill fill);
  /// To be called after its last reader in the forward pass.
  void drop(Build &build);
  /// Its contents, recomputed if it was dropped.
  const TensorRef &get(Build &build);
  /// Takes memory again if it was dropped, for another activation's fill that writes both.
  const TensorRef &place(Build &build);
  /// Its memory, which must be present.
  const TensorRef &operator*() const;
  void release(Build &build);

private:
  std::string name;
  TensorRef memory;
  Fill fill;
  bool isThere = false, isMadeAgain = false;
};

/// A function that gives a layer its input, recomputed if needed.
using Reader = std::function<TensorRef(Build &)>;

} // namespace kiln
