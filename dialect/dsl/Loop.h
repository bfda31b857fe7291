// The range of a C++ `for` over range() or repeat_while(). Tile.h includes this.

#pragma once

#include "dialect/dsl/Tile.h"

namespace kiln {

/// The result of `range` and `repeat_while`. Its iterators open and close the traced body.
class Loop {
public:
  struct State;
  class Iterator {
  public:
    Tile operator*() const;
    Iterator &operator++();
    bool operator!=(const Iterator &) const;

  private:
    friend class Loop;
    explicit Iterator(Loop *loop) : loop(loop) {}
    Loop *loop;
  };
  Iterator begin();
  Iterator end() { return Iterator(nullptr); }
  Loop(const Loop &) = delete;
  ~Loop();

private:
  friend Loop range(At, At, At, Hints, Loc);
  friend Loop repeat_while(const std::function<Tile()> &, Loc);
  explicit Loop(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

} // namespace kiln
