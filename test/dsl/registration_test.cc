// Registration: the recorded arguments and fields of a kernel, and the names that are refused.

#include "dialect/dsl/Nearest.h"
#include "dialect/dsl/Registrations.h"
#include "test/dsl/Tracing.h"
#include "test/expect_error.h"

#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

struct Config {
  int bm = 128;
  double scale = 0.5;
};
void scaled(View, Tile, View, Config) {}
void plain(View, View) {}
void variadic(View, std::optional<View>, Tile, std::vector<View>, Config) {}
const Kernel scaledKernel = kernel("scaled", scaled, {"x (M, N)", "factor", "out (M, N), x · factor"},
                                   {field("bm", &Config::bm, "rows of a tile"), field("scale", &Config::scale)});

/// A text's name ends at its first space; the rest describes the argument.
TEST(Registration, ArgumentsHaveNamesAndWhatTheyAre) {
  ASSERT_EQ(scaledKernel.parameters.size(), 3u);
  EXPECT_EQ(scaledKernel.parameters[0].name, "x");
  EXPECT_EQ(scaledKernel.parameters[0].about, "(M, N)");
  EXPECT_TRUE(scaledKernel.parameters[0].isView());
  EXPECT_EQ(scaledKernel.parameters[1].name, "factor");
  EXPECT_EQ(scaledKernel.parameters[1].about, "");
  EXPECT_FALSE(scaledKernel.parameters[1].isView());
  EXPECT_EQ(scaledKernel.parameters[2].about, "(M, N), x · factor");
}

/// A form has a parameter for each view, and an identity of its own; the kernel keeps it for all of its copies.
TEST(Registration, FormsHaveAParameterForEachView) {
  const Kernel k = kernel("variadic", variadic, {"x (N)", "bias (M)", "n", "xs (N, K) of each"},
                          {field("bm", &Config::bm), field("scale", &Config::scale)}),
               copy = k;
  using Kind = Kernel::Parameter::Kind;
  EXPECT_TRUE(k.isVariadic());
  EXPECT_FALSE(scaledKernel.isVariadic());
  EXPECT_EQ(k.parameters[1].kind, Kind::optional);
  EXPECT_EQ(k.parameters[3].kind, Kind::list);
  const Kernel &form = expanded(k, {1, 2}), &less = expanded(k, {0, 0});
  EXPECT_FALSE(form.isVariadic());
  std::string names;
  for (const Kernel::Parameter &parameter : form.parameters)
    names += parameter.name + (parameter.kind == Kind::view ? ", " : " scalar, ");
  EXPECT_EQ(names, "x, bias, n scalar, xs[0], xs[1], ");
  EXPECT_EQ(form.parameters[4].about, "(N, K) of each");
  EXPECT_EQ(less.parameters.size(), 2u);
  EXPECT_EQ(form.configText("bm=4"), "bm=4,scale=0.5");
  EXPECT_NE(form.identity, k.identity);
  EXPECT_NE(form.identity, less.identity);
  EXPECT_EQ(form.identity, expanded(copy, {1, 2}).identity);
  EXPECT_EQ(programOf(k, {view(f32, {4}), scalar(i64)}),
            "kernel 'variadic': expected a form of it for certain numbers of views, which expanded() makes");
}

/// Messages quote a name, or a number if there is no name.
TEST(Registration, MessagesCallArgumentsByName) {
  EXPECT_EQ(scaledKernel.called(1), "'factor'");
  EXPECT_EQ(kernel("plain", plain).called(1), "argument 1");
}

TEST(Registration, FieldsKnowTheirDefaults) {
  EXPECT_EQ(scaledKernel.fields[0].about, "rows of a tile");
  EXPECT_EQ(scaledKernel.fields[0].byDefault, "128");
  EXPECT_EQ(scaledKernel.fields[1].byDefault, "0.5");
}

/// The error of a registration, without its source line.
template <class Call> std::string catchMistake(Call call, int line = __builtin_LINE()) {
  const std::string text = errorOf(call), place = __FILE__ ":" + std::to_string(line) + ": error: ";
  EXPECT_EQ(text.substr(0, place.size()), place);
  return text.substr(std::min(text.size(), place.size()));
}

/// Names become symbols, keys, flags and file names.
TEST(Registration, NamesAreIdentifiers) {
  EXPECT_EQ(catchMistake([] { kernel("a/b", plain); }),
            "expected a kernel's name of letters, digits and '_', but got 'a/b'");
  EXPECT_EQ(catchMistake([] { kernel("", plain); }), "expected a kernel's name of letters, digits and '_', but got ''");
  EXPECT_EQ(catchMistake([] { kernel("2d", plain); }),
            "expected a kernel's name of letters, digits and '_', but got '2d'");
  EXPECT_EQ(catchMistake([] { kernel("k", plain, {"x: in", "y"}); }),
            "expected names of letters, digits and '_' for the arguments of kernel 'k', but got 'x:'");
  EXPECT_EQ(catchMistake([] { kernel("k", plain, {"x", ""}); }),
            "expected names of letters, digits and '_' for the arguments of kernel 'k', but got ''");
  EXPECT_EQ(catchMistake([] { kernel("k", scaled, {field("b m", &Config::bm)}); }),
            "expected names of letters, digits and '_' for the config fields of kernel 'k', but got 'b m'");
}

TEST(Registration, NamesAreDifferent) {
  EXPECT_EQ(catchMistake([] { kernel("k", plain, {"x", "x (N)"}); }),
            "expected different names for the arguments of kernel 'k', but two are called 'x'");
  EXPECT_EQ(catchMistake([] { kernel("k", scaled, {field("bm", &Config::bm), field("bm", &Config::scale)}); }),
            "expected different names for the config fields of kernel 'k', but two are called 'bm'");
}

// Triton's names of fields that the compiler reads would have no effect.
TEST(Registration, FieldsOfTheCompilerHaveItsNames) {
  EXPECT_EQ(catchMistake([] { kernel("k", scaled, {field("num_warps", &Config::bm)}); }),
            "expected the field 'warps' of kernel 'k', a name that the compiler knows, but got 'num_warps'");
}

/// A field of another struct would read and write memory that is not its own.
TEST(Registration, FieldsAreOfTheKernelsConfig) {
  struct Other {
    int rows = 1;
  };
  EXPECT_EQ(catchMistake([] { kernel("k", scaled, {field("rows", &Other::rows)}); }),
            "expected the fields of kernel 'k' to be of the config struct that it takes, but 'rows' is not");
  EXPECT_EQ(catchMistake([] { kernel("k", plain, {field("rows", &Other::rows)}); }),
            "expected the fields of kernel 'k' to be of the config struct that it takes, but 'rows' is not");
}

/// The string that a kernel's name was registered from may be destroyed before the kernel is used.
TEST(Registration, KeepsItsName) {
  std::string name = "temporary";
  const Kernel k = kernel(name.c_str(), plain);
  name.assign("overwritten");
  EXPECT_EQ(errorOf([&] { k.configText("bm=1"); }),
            "kernel 'temporary' has no config field 'bm', because it has no config fields");
}

/// Copies are reported in the order of registration, with the same identity, and only while a listener is installed.
TEST(Registration, ReachesTheYoungestListener) {
  Registrations outer;
  const Kernel first = kernel("first", plain);
  {
    Registrations inner;
    const Kernel second[] = {kernel("second", plain), kernel("third", plain)};
    ASSERT_EQ(inner.kernels.size(), 2u);
    EXPECT_EQ(inner.kernels[1].name, "third");
    EXPECT_EQ(inner.kernels[1].identity, second[1].identity);
  }
  EXPECT_ANY_THROW(kernel("a b", plain));
  ASSERT_EQ(outer.kernels.size(), 1u);
  EXPECT_EQ(outer.kernels[0].identity, first.identity);
}

// --- Suggestions for misspelt words ----------------------------------------------------------------------------------

const std::vector<std::string> flags = {"--data", "--out", "--batch", "--steps", "--evaluate-every", "--bm"};

/// An additional letter, a missing one, a wrong one, and two swapped letters are one mistake each.
TEST(Nearest, OneSlipLeadsToTheWord) {
  for (const char *word : {"--stepss", "--stps", "--stepz", "--setps"})
    EXPECT_EQ(nearest(word, flags), "--steps") << word;
  EXPECT_EQ(nearest("trian", {"sample", "train"}), "train");
}

/// A long word may have several mistakes, a short one has one.
TEST(Nearest, LongerWordsMayHaveMoreSlips) {
  EXPECT_EQ(nearest("--evalute-evry", flags), "--evaluate-every");
  EXPECT_EQ(nearest("--bn", flags), "--bm");
  EXPECT_EQ(nearest("--stpz", flags), std::nullopt);
}

/// A word that is far from every candidate has no suggestion, even if one candidate is nearer than the others.
TEST(Nearest, FarWordsLeadNowhere) {
  for (const char *word : {"--batch-size", "--learning-rate", "--dropout", "--cat", "-x", "-", ""})
    EXPECT_EQ(nearest(word, flags), std::nullopt) << word;
}

/// Of several candidates the one with the fewest mistakes is chosen, and of equal ones the first.
TEST(Nearest, TheNearestWins) {
  EXPECT_EQ(nearest("layer", {"layers", "player"}), "layers");
  EXPECT_EQ(nearest("layers", {"layout", "layers"}), "layers");
}

/// The name of another library for the same thing, and a name's beginning or end, are nearer than a slip.
TEST(Nearest, SynonymsAndPartsLeadToTheWord) {
  EXPECT_EQ(nearest("float16", {"bf16", "f16"}), "f16");
  EXPECT_EQ(nearest("float16", {"fp32", "bf16", "fp16"}), "fp16");
  EXPECT_EQ(nearest("cuda", {"cpu", "cuda:0"}), "cuda:0");
  EXPECT_EQ(nearest("sm_90", {"sm_80", "sm_90a"}), "sm_90a");
  EXPECT_EQ(nearest("ad", {"adamw", "add"}), "add");
  EXPECT_EQ(nearest("sm_90", {"simulator:sm_80", "simulator:sm_90a"}), "simulator:sm_90a");
}

/// Messages end with the guess, or with nothing.
TEST(Nearest, MessagesEndWithTheGuess) {
  EXPECT_EQ(didYouMean("--stepz", flags), "; did you mean '--steps'?");
  EXPECT_EQ(didYouMean("--dropout", flags), "");
}

/// A message about an unknown name begins with the name, so that a long list does not hide it.
TEST(Nearest, UnknownNamesStandInFrontOfTheKnownOnes) {
  EXPECT_EQ(unknownName("device", "cpuu", {"cpu", "cuda:0"}),
            "unknown device 'cpuu'; did you mean 'cpu'? (known: cpu, cuda:0)");
  EXPECT_EQ(unknownName("device", "tpu:0", {"cpu", "cuda:0"}), "unknown device 'tpu:0' (known: cpu, cuda:0)");
  EXPECT_EQ(unknownName("kernel", "add", {}), "unknown kernel 'add'; there is none");
}

} // namespace
} // namespace kiln::testing
