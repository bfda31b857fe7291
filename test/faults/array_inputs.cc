// Files of NumPy's arrays with damage.

#include "runtime/Npy.h"
#include "test/faults/inputs.h"
#include "test/temporary_folder.h"

#include <filesystem>

namespace fs = std::filesystem;

namespace kiln::faults {

namespace {

class ArrayInputs : public Inputs {
public:
  explicit ArrayInputs(const std::string &folder) : path(folder + "/array.npy") {
    for (const NpyArray &array :
         {NpyArray{f32, {3, 4}, std::vector<char>(48, 1)}, NpyArray{i64, {}, std::vector<char>(8, 2)},
          NpyArray{bf16, {2, 1, 5, 1}, std::vector<char>(20, 3)}, NpyArray{boolean, {0, 7}, {}},
          NpyArray{f64, {130}, std::vector<char>(1040, 4)}})
      files.push_back(npyFile(array));
    // Versions 2 and 3 have four bytes of length; the header's end moves by two.
    for (const char version : {'\x02', '\x03'}) {
      std::string file = files[0];
      file[6] = version;
      file.insert(10, 2, '\0');
      files.push_back(file);
    }
  }

  std::string run(Chance &chance) override {
    const std::string bytes = damaged(chance.oneOf(files), files, chance);
    show(bytes);
    const std::string complaint = complaintOf([&] { check(parseNpy(bytes, "array.npy")); });
    if (!complaint.empty() || chance.below(4) != 0)
      return complaint;
    writeText(path, bytes);
    if (chance.below(8) != 0)
      return complaintOf([&] { check(readNpy(path)); });
    fs::resize_file(path, uintmax_t{1} << (20 + chance.below(24))); // long, and hardly anything on the disk
    return complaintOf([&] { check(readNpy(path)); });
  }

private:
  /// An accepted array has the stated number of bytes, and is unchanged after writing and reading it again.
  static void check(const NpyArray &array) {
    int64_t bytes = bytesOf(array.type);
    for (const int64_t extent : array.extents)
      bytes *= extent;
    if (bytes != static_cast<int64_t>(array.data.size()))
      throw std::runtime_error("an array without all of its bytes was taken");
    const NpyArray again = parseNpy(npyFile(array), "again.npy");
    if (again.type != array.type || again.extents != array.extents || again.data != array.data)
      throw std::runtime_error("an array is another one when it is written and read again");
  }

  const std::string path;
  std::vector<std::string> files;
};

} // namespace

std::unique_ptr<Inputs> arrayInputs(const std::string &folder) { return std::make_unique<ArrayInputs>(folder); }

} // namespace kiln::faults
