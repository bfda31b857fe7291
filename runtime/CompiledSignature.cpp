// Derives a signature from the types of the traced function.

#include "runtime/CompiledSignature.h"

#include "lowering/Backend.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <fmt/format.h>

namespace kiln {

static Shape slotsOf(llvm::ArrayRef<int64_t> values) {
  Shape result;
  for (int64_t value : values)
    result.push_back(mlir::ShapedType::isDynamic(value) ? Signature::dynamic : value);
  return result;
}

Signature signatureOf(const Kernel &kernel, const Specialisation &facts, const Traced &traced) {
  mlir::ModuleOp module = *traced.module;
  auto function = module.lookupSymbol<mlir::func::FuncOp>(kernel.name);
  if (!function || function.getNumArguments() != facts.args.size())
    throw Error(fmt::format("kernel '{}': its module lacks the function", kernel.name), Fault::internal);
  Signature signature{.where = fmt::format("{}:{}", kernel.loc.file, kernel.loc.line)};
  for (size_t i = 0; i < facts.args.size(); ++i) {
    const ArgFacts &fact = facts.args[i];
    Signature::Parameter parameter{.name = kernel.parameters[i].name, .isView = fact.isView, .type = fact.type};
    if (auto view = mlir::dyn_cast<mlir::MemRefType>(function.getArgument(i).getType())) {
      llvm::SmallVector<int64_t> strides;
      int64_t offset = 0;
      if (mlir::failed(view.getStridesAndOffset(strides, offset)))
        throw Error(fmt::format("kernel '{}': {} has no strides", kernel.name, kernel.called(i)), Fault::internal);
      parameter = {parameter.name,
                   fact.isView,
                   fact.type,
                   slotsOf(view.getShape()),
                   slotsOf(strides),
                   fact.alignment,
                   fact.stridesBy16,
                   fact.extentBy16,
                   fact.fits32,
                   traced.read.count(static_cast<int>(i)) > 0,
                   traced.written.count(static_cast<int>(i)) > 0};
    }
    signature.parameters.push_back(std::move(parameter));
  }
  signature.slots = lowering::slotsOf(function.getArgumentTypes());
  for (const std::pair<int, int> &pair : facts.disjoint)
    if (traced.written.count(pair.first) || traced.written.count(pair.second))
      signature.disjoint.push_back(pair);
  for (const Kernel::NamedExtent &extents : traced.equalExtents)
    for (const auto &[second, secondAxis] : llvm::drop_begin(extents))
      signature.equalExtents.push_back({extents.front().first, extents.front().second, second, secondAxis});
  signature.problems = facts.problems;
  return signature;
}

} // namespace kiln
