// Registration of a kernel: its name, its parameters and the fields of its config.
//
//     const Kernel addKernel = kernel("add", add, {field("block", &AddConfig::block)});
//
// A kernel's parameters are views, then scalar tiles, in any order, and at most one config struct, last.

#pragma once

#include "dialect/dsl/Tile.h"

#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace kiln {

/// One field of a config struct, by name: how `bm=64` is read and printed. Fields are int, int64_t, bool or double.
struct Field {
  std::string name;
  std::function<std::string(const void *config)> print;
  std::function<void(void *config, const std::string &text)> parse; // throws Error on text that is no value
};

std::string printField(int64_t value);
std::string printField(double value);
/// Reads an integer from `least` to `most`, a bool (0, 1, true, false) or a double; throws Error with the field's name.
int64_t parseInteger(const std::string &field, const std::string &text, int64_t least, int64_t most);
double parseReal(const std::string &field, const std::string &text);

template <class Config, class T> Field field(const char *name, T Config::*member) {
  Field f;
  f.name = name;
  f.print = [member](const void *config) {
    T value = static_cast<const Config *>(config)->*member;
    if constexpr (std::is_floating_point_v<T>)
      return printField(static_cast<double>(value));
    else
      return printField(static_cast<int64_t>(value));
  };
  f.parse = [member, field = std::string(name)](void *config, const std::string &text) {
    if constexpr (std::is_floating_point_v<T>)
      static_cast<Config *>(config)->*member = static_cast<T>(parseReal(field, text));
    else
      static_cast<Config *>(config)->*member =
          static_cast<T>(parseInteger(field, text, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  };
  return f;
}

/// A kernel as written: what `compile` specialises.
struct Kernel {
  enum class Parameter { view, scalar };

  std::string name;
  Loc loc; // the registration line
  std::vector<Parameter> parameters;
  std::vector<Field> fields;
  /// Calls the function: `views` and `scalars` hold one entry for each parameter of their kind, in order. `config` is
  /// `name=value,…` text; fields that it does not name keep their defaults. Called by Trace only.
  std::function<void(const std::vector<View> &views, const std::vector<Tile> &scalars, const std::string &config)> call;
  /// The config text with every field, in registration order, after `overrides`: the form used in keys.
  std::function<std::string(const std::string &overrides)> configText;
  /// One address for a kernel and its copies, for as long as anyone holds it: what caches know a kernel by.
  std::shared_ptr<const char> identity = std::make_shared<const char>('k');
};

/// Text of a config struct, for compile() and plans: `bm=128,bn=128`.
template <class Config> std::string textOf(const std::vector<Field> &fields, const Config &config) {
  std::string text;
  for (const Field &f : fields)
    text += (text.empty() ? "" : ",") + f.name + "=" + f.print(&config);
  return text;
}

/// Sets the fields named in `text`; throws Error on an unknown name, with the names there are.
void parseConfig(const std::string &kernel, const std::vector<Field> &fields, const std::string &text, void *config);

namespace detail {
template <class P> struct IsHandle : std::bool_constant<std::is_same_v<P, View> || std::is_same_v<P, Tile>> {};
struct NoConfig {};
template <class... P> struct LastOf {
  using type = NoConfig;
};
template <class P> struct LastOf<P> {
  using type = std::conditional_t<IsHandle<P>::value, NoConfig, P>;
};
template <class P, class Q, class... R> struct LastOf<P, Q, R...> : LastOf<Q, R...> {};

struct Arguments {
  const std::vector<View> &views;
  const std::vector<Tile> &scalars;
  const void *config;
  size_t view = 0, scalar = 0;
  template <class P> P next() {
    if constexpr (std::is_same_v<P, View>)
      return views[view++];
    else if constexpr (std::is_same_v<P, Tile>)
      return scalars[scalar++];
    else
      return *static_cast<const P *>(config);
  }
};
} // namespace detail

template <class... P>
Kernel kernel(const char *name, void (*function)(P...), std::vector<Field> fields = {}, Loc loc = here()) {
  using Config = typename detail::LastOf<P...>::type;
  Kernel k;
  k.name = name;
  k.loc = loc;
  k.fields = fields;
  (
      [&] {
        if constexpr (std::is_same_v<P, View>)
          k.parameters.push_back(Kernel::Parameter::view);
        else if constexpr (std::is_same_v<P, Tile>)
          k.parameters.push_back(Kernel::Parameter::scalar);
      }(),
      ...);
  k.call = [=](const std::vector<View> &views, const std::vector<Tile> &scalars, const std::string &text) {
    Config config{};
    parseConfig(name, fields, text, &config);
    detail::Arguments arguments{views, scalars, &config};
    std::tuple<P...> values{arguments.next<P>()...}; // braces: left to right
    std::apply(function, values);
  };
  k.configText = [=](const std::string &overrides) {
    Config config{};
    parseConfig(name, fields, overrides, &config);
    return textOf(fields, config);
  };
  return k;
}

} // namespace kiln
