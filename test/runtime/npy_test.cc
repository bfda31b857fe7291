// Files of NumPy's: read and written byte for byte, and refused where anything in them is not as it should be.

#include "runtime/Npy.h"
#include "test/expect_error.h"
#include "test/temporary_folder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

using namespace kiln;

namespace {

/// A file of version 1.0 with this dictionary, as long as it is, and this data.
std::string fileOf(const std::string &dictionary, const std::string &data = "") {
  std::string file("\x93NUMPY\x01\x00", 8);
  file += {static_cast<char>(dictionary.size() & 0xff), static_cast<char>(dictionary.size() >> 8)};
  return file + dictionary + data;
}

std::string headerOf(const std::string &descr, const std::string &shape, const std::string &order = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

// The bytes that np.save(f, np.array([[1, 2, 3], [4, 5, 6]], np.float32)) wrote.
TEST(Npy, IsWhatNumPyWrites) {
  std::string file("\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 69);
  file += std::string(58, ' ') + '\n';
  ASSERT_EQ(file.size(), 128u);
  const float values[] = {1, 2, 3, 4, 5, 6};
  file.append(reinterpret_cast<const char *>(values), sizeof values);
  const NpyArray array = parseNpy(file, "a.npy");
  EXPECT_EQ(array.type, f32);
  EXPECT_EQ(array.extents, (Shape{2, 3}));
  ASSERT_EQ(array.data.size(), sizeof values);
  EXPECT_EQ(std::memcmp(array.data.data(), values, sizeof values), 0);
  EXPECT_EQ(npyFile(array), file);
}

// Every type and rank is read back unchanged; the header fills a multiple of 64 bytes.
TEST(Npy, ReturnsWhatItWrote) {
  for (const Type type : everyType)
    for (const Shape &extents : {Shape{}, Shape{0}, Shape{5}, Shape{2, 3}, Shape{3, 0, 2}, Shape{1, 2, 1, 2, 3, 1}}) {
      NpyArray array{type, extents, {}};
      int64_t bytes = bytesOf(type);
      for (const int64_t extent : extents)
        bytes *= extent;
      for (int64_t i = 0; i < bytes; ++i)
        array.data.push_back(static_cast<char>(i * 37));
      const std::string file = npyFile(array);
      EXPECT_EQ((file.size() - array.data.size()) % 64, 0u);
      const NpyArray again = parseNpy(file, "a.npy");
      EXPECT_EQ(again.type, type);
      EXPECT_EQ(again.extents, extents);
      EXPECT_EQ(again.data, array.data);
    }
}

// A shape of one extent has the comma that makes it a tuple.
TEST(Npy, SpellsShapesAsPythonDoes) {
  EXPECT_NE(npyFile({i8, {5}, std::vector<char>(5)}).find("'descr': '|i1', 'fortran_order': False, 'shape': (5,), }"),
            std::string::npos);
  EXPECT_NE(npyFile({i64, {}, std::vector<char>(8)}).find("'shape': (), }"), std::string::npos);
  EXPECT_NE(npyFile({bf16, {1, 2}, std::vector<char>(4)}).find("'descr': '|V2'"), std::string::npos);
}

// Later versions have a longer length. Keys may have any order and either kind of quotes. ml_dtypes writes '<V2'.
TEST(Npy, ReadsEverySpellingOfTheHeader) {
  const std::string dictionary = "{\"shape\":(1,),'fortran_order':False , 'descr':'<V2'}";
  for (const char version : {2, 3}) {
    std::string file("\x93NUMPY", 6);
    file += {version, 0, static_cast<char>(dictionary.size()), 0, 0, 0};
    EXPECT_EQ(parseNpy(file + dictionary + "ab", "a.npy").type, bf16);
  }
}

// ml_dtypes declares one of the 8-bit floats as raw bytes and the other as a float that NumPy does not have.
TEST(Npy, ReadsWhatMlDtypesWrites) {
  EXPECT_EQ(parseNpy(fileOf(headerOf("<V1", "(2,)"), "ab"), "a.npy").type, f8e4m3);
  EXPECT_EQ(parseNpy(fileOf(headerOf("<f1", "(2,)"), "ab"), "a.npy").type, f8e5m2);
  EXPECT_EQ(parseNpy(fileOf(headerOf("<V2", "(1,)"), "ab"), "a.npy").type, bf16);
}

// An error about a file has the file's name.
TEST(Npy, RefusesWhatIsNotAsItShouldBe) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "expected a .npy file, but it does not begin as one"},
      {"PK\x03\x04 an archive", "expected a .npy file, but it does not begin as one"},
      {std::string("\x93NUMPY\x01\x00\x10", 9), "but it ends within the header"},
      {std::string("\x93NUMPY\x04\x00\x10\x00", 10), "expected version 1, 2 or 3 of .npy, but got 4.0"},
      {std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff{", 13), "expected a header of at most 65536 bytes"},
      {fileOf(headerOf(">f4", "(1,)"), "abcd"), "expected elements of a type |b1 (boolean)"},
      {fileOf(headerOf("<c8", "(1,)"), "ab"), "but got '<c8'"},
      {fileOf(headerOf("|f4", "(1,)"), "abcd"), "but got '|f4'"},
      {fileOf("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,), }", "abcd"),
       "expected elements of one type, without fields"},
      {fileOf(headerOf("<f4", "(2, 2)", "True"), std::string(16, 'x')), "expected an array in row-major order"},
      {fileOf(headerOf("<f4", "(2, 2)", "Maybe")), "expected True or False for 'fortran_order'"},
      {fileOf(headerOf("<f4", "(2, -2)")), "expected extents from 0 to 2^63 - 1 in 'shape', but got '-2)"},
      {fileOf(headerOf("<f4", "(99999999999999999999,)")), "expected extents from 0 to 2^63 - 1 in 'shape'"},
      {fileOf(headerOf("<f4", "(4611686018427387904, 4)")), "expected an array of less than 2^63 bytes"},
      {fileOf(headerOf("<f4", "(2 2)")), "expected ')' in the header, but got '2)"},
      {fileOf(headerOf("<f4", "(2,)"), "abcdefg"), "expected 8 bytes of data for f32[2], but got 7"},
      {fileOf(headerOf("<f4", "(2,)"), "abcdefghi"), "expected 8 bytes of data for f32[2], but got 9"},
      {fileOf("{'descr': '<f4', 'shape': (1,), }", "abcd"), "and 'shape' in the header, but got fewer"},
      {fileOf("{'descr': '<f4', 'descr': '<f4', 'shape': (1,), }"), "each once, in the header, but got 'descr'"},
      {fileOf("{'descr': '<f4', 'order': False}"), "each once, in the header, but got 'order'"},
      {fileOf(headerOf("<f4", "(1,)") + "import os", "abcd"), "nothing after the header's dictionary"},
      {fileOf("{'descr': '<f4"), "expected a string in the header"},
      {fileOf(""), "expected '{' in the header, but got its end"},
  };
  for (const auto &[file, said] : cases)
    expectError([&, &file = file] { parseNpy(file, "a.npy"); }, {"'a.npy': expected ", said});
  std::string many = "(";
  for (int i = 0; i < 65; ++i)
    many += "1, ";
  expectError([&] { parseNpy(fileOf(headerOf("|i1", many + ")"), "x"), "a.npy"); }, {"at most 64 dimensions"});
}

// A truncated file is an error. A changed byte gives an error, or an array of the file's length.
TEST(Npy, SurvivesEveryCutAndEveryChangedByte) {
  const std::string file = npyFile({f32, {2, 3}, std::vector<char>(24, 'x')});
  for (size_t length = 0; length < file.size(); ++length)
    EXPECT_THROW(parseNpy(std::string_view(file).substr(0, length), "a.npy"), Error) << length;
  for (size_t at = 0; at < file.size(); ++at)
    for (int byte = 0; byte < 256; ++byte) {
      std::string changed = file;
      changed[at] = static_cast<char>(byte);
      try {
        const NpyArray array = parseNpy(changed, "a.npy");
        EXPECT_LE(array.data.size(), changed.size()) << at << " " << byte;
      } catch (const Error &) {
      }
    }
}

TEST(Npy, RefusesAnArrayThatIsNotAsLongAsItSays) {
  EXPECT_EQ(errorOf([] { npyFile({f32, {3}, std::vector<char>(8)}); }),
            "expected 12 bytes of data for f32[3], but got 8");
}

// The header is checked before the rest of the file is read. A file of 2^40 bytes with a bad header is refused at once;
// reading it would take minutes, and more memory than the machine has.
TEST(NpyFiles, AreReadWhenTheirHeadersAreGood) {
  const TemporaryFolder folder;
  const std::string text = folder / "text.npy", other = folder / "other.npy";
  std::ofstream(text) << "x";
  ASSERT_EQ(::truncate(text.c_str(), int64_t(1) << 40), 0);
  expectError([&] { readNpy(text); }, {"expected a .npy file, but it does not begin as one"});
  const std::string start = fileOf(headerOf("<f4", "(3,)"));
  std::ofstream(other, std::ios::binary) << start;
  ASSERT_EQ(::truncate(other.c_str(), static_cast<int64_t>(start.size()) + (int64_t(1) << 40)), 0);
  expectError([&] { readNpy(other); }, {"expected 12 bytes of data for f32[3], but got 1099511627776"});
}

// A file is no longer than memory: nothing is allocated that cannot be.
TEST(NpyFiles, FitMemory) {
  const TemporaryFolder folder;
  const std::string sparse = folder / "sparse.npy", fine = folder / "a.npy";
  const std::string start = fileOf(headerOf("|i1", "(4398046511104,)"));
  std::ofstream(sparse, std::ios::binary) << start;
  ASSERT_EQ(::truncate(sparse.c_str(), static_cast<int64_t>(start.size()) + (int64_t(1) << 42)), 0);
  expectError([&] { readNpy(sparse); }, {"cannot read '" + sparse + "': it has 4398046511104 bytes, and the machine"});
  std::ofstream(fine, std::ios::binary) << npyFile({i8, {3}, {'a', 'b', 'c'}});
  EXPECT_EQ(readNpy(fine).data, (std::vector<char>{'a', 'b', 'c'}));
}

} // namespace
