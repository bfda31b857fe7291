// Declarations of the passes in Passes.td, and types of their options that accept only some numbers. Other values are
// an error when the option is parsed, before any pass runs:
//
//     kiln-opt: for the --registers option: expected 16 or 32, but got '0'
//
// Elsewhere such an option behaves as its number.

#pragma once

#include "dialect/simt/SimtDialect.h"
#include "lowering/cpu/CpuDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <string>

namespace kiln::lowering {

/// One of a few numbers.
template <int64_t... values> struct OneOf {
  OneOf(int64_t value = 0) : value(value) {}
  operator int64_t() const { return value; }
  static bool allows(int64_t value) { return ((value == values) || ...); }
  static std::string allowed() {
    std::string text;
    ((text += (text.empty() ? "" : " or ") + std::to_string(values)), ...);
    return text;
  }
  int64_t value;
};

/// A number from 1 to `most`.
template <int64_t most> struct UpTo {
  UpTo(int64_t value = 1) : value(value) {}
  operator int64_t() const { return value; }
  static bool allows(int64_t value) { return value >= 1 && value <= most; }
  static std::string allowed() { return "a number from 1 to " + std::to_string(most); }
  int64_t value;
};

template <int64_t... values> llvm::raw_ostream &operator<<(llvm::raw_ostream &out, const OneOf<values...> &number) {
  return out << number.value;
}
template <int64_t most> llvm::raw_ostream &operator<<(llvm::raw_ostream &out, const UpTo<most> &number) {
  return out << number.value;
}

/// Parses one of the types above for llvm::cl.
template <class Number> class NumberParser : public llvm::cl::basic_parser<Number> {
public:
  using llvm::cl::basic_parser<Number>::basic_parser;

  /// Returns true on error, as llvm::cl requires.
  bool parse(llvm::cl::Option &option, llvm::StringRef name, llvm::StringRef text, Number &number) {
    int64_t value = 0;
    if (text.getAsInteger(10, value) || !Number::allows(value))
      return option.error("expected " + Number::allowed() + ", but got '" + text + "'", name);
    number = value;
    return false;
  }
  llvm::StringRef getValueName() const override { return "number"; }
  void printOptionDiff(const llvm::cl::Option &option, Number, const llvm::cl::OptionValue<Number> &,
                       size_t width) const {
    this->printOptionNoValue(option, width);
  }
};

} // namespace kiln::lowering

namespace llvm::cl {
template <int64_t... values>
class parser<kiln::lowering::OneOf<values...>> : public kiln::lowering::NumberParser<kiln::lowering::OneOf<values...>> {
public:
  using kiln::lowering::NumberParser<kiln::lowering::OneOf<values...>>::NumberParser;
};
template <int64_t most>
class parser<kiln::lowering::UpTo<most>> : public kiln::lowering::NumberParser<kiln::lowering::UpTo<most>> {
public:
  using kiln::lowering::NumberParser<kiln::lowering::UpTo<most>>::NumberParser;
};
} // namespace llvm::cl

namespace kiln::lowering {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lowering/Passes.h.inc"
} // namespace kiln::lowering

namespace kiln::lowering::cpu {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lowering/cpu/Passes.h.inc"
} // namespace kiln::lowering::cpu

namespace kiln::lowering::gpu {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lowering/gpu/Passes.h.inc"
} // namespace kiln::lowering::gpu

namespace kiln::lowering::generic {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lowering/generic/Passes.h.inc"
} // namespace kiln::lowering::generic
