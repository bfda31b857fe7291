// Uses of a traced value as a C++ truth value or number: none compiles. CASE chooses one.

#include "dialect/dsl/Kernel.h"

using namespace kiln;

void wrong(View a, Tile n) {
  Tile x = load(a, {0}, {4}), y = x + 1;
#if CASE == 1
  if (n > 0)
    store(a, {0}, x);
#elif CASE == 2
  while (n > 0)
    n = n - 1;
#elif CASE == 3
  x = x < y ? x : y;
#elif CASE == 4
  x = std::max(x, y);
#elif CASE == 5
  x = where(x < y && n > 0, x, y);
#elif CASE == 6
  x = where(x < y || n > 0, x, y);
#elif CASE == 7
  bool isLess = x < y;
#elif CASE == 8
  for (int k : range(8))
    store(a, {k}, x);
#elif CASE == 9
  x = where(true && n > 0, x, y);
#endif
  x = 0.0;
  store(a, {0}, x);
}
