// Parses the arguments of --run and --tune, and uploads them to a device.

#include "tools/kilnc/RunArguments.h"

#include "dialect/dsl/Nearest.h"
#include "runtime/Compile.h"
#include "runtime/Npy.h"
#include "runtime/OutputFile.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

#include <fmt/format.h>

#include <cmath>
#include <random>

namespace kiln::tools {

static Error wrong(const std::string &expected, llvm::StringRef got) {
  return Error(fmt::format("expected {} in --args, but got '{}'", expected, got.str()));
}

/// `f32[64x128]`: a type and extents, all of them numbers.
static std::pair<Type, Shape> parseZeros(llvm::StringRef text) {
  const size_t bracket = text.find('[');
  const Type type = typeNamed(text.substr(0, bracket).trim().str());
  llvm::StringRef list = text.substr(bracket + 1);
  if (!list.consume_back("]"))
    throw wrong("a closing ']', and 'x' between extents,", text);
  llvm::SmallVector<llvm::StringRef> parts;
  list.split(parts, 'x');
  Shape extents;
  for (const llvm::StringRef part : parts)
    if (part.trim().getAsInteger(10, extents.emplace_back()) || extents.back() < 0)
      throw wrong("extents that are numbers from 0, with 'x' between them,", text);
  return {type, extents};
}

/// `3`, `2.5`, `true`, or one of these as another type: `bf16(2.5)`.
static Arg parseNumber(llvm::StringRef text) {
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
    throw wrong("a file that ends in .npy, zeros such as f32[64x128], or a number such as 3, 2.5 or bf16(2.5)", text);
  return Arg(real).as(f32);
}

static RunArgument parseArgument(llvm::StringRef text) {
  RunArgument argument;
  auto [source, output] = text.split("->");
  source = source.trim();
  output = output.trim();
  if (source.ends_with(".npy"))
    argument.file = source.str();
  else if (source.contains('['))
    argument.zeros = parseZeros(source);
  else
    argument.number = parseNumber(source);
  if (text.contains("->") && !output.ends_with(".npy"))
    throw wrong("a file that ends in .npy after '->'", text);
  if (text.contains("->") && argument.number)
    throw wrong("a tensor before '->'", text);
  argument.output = output.str();
  expectFile(argument.output);
  return argument;
}

/// The parameter of a name.
static size_t parameterNamed(const Kernel &kernel, const std::string &name) {
  std::vector<std::string> names;
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    if (kernel.parameters[i].name == name)
      return i;
    names.push_back(kernel.parameters[i].name);
  }
  throw Error(fmt::format("expected --args to name parameters of kernel '{}' ({}), but got '{}'{}", kernel.name,
                          llvm::join(names, ", "), name, didYouMean(name, names)));
}

std::vector<RunArgument> parseRunArguments(const Kernel &kernel, const std::string &text) {
  llvm::SmallVector<llvm::StringRef> parts;
  if (!llvm::StringRef(text).trim().empty())
    llvm::StringRef(text).split(parts, ',');
  std::vector<std::optional<RunArgument>> found(kernel.parameters.size());
  bool named = false;
  for (size_t position = 0; position < parts.size(); ++position) {
    auto [name, value] = parts[position].split('=');
    name = name.trim();
    size_t index = position;
    const bool isName =
        parts[position].contains('=') && llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; });
    if (isName)
      index = parameterNamed(kernel, name.str());
    else if (named)
      throw wrong("a name for every argument after the first that has one", parts[position].trim());
    named |= isName;
    if (index >= found.size())
      throw Error(fmt::format("kernel '{}': expected {} arguments in --args, but got {}", kernel.name, found.size(),
                              parts.size()));
    if (found[index])
      throw Error(
          fmt::format("kernel '{}': expected {} once in --args, but got it twice", kernel.name, kernel.called(index)));
    found[index] = parseArgument((isName ? value : parts[position]).trim());
  }
  std::vector<RunArgument> result;
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i])
      throw Error(fmt::format("kernel '{}': expected a {} for {} in --args, but got none", kernel.name,
                              kernel.parameters[i].isView() ? "tensor" : "number", kernel.called(i)));
    result.push_back(std::move(*found[i]));
  }
  return result;
}

/// Reproducible numbers from -1 to 1; zeros for integers, which may be indices.
static void fillWithNumbers(Tensor &tensor) {
  if (!isFloat(tensor.type()))
    return tensor.fillZero();
  std::minstd_rand random(1);
  std::vector<double> numbers(static_cast<size_t>(tensor.count()));
  for (double &number : numbers)
    number = static_cast<double>(random()) / std::minstd_rand::max() * 2 - 1;
  std::vector<char> bytes(static_cast<size_t>(tensor.bytes()));
  fromDoubles(numbers, tensor.type(), bytes.data());
  tensor.upload(bytes.data(), tensor.bytes());
}

Forgetting::~Forgetting() { forgetCompiled(); }

LaunchMemory::LaunchMemory(const std::shared_ptr<Device> &device, const std::vector<RunArgument> &arguments,
                           Fresh fresh)
    : tensors(arguments.size()) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].number) {
      args.push_back(*arguments[i].number);
      continue;
    }
    if (arguments[i].zeros) {
      tensors[i] = Tensor(device, arguments[i].zeros->first, arguments[i].zeros->second);
      if (fresh == Fresh::numbers)
        fillWithNumbers(tensors[i]);
    } else {
      const NpyArray array = readNpy(arguments[i].file);
      tensors[i] = Tensor(device, array.type, array.extents);
      tensors[i].upload(array.data.data(), static_cast<int64_t>(array.data.size()));
    }
    args.emplace_back(tensors[i]);
  }
}

} // namespace kiln::tools
