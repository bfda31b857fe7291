// Parameters and fields that a kernel must not have, one a CASE; without a CASE all that it may have.

#include "dialect/dsl/Kernel.h"

#include <string>

using namespace kiln;

struct Config {
  int bm = 16;
  int64_t rows = 1;
  bool causal = true;
  double scale = 1;
  float bias = 0;
};
struct Other {
  int bn = 16;
};

#if CASE == 1
void takes(View x, float alpha) {}
const Kernel wrong = kernel("k", takes);
#elif CASE == 2
void takes(View x, int n, Config cfg) {}
const Kernel wrong = kernel("k", takes, {"x", "n"}, {field("bm", &Config::bm)});
#elif CASE == 3
void takes(View x, Type type) {}
const Kernel wrong = kernel("k", takes);
#elif CASE == 4
void takes(const View &x) {}
const Kernel wrong = kernel("k", takes);
#elif CASE == 5
void takes(View x, Tile &n) {}
const Kernel wrong = kernel("k", takes, {"x", "n"});
#elif CASE == 6
void takes(View x, const Config &cfg) {}
const Kernel wrong = kernel("k", takes, {"x"}, {field("bm", &Config::bm)});
#elif CASE == 7
void takes(float *x) {}
const Kernel wrong = kernel("k", takes);
#elif CASE == 8
void takes(View x, Other other, Config cfg) {}
const Kernel wrong = kernel("k", takes);
#elif CASE == 9
void takes(Config cfg, View x) {}
const Kernel wrong = kernel("k", takes, {"x"}, {field("bm", &Config::bm)});
#elif CASE == 10
void takes(View x, std::string name) {}
const Kernel wrong = kernel("k", takes);
#elif CASE == 11
struct Pair {
  View a, b;
};
void takes(Pair pair) {}
const Kernel wrong = kernel("k", takes);
#elif CASE == 12
enum class Kind { one, two };
struct Kinds {
  Kind kind = Kind::one;
};
const Field wrong = field("kind", &Kinds::kind);
#elif CASE == 13
struct Labelled {
  const char *label = "";
};
const Field wrong = field("label", &Labelled::label);
#elif CASE == 14
struct Small {
  unsigned char n = 0;
};
const Field wrong = field("n", &Small::n);
#elif CASE == 15
void takes(View x, View y, Config cfg) {}
const Kernel wrong = kernel("k", takes, {"x"});
#elif CASE == 16
void takes(View x, View y, Config cfg) {}
const Kernel wrong = kernel("k", takes, {"x", "y", "cfg"});
#elif CASE == 17
const Field wrong = field("bm", Config().bm, "rows of a tile");
#elif CASE == 18
struct Shared {
  static inline int n = 3;
};
const Field wrong = field("n", &Shared::n);
#elif CASE == 19
const Field wrong = field("bm", &Config::bm, {"small", "large"}, "rows of a tile");
#elif CASE == 20
struct Nested {
  Config inner;
};
const Field wrong = field("inner", &Nested::inner);
#elif CASE == 21
struct Fixed {
  const int n = 3;
};
const Field wrong = field("n", &Fixed::n);
#elif CASE == 22
void takes(std::vector<Tile> numbers) {}
const Kernel wrong = kernel("k", takes, {"numbers"});
#elif CASE == 23
void takes(View x, std::optional<Tile> n, Config cfg) {}
const Kernel wrong = kernel("k", takes, {"x", "n"});
#elif CASE == 24
void takes(std::array<View, 2> pair) {}
const Kernel wrong = kernel("k", takes, {"pair"});
#elif CASE == 25
void takes(View x, std::optional<View> bias) {}
const Kernel wrong = kernel("k", takes);
#endif

void nothing() {}
void views(View x, const View y) {}
void mixed(Tile n, View x, Tile s, Config cfg) {}
void onlyConfig(Config cfg) {}
void variadic(std::optional<View> bias, Tile n, std::vector<View> xs, const std::optional<View> out, Config cfg) {}
void unregisteredFields(View x, Other other) {}
template <class T> void generic(View x, T cfg) {}

const Kernel nothingKernel = kernel("nothing", nothing);
const Kernel viewsKernel = kernel("views", views, {"x", "y"});
const Kernel mixedKernel =
    kernel("mixed", mixed, {"n", "x (N)", "s (a factor)"},
           {field("bm", &Config::bm), field("rows", &Config::rows), field("causal", &Config::causal),
            field("scale", &Config::scale), field("bias", &Config::bias, "what is added")});
const Kernel onlyConfigKernel = kernel("only_config", onlyConfig, {field("bm", &Config::bm)});
const Kernel unregisteredKernel = kernel("unregistered", unregisteredFields, {"x"});
const Kernel genericKernel = kernel("generic", generic<Other>, {"x"}, {field("bn", &Other::bn)});
const Kernel variadicKernel =
    kernel("variadic", variadic, {"bias (N)", "n", "xs (M, N)", "out"}, {field("bm", &Config::bm)});
const char *const names[] = {"x (M, N)", "y (N)"};
const Kernel sharedNamesKernel = kernel("shared_names", views, names);
