// Parses the arguments of --run, --tune and --bench, fills new tensors, and uploads them to a device.

#include "tools/kilnc/Arguments.h"

#include "runtime/Compile.h"
#include "runtime/Files.h"
#include "runtime/Npy.h"
#include "runtime/Streams.h"
#include "tools/kilnc/Trace.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace kiln::tools {

static Error wrong(const std::string &expected, llvm::StringRef got) {
  return Error(fmt::format("expected {} in --args, but got '{}'", expected, got.str()));
}

/// `3`, `2.5`, `true`, or one of these as another type: `bf16(2.5)`.
static Arg parseNumber(llvm::StringRef text, const std::string &expected = "a number such as 3, 2.5 or bf16(2.5)") {
  if (const size_t open = text.find('('); open != llvm::StringRef::npos && text.ends_with(")"))
    return parseNumber(text.substr(open + 1).drop_back().trim()).as(typeNamed(text.substr(0, open).trim().str()));
  if (text == "true" || text == "false")
    return text == "true";
  int64_t integer = 0;
  if (!text.getAsInteger(10, integer))
    return integer;
  uint64_t natural = 0;
  if (!text.getAsInteger(10, natural))
    return natural;
  double real = 0;
  if (text.empty() || text.getAsDouble(real))
    throw wrong(expected, text);
  return Arg(real).as(f32);
}

/// `(0)` or `(0..128)` after a tensor of `type`.
static Fill parseFill(llvm::StringRef text, Type type) {
  llvm::StringRef inner = text;
  if (!inner.consume_front("(") || !inner.consume_back(")"))
    throw wrong("nothing, a number such as (0) or a range such as (0..128) after a tensor", text);
  const size_t dots = inner.find("..");
  Fill fill{parseNumber(inner.substr(0, dots).trim()).as(type), {}};
  if (dots == llvm::StringRef::npos)
    return fill;
  const Arg high = parseNumber(inner.substr(dots + 2).trim());
  fill.high = isFloat(type) ? high.as(type) : high.as(i64); // an integer's bound may be one more than the type has
  if (isFloat(type) ? fill.low.real >= fill.high->real : fill.low.integer >= fill.high->integer)
    throw wrong("a range whose first number is below its last", text);
  if (!isFloat(type))
    (void)Arg(fill.high->integer - 1).as(type);
  return fill;
}

/// `f32[64x128]`: a type, extents, all of them numbers, and the numbers in the tensor if they are given.
static RunArgument::Fresh parseFresh(llvm::StringRef text) {
  const size_t bracket = text.find('['), end = text.find(']');
  const Type type = typeNamed(text.substr(0, bracket).trim().str());
  if (end == llvm::StringRef::npos)
    throw wrong("a closing ']'", text);
  llvm::SmallVector<llvm::StringRef> parts;
  text.slice(bracket + 1, end).split(parts, 'x');
  Shape extents;
  for (const llvm::StringRef part : parts)
    if (part.trim().getAsInteger(10, extents.emplace_back()) || extents.back() < 0)
      throw Error(wrong("extents that are numbers from 0, with 'x' between them,", text).what() +
                  std::string(part.trim() == "?" ? "; '?' is for code that is compiled, and not launched" : ""));
  const llvm::StringRef rest = text.substr(end + 1).trim();
  return {type, extents, rest.empty() ? std::nullopt : std::optional(parseFill(rest, type))};
}

static RunArgument parseArgument(llvm::StringRef text) {
  RunArgument argument;
  auto [source, output] = text.split("->");
  source = source.trim();
  output = output.trim();
  if (source.ends_with(".npy"))
    argument.file = source.str();
  else if (source.contains('['))
    argument.fresh = parseFresh(source);
  else
    argument.number =
        parseNumber(source, "a file that ends in .npy, a new tensor such as f32[64x128], or a number such as 3, 2.5 or "
                            "bf16(2.5)");
  if (text.contains("->") && !output.ends_with(".npy"))
    throw wrong("a file that ends in .npy after '->'", text);
  if (text.contains("->") && argument.number)
    throw wrong("a tensor before '->'", text);
  argument.output = output.str();
  expectFile(argument.output);
  return argument;
}

std::vector<RunArgument> parseRunArguments(const Kernel &kernel, const std::string &text) {
  const std::vector<std::optional<std::string>> parts = argumentParts(kernel, text);
  if (parts.size() > kernel.parameters.size())
    throw Error(fmt::format("kernel '{}': expected {} arguments{} in --args, but got {}", kernel.name,
                            kernel.parameters.size(), parameterNames(kernel), parts.size()));
  std::vector<RunArgument> result;
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    if (i >= parts.size() || !parts[i])
      throw Error(fmt::format("kernel '{}': expected a {} for {} in --args, but got none", kernel.name,
                              kernel.parameters[i].isView() ? "tensor" : "number", kernel.called(i)));
    result.push_back(parseArgument(*parts[i]));
  }
  return result;
}

// --- New tensors -----------------------------------------------------------------------------------------------------

/// Elements that are converted at a time.
static constexpr size_t chunk = 1024;

/// Writes `count` floats to `bytes`.
static void fillFloats(char *bytes, size_t count, Type type, const Fill &fill, std::mt19937 &random) {
  std::vector<double> numbers(count, fill.low.real);
  if (fill.high)
    for (double &number : numbers)
      number += static_cast<double>(random()) * 0x1p-32 * (fill.high->real - fill.low.real);
  fromDoubles(numbers, type, bytes);
  if (!fill.high)
    return;
  numbers = toDoubles(bytes, type, static_cast<int64_t>(count));
  const auto isEnd = [&](double number) { return number >= fill.high->real; }; // after rounding
  if (std::none_of(numbers.begin(), numbers.end(), isEnd))
    return;
  std::replace_if(numbers.begin(), numbers.end(), isEnd, fill.low.real);
  fromDoubles(numbers, type, bytes);
}

/// Writes `count` integers to `bytes`.
static void fillIntegers(char *bytes, size_t count, Type type, const Fill &fill, std::mt19937 &random) {
  const auto low = static_cast<uint64_t>(fill.low.integer), size = static_cast<uint64_t>(bytesOf(type));
  const uint64_t span = fill.high ? static_cast<uint64_t>(fill.high->integer) - low : 1;
  for (size_t i = 0; i < count; ++i) {
    uint64_t number = low;
    if (fill.high)
      number += (uint64_t{random()} << 32 | random()) % span;
    std::memcpy(bytes + i * size, &number, size); // its low bytes
  }
}

/// Fills a new tensor with `fill`; tensors of different `seed` have different random numbers.
static void fillWith(Tensor &tensor, const Fill &fill, uint32_t seed) {
  const Type type = tensor.type();
  const bool isZero = isFloat(type) ? fill.low.real == 0 && !std::signbit(fill.low.real) : fill.low.integer == 0;
  if (isZero && !fill.high)
    return; // as new tensors are
  const auto count = static_cast<size_t>(tensor.count()), size = static_cast<size_t>(bytesOf(type));
  std::vector<char> bytes(count * size);
  std::mt19937 random(seed);
  for (size_t at = 0; at < count; at += chunk)
    (isFloat(type) ? fillFloats : fillIntegers)(&bytes[at * size], std::min(chunk, count - at), type, fill, random);
  tensor.upload(bytes.data(), tensor.bytes());
}

/// Random numbers from -1 to 1, or scales around 1; for integers and booleans, values of both signs that stay small in
/// a sum.
static Fill randomValues(Type type) {
  if (type == f8e8m0)
    return {Arg(0.125).as(type), Arg(8.0).as(type)};
  if (isFloat(type))
    return {Arg(-1.0).as(type), Arg(1.0).as(type)};
  if (type == boolean)
    return {Arg(0), Arg(2)}; // false and true
  if (isPair(type))
    return {Arg(-128).as(type), Arg(127).as(type)}; // bytes
  return isUnsigned(type) ? Fill{Arg(0).as(type), Arg(16).as(type)} : Fill{Arg(-8).as(type), Arg(8).as(type)};
}

/// The facts about an argument that show how the kernel uses integers.
static ArgFacts factsOf(const Arg &arg) {
  ArgFacts facts;
  facts.isView = arg.kind != Arg::Kind::scalar;
  facts.type = facts.isView ? arg.ref.type : arg.scalarType;
  facts.extents = arg.ref.extents;
  return facts;
}

/// The numbers of a new tensor of integers that the command line leaves open.
static Fill integersFor(const IntegerUse &use, const Kernel &kernel, size_t index, Type type, const Shape &extents,
                        bool quiet) {
  const Fill zeros = {Arg(0).as(type), {}};
  if (use.kind == IntegerUse::Kind::data)
    return randomValues(type);
  const int64_t most = bytesOf(type) == 8 ? INT64_MAX : (int64_t{1} << (8 * bytesOf(type) - !isUnsigned(type))) - 1;
  if (use.kind == IntegerUse::Kind::index && use.bound.value_or(0) > 0 && type != boolean)
    return {Arg(0).as(type), Arg(std::min(*use.bound, most)).as(type)};
  if (use.kind == IntegerUse::Kind::unknown && !quiet)
    say(fmt::format("kilnc: {} holds zeros, because the kernel may compute positions or numbers of iterations from its "
                    "integers; give a file or a range, such as {}[{}](0..8)\n",
                    kernel.called(index), nameOf(type), fmt::join(extents, "x")));
  return zeros;
}

Forgetting::~Forgetting() { forgetCompiled(); }

LaunchMemory::LaunchMemory(const std::shared_ptr<Device> &device, const Kernel &kernel, const std::string &config,
                           const std::vector<RunArgument> &arguments, bool quiet)
    : tensors(arguments.size()) {
  bool hasIntegers = false; // whose numbers depend on their use
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].number) {
      args.push_back(*arguments[i].number);
      continue;
    }
    if (const auto &fresh = arguments[i].fresh) {
      tensors[i] = Tensor(device, fresh->type, fresh->extents);
      hasIntegers |= !isFloat(fresh->type) && !isPair(fresh->type) && !fresh->fill && arguments[i].output.empty();
    } else {
      const NpyArray array = readNpy(arguments[i].file);
      tensors[i] = Tensor(device, array.type, array.extents);
      tensors[i].upload(array.data.data(), static_cast<int64_t>(array.data.size()));
    }
    args.emplace_back(tensors[i]);
  }
  std::vector<ArgFacts> facts;
  std::transform(args.begin(), args.end(), std::back_inserter(facts), factsOf);
  if (!quiet)
    say(warningsAbout(kernel, facts, config));
  const std::vector<IntegerUse> none(args.size());
  const std::vector<IntegerUse> uses = hasIntegers ? integerUses(kernel, facts, config).value_or(none) : none;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (const auto &fresh = arguments[i].fresh) {
      const Type type = fresh->type;
      const Fill fill = fresh->fill                     ? *fresh->fill
                        : !arguments[i].output.empty()  ? Fill{Arg(0).as(type), {}}
                        : isFloat(type) || isPair(type) ? randomValues(type)
                                                        : integersFor(uses[i], kernel, i, type, fresh->extents, quiet);
      fillWith(tensors[i], fill, static_cast<uint32_t>(i + 1));
    }
}

} // namespace kiln::tools
