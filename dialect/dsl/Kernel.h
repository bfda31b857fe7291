// Registers a C++ function as a kernel: its name, the names of its arguments, and the fields of its config.
//
//     const Kernel addKernel = kernel("add", add, {"x (N)", "y (N)", "out (N), their sum"},
//                                     {field("block", &AddConfig::block, "elements a program adds")});
//
// `field(…).among({512, 2048})` gives a tuner candidates.
//
// A kernel's parameters are views and scalar tiles in any order, then at most one config struct. A view that may be
// absent is a std::optional<View>, a list of views a std::vector<View>; each number of views is a specialisation.
// Messages, printed stages and `kilnc --list` use the names of arguments; without names they use 0, 1, …. Extents with
// one name, such as N above, may differ. If they are equal in a launch, the compiler computes one mask for all of them.

#pragma once

#include "dialect/dsl/Tile.h"

#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

// The name KILN_LANGUAGE has a hash of the language's headers. So a shared object can only be loaded by a program that
// was built with equal headers.
#ifdef KILN_LANGUAGE
extern "C" const char KILN_LANGUAGE;
namespace kiln::detail {
[[gnu::used]] inline const char *const language = &KILN_LANGUAGE;
}
#endif

namespace kiln {

/// Facts about a machine (dialect/dsl/Plan.h).
struct Target;

std::string printField(int64_t value);
/// The shortest text that gives this number when parsed.
std::string printField(double value);
std::string printField(float value);

/// A value of a field as text: a number, a bool, or the spelling of an enum's value.
struct FieldValue {
  std::string text;
  FieldValue(const char *spelling) : text(spelling) {}
  template <class Number>
    requires std::is_arithmetic_v<Number>
  FieldValue(Number value) {
    if constexpr (std::is_floating_point_v<Number>)
      text = printField(value);
    else
      text = printField(static_cast<int64_t>(value));
  }
};

/// One field of a config struct: name, description, and conversion to and from text such as `bm=64`.
struct Field {
  std::string name, about;
  std::string byDefault; // its default value as text; set by kernel()
  const void *of;        // identifies the config struct of the field
  std::function<std::string(const void *config)> print;
  std::function<void(void *config, const std::string &text)> parse; // throws Error on invalid text
  std::vector<std::string> candidates; // values that `kilnc --tune` tries, as print() spells them
  bool changesResults = false;         // for instance the order of a sum; a tuner varies it only on request

  /// Declares the values that a tuner tries in addition to the default:
  /// `field("bm", &Config::bm, "rows").among({32, 64})`.
  Field among(std::initializer_list<FieldValue> values) const {
    Field result = *this;
    result.candidates.clear();
    for (const FieldValue &value : values)
      result.candidates.push_back(value.text);
    return result;
  }
  /// Marks a field whose value changes results, for example by the order of a sum. A tuner varies it only on request,
  /// and then does not compare results.
  Field changing() const {
    Field result = *this;
    result.changesResults = true;
    return result;
  }
};

/// Parses an integer from `least` to `most`, a bool (0, 1, true, false), or a number of the type of `value`. Throws
/// Error with the field's name.
int64_t parseInteger(const std::string &field, const std::string &text, int64_t least, int64_t most);
void parseReal(const std::string &field, const std::string &text, double &value);
void parseReal(const std::string &field, const std::string &text, float &value);
/// The index of `text` in `choices`. Throws Error with the field's name and the choices if it is not there.
size_t parseChoice(const std::string &field, const std::string &text, const std::vector<std::string> &choices);
/// The precision with the spelling `text`; throws Error if there is none.
Precision precisionNamed(const std::string &text);

namespace detail {
/// Its address identifies a config struct.
template <class Config> inline constexpr char configMark = 0;
template <class T, class... Any> inline constexpr bool isOneOf = (std::is_same_v<T, Any> || ...);
} // namespace detail

/// Registers the field `member` of a config struct as `name` (letters, digits and '_'). It is an int, int64_t, bool,
/// double or float. `kilnc --list` prints `about`.
template <class Config, class T> Field field(const char *name, T Config::*member, const char *about = "") {
  constexpr bool isNumber = detail::isOneOf<T, int, int64_t, bool, double, float>;
  static_assert(
      isNumber,
      "a field of a kernel's config is an int, int64_t, bool, double or float, or an enum registered with the "
      "names of its values: keep strings out of kernels");
  Field f;
  f.name = name;
  f.about = about;
  if constexpr (isNumber) {
    f.of = &detail::configMark<Config>;
    f.print = [member](const void *config) {
      T value = static_cast<const Config *>(config)->*member;
      if constexpr (std::is_floating_point_v<T>)
        return printField(value);
      else
        return printField(static_cast<int64_t>(value));
    };
    f.parse = [member, field = std::string(name)](void *config, const std::string &text) {
      if constexpr (std::is_floating_point_v<T>)
        parseReal(field, text, static_cast<Config *>(config)->*member);
      else
        static_cast<Config *>(config)->*member =
            static_cast<T>(parseInteger(field, text, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
    };
  }
  return f;
}

/// Registers an enum field of a config struct. Its values 0, 1, … have the spellings `choices`.
template <class Config, class Enum>
  requires std::is_enum_v<Enum>
Field field(const char *name, Enum Config::*member, const std::vector<std::string> &choices, const char *about = "") {
  Field f;
  f.name = name;
  f.about = about;
  f.of = &detail::configMark<Config>;
  f.print = [member, choices](const void *config) {
    return choices.at(static_cast<size_t>(static_cast<const Config *>(config)->*member));
  };
  f.parse = [member, choices, field = std::string(name)](void *config, const std::string &text) {
    static_cast<Config *>(config)->*member = static_cast<Enum>(parseChoice(field, text, choices));
  };
  return f;
}

/// Static errors: spellings for a field that is not an enum, and an argument that is not a member pointer.
template <class Config, class T>
  requires(!std::is_enum_v<T>)
Field field(const char *, T Config::*, const std::vector<std::string> &, const char * = "") {
  static_assert(sizeof(Config) == 0, "a field whose values have names is an enum, whose values are 0, 1, ... in this "
                                     "order; any other has its text alone: field(\"bm\", &Config::bm, \"rows\")");
  return {};
}
template <class T, class... About>
  requires(!std::is_member_pointer_v<T>)
Field field(const char *, T, About...) {
  static_assert(sizeof(T) == 0,
                "a field is registered by its name and its place in the config struct, which holds it in "
                "each object: field(\"bm\", &Config::bm)");
  return {};
}

struct MadeKernels;
std::shared_ptr<MadeKernels> noKernels();

/// The name of an argument in messages: `'b'`, or `argument 1` without a name.
std::string calledArgument(const std::string &name, size_t index);

/// A kernel before specialisation, the input of compile().
struct Kernel {
  /// An argument: a view, a view that may be absent, a list of views, or a scalar.
  struct Parameter {
    enum class Kind { view, optional, list, scalar } kind = Kind::view;
    std::string name;  // empty if the registration names no arguments
    std::string about; // the registration's text after the name, such as a shape

    bool isView() const { return kind != Kind::scalar; }
    /// Whether its number of views may differ from launch to launch.
    bool isVariadic() const { return kind == Kind::optional || kind == Kind::list; }
  };

  /// Extents with one name in the texts of arguments, such as N in "x (N, C)" and "mean (N)", as (argument, axis).
  using NamedExtent = std::vector<std::pair<int, int>>;

  std::string name;
  Loc loc; // the line of the registration
  std::vector<Parameter> parameters;
  /// Each name of two or more extents. If the extents are equal in a launch, its code relies on that.
  std::vector<NamedExtent> namedExtents;
  std::vector<Field> fields;
  /// Calls the function. `views` and `scalars` hold all views and all scalars, in the order of the parameters. `counts`
  /// has the number of views of each optional view and each list. `config` is `name=value,…`; other fields keep their
  /// defaults. Only Trace calls it.
  std::function<void(const std::vector<View> &views, const std::vector<Tile> &scalars,
                     const std::vector<size_t> &counts, const std::string &config)>
      call;
  /// The config text with every field, in registration order, after `overrides`. Cache keys use this form.
  std::function<std::string(const std::string &overrides)> configText;
  /// The registration's constraint: whether a tuner tries the config with `overrides` on a target. Null: no constraint.
  std::function<bool(const std::string &overrides, const Target &target)> allows;
  /// The key of a kernel and its copies in caches: an address that stays theirs as long as one of them exists.
  std::shared_ptr<const char> identity = std::make_shared<const char>('k');
  /// For a kernel made by vmap(): per batch and argument, the dimension of the examples. In a launch, all arguments
  /// have equally many examples of a batch.
  std::vector<std::vector<std::optional<int>>> batches;
  /// The kernels that vmap() and expanded() have made of this kernel and its copies.
  std::shared_ptr<MadeKernels> made = noKernels();
  /// For a kernel made by expanded(): the number of views of each optional view and each list, in order.
  std::vector<size_t> counts;

  /// Whether it has optional views or lists. expanded() then makes the form that is compiled.
  bool isVariadic() const {
    return std::any_of(parameters.begin(), parameters.end(), [](const Parameter &p) { return p.isVariadic(); });
  }

  /// The name of argument `index` in messages; `index` may be one too large.
  std::string called(size_t index) const {
    return calledArgument(index < parameters.size() ? parameters[index].name : "", index);
  }
};

/// Kernel::namedExtents of these parameters. Lists are left out, because the extents of their views may differ.
std::vector<Kernel::NamedExtent> findNamedExtents(const std::vector<Kernel::Parameter> &parameters);

/// The text of a config struct for compile() and plans: `bm=128,bn=128`.
template <class Config> std::string textOf(const std::vector<Field> &fields, const Config &config) {
  std::string text;
  for (const Field &f : fields)
    text += (text.empty() ? "" : ",") + f.name + "=" + f.print(&config);
  return text;
}

/// Sets the fields named in `text`. Throws Error on an unknown name and lists the known ones.
void parseConfig(const std::string &kernel, const std::vector<Field> &fields, const std::string &text, void *config);
/// As above for the options of an operator; errors then speak of options, not of a kernel's config.
void parseOptions(const std::string &op, const std::vector<Field> &fields, const std::string &text, void *options);

namespace detail {
/// Classes of kernel parameters. The first five are valid; each of the others has an error message.
enum class Fit { view, optional, list, scalar, config, reference, pointer, number, early, group, opaque };

/// Whether a type is a container of views or tiles.
template <class P> inline constexpr bool isGroup = false;
template <class T> inline constexpr bool isGroup<std::optional<T>> = isOneOf<T, View, Tile>;
template <class T> inline constexpr bool isGroup<std::vector<T>> = isOneOf<T, View, Tile>;
template <class T> inline constexpr bool isGroup<std::initializer_list<T>> = isOneOf<T, View, Tile>;
template <class T, size_t N> inline constexpr bool isGroup<std::array<T, N>> = isOneOf<T, View, Tile>;

template <class P, bool isLast> consteval Fit fitOf() {
  if constexpr (std::is_same_v<P, View>)
    return Fit::view;
  else if constexpr (std::is_same_v<P, std::optional<View>>)
    return Fit::optional;
  else if constexpr (std::is_same_v<P, std::vector<View>>)
    return Fit::list;
  else if constexpr (std::is_same_v<P, Tile>)
    return Fit::scalar;
  else if constexpr (std::is_reference_v<P>)
    return Fit::reference;
  else if constexpr (std::is_pointer_v<P>)
    return Fit::pointer;
  else if constexpr (!std::is_class_v<P>)
    return Fit::number;
  else if constexpr (isGroup<P>)
    return Fit::group;
  else if constexpr (!std::is_trivially_copyable_v<P> || !std::is_default_constructible_v<P>)
    return Fit::opaque;
  else
    return isLast ? Fit::config : Fit::early;
}

struct NoConfig {};

/// The parameters of a kernel's function.
template <class... P> struct Signature {
  static constexpr std::array<Fit, sizeof...(P)> fits = []<size_t... I>(std::index_sequence<I...>) {
    return std::array<Fit, sizeof...(P)>{fitOf<P, I + 1 == sizeof...(P)>()...};
  }(std::index_sequence_for<P...>());
  static consteval bool has(Fit fit) { return std::find(fits.begin(), fits.end(), fit) != fits.end(); }

  static constexpr size_t arguments = sizeof...(P) - has(Fit::config); // all but the config
  static constexpr bool fine = std::all_of(fits.begin(), fits.end(), [](Fit fit) { return fit <= Fit::config; });
  static constexpr bool isVariadic = has(Fit::optional) || has(Fit::list);
  using Last = typename decltype((std::type_identity<NoConfig>(), ..., std::type_identity<P>()))::type;
  using Config = std::conditional_t<has(Fit::config), Last, NoConfig>;

  static std::vector<Kernel::Parameter> list() {
    using Kind = Kernel::Parameter::Kind;
    std::vector<Kernel::Parameter> parameters(arguments);
    for (size_t i = 0; i < arguments; ++i)
      parameters[i].kind = fits[i] == Fit::view       ? Kind::view
                           : fits[i] == Fit::optional ? Kind::optional
                           : fits[i] == Fit::list     ? Kind::list
                                                      : Kind::scalar;
    return parameters;
  }
};

/// Supplies the arguments of a kernel's function, from left to right.
struct Arguments {
  const std::vector<View> &views;
  const std::vector<Tile> &scalars;
  const std::vector<size_t> &counts;
  const void *config;
  size_t view = 0, scalar = 0, count = 0;
  template <class P> P next() {
    if constexpr (std::is_same_v<P, View>)
      return views[view++];
    else if constexpr (std::is_same_v<P, std::optional<View>>)
      return counts[count++] ? P(views[view++]) : P();
    else if constexpr (std::is_same_v<P, std::vector<View>>) {
      const auto first = views.begin() + static_cast<std::ptrdiff_t>(view);
      view += counts[count];
      return P(first, first + static_cast<std::ptrdiff_t>(counts[count++]));
    } else if constexpr (std::is_same_v<P, Tile>)
      return scalars[scalar++];
    else
      return *static_cast<const P *>(config);
  }
};

/// Completes the registration of `kernel`. Checks its names, and splits the texts of its arguments into name and
/// description. Gives a copy to the thread's Registrations, if any. `config` identifies its config struct. Throws Error
/// at the registration line.
void registerKernel(Kernel &kernel, const std::vector<std::string> &arguments, const void *config);

template <class... P>
Kernel makeKernel(const char *name, void (*function)(P...), const std::vector<std::string> &arguments,
                  std::vector<Field> fields, Loc loc,
                  std::function<bool(const void *config, const Target &target)> where = {}) {
  using Taken = Signature<P...>;
  static_assert(!Taken::has(Fit::reference), "a kernel takes its parameters by value: write 'View x', 'Tile n' or "
                                             "'Config cfg', without '&'");
  static_assert(!Taken::has(Fit::pointer), "a kernel takes memory as a View, and never a pointer");
  static_assert(!Taken::has(Fit::number), "a kernel takes a number as a Tile when launches give it, and as a field of "
                                          "its config struct when it is known while compiling");
  static_assert(!Taken::has(Fit::early), "a kernel takes at most one config struct, and as its last parameter: put all "
                                         "fields into one");
  static_assert(!Taken::has(Fit::group), "a kernel takes a list of views as a std::vector<View>, a view that may be "
                                         "absent as a std::optional<View>, and each number as a Tile of its own");
  static_assert(!Taken::has(Fit::opaque), "a kernel's config struct holds numbers with defaults: views and tiles are "
                                          "parameters of their own, and strings stay outside");
  Kernel k;
  if constexpr (Taken::fine) {
    using Config = typename Taken::Config;
    k.name = name;
    k.loc = loc;
    k.parameters = Taken::list();
    const Config defaults{};
    for (Field &field : fields)
      if (field.of == &configMark<Config>) {
        field.byDefault = field.print(&defaults);
        for (std::string &value : field.candidates) {
          Config probe{};
          field.parse(&probe, value);
          value = field.print(&probe);
        }
      }
    k.fields = fields;
    k.call = [function, fields, name = k.name](const std::vector<View> &views, const std::vector<Tile> &scalars,
                                               const std::vector<size_t> &counts, const std::string &text) {
      Config config{};
      parseConfig(name, fields, text, &config);
      [[maybe_unused]] Arguments values{views, scalars, counts, &config};
      std::apply(function, std::tuple<P...>{values.template next<P>()...}); // braces: left to right
    };
    k.configText = [fields, name = k.name](const std::string &overrides) {
      Config config{};
      parseConfig(name, fields, overrides, &config);
      return textOf(fields, config);
    };
    if (where)
      k.allows = [fields, where, name = k.name](const std::string &overrides, const Target &target) {
        Config config{};
        parseConfig(name, fields, overrides, &config);
        return where(&config, target);
      };
    registerKernel(k, arguments, &configMark<Config>);
  }
  return k;
}
} // namespace detail

/// Registers `function`. Names of kernels and arguments consist of letters, digits and '_'. `arguments` has one text
/// for each view and scalar: its name, a space and a description. Throws Error on an invalid name.
template <class... P, size_t N>
Kernel kernel(const char *name, void (*function)(P...), const char *const (&arguments)[N],
              std::vector<Field> fields = {}, Loc loc = here()) {
  static_assert(!detail::Signature<P...>::fine || N == detail::Signature<P...>::arguments,
                "a kernel's registration names each of its views and tiles, and nothing else");
  return detail::makeKernel(name, function, {std::begin(arguments), std::end(arguments)}, std::move(fields), loc);
}

/// Registers `function` with a constraint among the fields of its config, for tuners:
/// `[](const MatmulConfig &cfg, const Target &target) { return cfg.bm * cfg.bn <= 16384; }`.
template <class... P, size_t N, class Where>
  requires std::is_invocable_r_v<bool, Where, const typename detail::Signature<P...>::Config &, const Target &>
Kernel kernel(const char *name, void (*function)(P...), const char *const (&arguments)[N], std::vector<Field> fields,
              Where where, Loc loc = here()) {
  static_assert(!detail::Signature<P...>::fine || N == detail::Signature<P...>::arguments,
                "a kernel's registration names each of its views and tiles, and nothing else");
  using Config = typename detail::Signature<P...>::Config;
  return detail::makeKernel(name, function, {std::begin(arguments), std::end(arguments)}, std::move(fields), loc,
                            [where](const void *config, const Target &target) -> bool {
                              return where(*static_cast<const Config *>(config), target);
                            });
}

/// Registers `function` without names of arguments.
template <class... P>
Kernel kernel(const char *name, void (*function)(P...), std::vector<Field> fields = {}, Loc loc = here()) {
  static_assert(!detail::Signature<P...>::isVariadic,
                "a kernel with optional views or lists of views is registered with names of its arguments");
  return detail::makeKernel(name, function, {}, std::move(fields), loc);
}

template <class R, class... P>
  requires(!std::is_void_v<R>)
KILN_MISTAKE("a kernel's function is void: it writes its result by store(out, {n}, x)")
Kernel kernel(const char *, R (*)(P...), AnyArgument = {}, AnyArgument = {}, AnyArgument = {});

/// The kernel for a batch of examples, like `torch.vmap` and `jax.vmap`. `axes` has an entry for each argument: the
/// dimension of the examples, or nothing for an argument that all examples share. The entry of a list applies to each
/// of its views.
/// - A batched launch gives the results of one launch per example. Grid axis 2 has the programs of all examples.
/// - A scalar with examples becomes a view of rank 1.
/// - The kernel may read memory that all examples share, and change it by atomics only.
/// - The result serves any number of examples. Calls with equal arguments return one kernel.
/// Throws Error if `axes` do not fit the arguments.
Kernel vmap(const Kernel &kernel, std::vector<std::optional<int>> axes, Loc loc = here());

/// The form of a kernel with optional views and lists in which each view is a parameter: `bias` for an optional view,
/// `xs[0]`, `xs[1]`, … for a list. `counts` has the number of views of each. The result lives as long as `kernel` or a
/// copy of it.
const Kernel &expanded(const Kernel &kernel, const std::vector<size_t> &counts);

} // namespace kiln
