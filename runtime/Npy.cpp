// Reads and writes .npy files. Every length in a file is checked against the file's size.

#include "runtime/Npy.h"

#include "runtime/Files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <new>
#include <optional>
#include <unistd.h>

namespace kiln {

static constexpr std::string_view magic("\x93NUMPY", 6);
/// The longest header that is read; NumPy's headers have about a hundred bytes.
static constexpr size_t longestHeader = 1 << 16;
/// NumPy's largest rank.
static constexpr size_t maxDimensions = 64;
/// The data begin at a multiple of this.
static constexpr size_t headerAlignment = 64;

/// The byte order in NumPy's name of a type: `|` without one, `<` for little-endian. f8e4m3 has `<`, f8e8m0 `>`, and
/// f4e2m1x2 `=`, which distinguishes the four types of one raw byte.
static char orderOf(Type type) {
  if (type == Type::f8e8m0 || type == Type::f4e2m1x2)
    return type == Type::f8e8m0 ? '>' : '=';
  return (bytesOf(type) == 1 && type != Type::f8e4m3) || type == Type::bf16 ? '|' : '<';
}

// --- The header ------------------------------------------------------------------------------------------------------

namespace {
/// The content of the dictionary.
struct Header {
  std::optional<Type> type;
  std::optional<bool> columnMajor;
  std::optional<Shape> extents;
};

/// Reads the dictionary `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`, its keys in any order.
class HeaderReader {
public:
  HeaderReader(std::string_view text, const std::string &name) : text(text), name(name) {}

  Header read() {
    Header header;
    expect('{');
    while (!accept('}')) {
      const std::string key = readString();
      expect(':');
      if (key == "descr" && !header.type)
        header.type = readType();
      else if (key == "fortran_order" && !header.columnMajor)
        header.columnMajor = readTruth();
      else if (key == "shape" && !header.extents)
        header.extents = readExtents();
      else
        throw wrong("the keys 'descr', 'fortran_order' and 'shape', each once, in the header", quoted(key));
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!header.type || !header.columnMajor || !header.extents)
      throw wrong("the keys 'descr', 'fortran_order' and 'shape' in the header", "fewer");
    skipSpaces();
    if (at != text.size())
      throw wrong("nothing after the header's dictionary", quoted(text.substr(at)));
    return header;
  }

private:
  Error wrong(const std::string &expected, const std::string &got) const {
    return Error(fmt::format("'{}': expected {}, but got {}", name, expected, got));
  }
  /// A short excerpt of the file for a message, without control characters.
  static std::string quoted(std::string_view piece) {
    std::string shown(piece.substr(0, 40));
    std::replace_if(shown.begin(), shown.end(), [](unsigned char c) { return c < ' ' || c > '~'; }, '?');
    return "'" + shown + (piece.size() > 40 ? "…'" : "'");
  }
  std::string rest() const { return at < text.size() ? quoted(text.substr(at)) : "its end"; }

  void skipSpaces() {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t'))
      ++at;
  }
  bool accept(char c) {
    skipSpaces();
    if (at == text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }
  void expect(char c) {
    if (!accept(c))
      throw wrong(fmt::format("'{}' in the header", c), rest());
  }
  std::string readString() {
    skipSpaces();
    const char quote = at < text.size() ? text[at] : 0;
    const size_t end = quote == '\'' || quote == '"' ? text.find(quote, at + 1) : std::string_view::npos;
    if (end == std::string_view::npos)
      throw wrong("a string in the header", rest());
    const std::string result(text.substr(at + 1, end - at - 1));
    at = end + 1;
    return result;
  }
  bool readTruth() {
    skipSpaces();
    for (const auto &[word, value] : {std::pair("True", true), std::pair("False", false)})
      if (text.substr(at).starts_with(word)) {
        at += std::strlen(word);
        return value;
      }
    throw wrong("True or False for 'fortran_order'", rest());
  }
  Type readType() {
    skipSpaces();
    if (at < text.size() && text[at] == '[')
      throw wrong("elements of one type, without fields", rest());
    const std::string descr = readString();
    if (descr == "<f1") // written by ml_dtypes, but not readable by NumPy
      return f8e5m2;
    std::string all;
    std::optional<Type> found;
    for (const Type type : everyType) {
      const std::string code = infoOf(type).numPy;
      if (descr == orderOf(type) + code)
        return type;
      if (descr == '<' + code)
        found = found ? found : type;
      all += fmt::format("{}{}{} ({})", all.empty() ? "" : ", ", orderOf(type), code, nameOf(type));
    }
    if (found)
      return *found;
    throw wrong("elements of a type " + all, quoted(descr));
  }
  Shape readExtents() {
    Shape extents;
    expect('(');
    while (!accept(')')) {
      skipSpaces();
      int64_t extent = 0;
      const auto [end, failure] = std::from_chars(text.data() + at, text.data() + text.size(), extent);
      if (failure != std::errc() || extent < 0)
        throw wrong("extents from 0 to 2^63 - 1 in 'shape'", rest());
      at = static_cast<size_t>(end - text.data());
      extents.push_back(extent);
      if (extents.size() > maxDimensions)
        throw wrong(fmt::format("at most {} dimensions", maxDimensions), "more");
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return extents;
  }

  const std::string_view text;
  const std::string &name;
  size_t at = 0;
};
} // namespace

/// The offset of the header and its length.
static std::pair<size_t, size_t> findHeader(std::string_view file, const std::string &name) {
  if (!file.starts_with(magic))
    throw Error(fmt::format("'{}': expected a .npy file, but it does not begin as one", name));
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(file[i])); };
  const auto truncated = [&] {
    return Error(fmt::format("'{}': expected a whole .npy file, but it ends within the header", name));
  };
  if (file.size() < magic.size() + 4)
    throw truncated();
  const size_t version = byte(6);
  if (version < 1 || version > 3)
    throw Error(fmt::format("'{}': expected version 1, 2 or 3 of .npy, but got {}.{}", name, version, byte(7)));
  const size_t begin = version == 1 ? 10 : 12;
  if (file.size() < begin)
    throw truncated();
  size_t length = byte(8) | byte(9) << 8;
  if (version > 1)
    length |= byte(10) << 16 | byte(11) << 24;
  if (length > longestHeader)
    throw Error(fmt::format("'{}': expected a header of at most {} bytes, but got {}", name, longestHeader, length));
  if (length > file.size() - begin)
    throw truncated();
  return {begin, length};
}

/// The size of the elements in bytes. Throws Error on overflow.
static int64_t bytesOf(Type type, const Shape &extents, const std::string &name) {
  int64_t bytes = bytesOf(type);
  for (const int64_t extent : extents)
    if (__builtin_mul_overflow(bytes, extent, &bytes))
      throw Error(fmt::format("'{}': expected an array of less than 2^63 bytes, but got {}[{}]", name, nameOf(type),
                              textOf(extents)));
  return bytes;
}

// --- Files -----------------------------------------------------------------------------------------------------------

/// The array in a file of `size` bytes, without its data, and the offset of the data. `begin` has the file's first
/// bytes, which include the header.
static std::pair<NpyArray, size_t> parseHeader(std::string_view begin, uint64_t size, const std::string &name) {
  const auto [at, length] = findHeader(begin, name);
  const Header header = HeaderReader(begin.substr(at, length), name).read();
  if (*header.columnMajor)
    throw Error(fmt::format("'{}': expected an array in row-major order, but its 'fortran_order' is True; save "
                            "np.ascontiguousarray of it",
                            name));
  const int64_t bytes = bytesOf(*header.type, *header.extents, name);
  if (static_cast<uint64_t>(bytes) != size - at - length)
    throw Error(fmt::format("'{}': expected {} bytes of data for {}[{}], but got {}", name, bytes, nameOf(*header.type),
                            textOf(*header.extents), size - at - length));
  return {NpyArray{*header.type, *header.extents, {}}, at + length};
}

NpyArray parseNpy(std::string_view file, const std::string &name) {
  auto [array, at] = parseHeader(file, file.size(), name);
  array.data.assign(file.begin() + static_cast<std::ptrdiff_t>(at), file.end());
  return array;
}

/// Allocates the bytes. A sparse or large file may exceed the memory.
static std::vector<char> memoryFor(uint64_t bytes, const std::string &path) {
  const uint64_t memory = uint64_t(::sysconf(_SC_PHYS_PAGES)) * uint64_t(::sysconf(_SC_PAGESIZE));
  if (bytes > memory)
    throw Error(fmt::format("cannot read '{}': it has {} bytes, and the machine {} of memory", path, bytes, memory),
                Fault::device);
  try {
    return std::vector<char>(bytes);
  } catch (const std::bad_alloc &) {
    throw Error(fmt::format("cannot read '{}': there is no memory for its {} bytes", path, bytes), Fault::device);
  }
}

NpyArray readNpy(const std::string &path) {
  const InputFile file(path);
  std::string begin(static_cast<size_t>(std::min<int64_t>(file.size(), longestHeader + 12)), '\0');
  file.read(0, begin.data(), std::ssize(begin));
  auto [array, at] = parseHeader(begin, static_cast<uint64_t>(file.size()), path);
  array.data = memoryFor(static_cast<uint64_t>(file.size()) - at, path);
  file.read(static_cast<int64_t>(at), array.data.data(), std::ssize(array.data));
  return array;
}

std::string npyFile(const NpyArray &array) {
  const int64_t bytes = bytesOf(array.type, array.extents, "array");
  if (static_cast<uint64_t>(bytes) != array.data.size())
    throw Error(fmt::format("expected {} bytes of data for {}[{}], but got {}", bytes, nameOf(array.type),
                            textOf(array.extents), array.data.size()));
  std::string shape = fmt::format("{}", fmt::join(array.extents, ", "));
  if (array.extents.size() == 1)
    shape += ','; // makes it a tuple
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}", orderOf(array.type),
                                   infoOf(array.type).numPy, shape);
  const size_t before = magic.size() + 4; // version 1.0 has a length of two bytes
  while ((before + header.size() + 1) % headerAlignment != 0)
    header += ' ';
  header += '\n';
  std::string file(magic);
  file += {'\x01', '\x00', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  file += header;
  file.append(array.data.begin(), array.data.end());
  return file;
}

} // namespace kiln
