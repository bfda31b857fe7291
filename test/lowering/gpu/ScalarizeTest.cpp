// lowering/gpu/ScalarizeVectors.cpp on functions of LLVM IR: what is left of their vectors.

#include "lowering/gpu/GpuBackend.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

using namespace kiln::lowering;

/// The function after scalarisation, as text.
static std::string scalarized(const std::string &text) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic error;
  const std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, error, context);
  EXPECT_TRUE(module) << error.getMessage().str();
  gpu::scalarizeVectors(*module);
  std::string result;
  llvm::raw_string_ostream stream(result);
  EXPECT_FALSE(llvm::verifyModule(*module, &stream)) << result;
  for (const llvm::Function &function : *module)
    if (!function.isDeclaration())
      stream << function;
  return result;
}

/// An operation of elements keeps its flags. Insertions, shuffles and extractions leave nothing.
TEST(Scalarize, ComputesElements) {
  EXPECT_EQ(scalarized(R"(
define float @f(float %a, float %b, float %c) {
  %x0 = insertelement <2 x float> poison, float %a, i32 0
  %x = insertelement <2 x float> %x0, float %b, i32 1
  %y = shufflevector <2 x float> %x, <2 x float> <float 8.0, float 9.0>, <2 x i32> <i32 3, i32 0>
  %z = call nnan <2 x float> @llvm.maxnum.v2f32(<2 x float> %x, <2 x float> %y)
  %s = fmul contract <2 x float> %z, %x0
  %e = extractelement <2 x float> %s, i32 0
  ret float %e
}
declare <2 x float> @llvm.maxnum.v2f32(<2 x float>, <2 x float>)
)"),
            R"(define float @f(float %a, float %b, float %c) {
  %1 = call nnan float @llvm.maxnum.f32(float %a, float 9.000000e+00)
  %2 = call nnan float @llvm.maxnum.f32(float %b, float %a)
  %3 = fmul contract float %1, %a
  %4 = fmul contract float %2, poison
  ret float %3
}
)");
}

/// A loop carries elements, of which each iteration has others.
TEST(Scalarize, CarriesElements) {
  EXPECT_EQ(scalarized(R"(
define i32 @f(<2 x i32> %start, i1 %again) {
entry:
  br label %loop
loop:
  %x = phi <2 x i32> [ %start, %entry ], [ %y, %loop ]
  %y = shufflevector <2 x i32> %x, <2 x i32> poison, <2 x i32> <i32 1, i32 0>
  br i1 %again, label %loop, label %end
end:
  %e = extractelement <2 x i32> %x, i32 0
  ret i32 %e
}
)"),
            R"(define i32 @f(<2 x i32> %start, i1 %again) {
entry:
  %0 = extractelement <2 x i32> %start, i64 0
  %1 = extractelement <2 x i32> %start, i64 1
  br label %loop

loop:                                             ; preds = %loop, %entry
  %2 = phi i32 [ %0, %entry ], [ %3, %loop ]
  %3 = phi i32 [ %1, %entry ], [ %2, %loop ]
  br i1 %again, label %loop, label %end

end:                                              ; preds = %loop
  ret i32 %2
}
)");
}

// Elements of a phi keep its fast-math flags.
TEST(Scalarize, KeepsFlagsOfPhis) {
  const std::string text = scalarized(R"(
define float @f(<2 x float> %start, i1 %again) {
entry:
  br label %loop
loop:
  %x = phi nnan nsz <2 x float> [ %start, %entry ], [ %y, %loop ]
  %y = fadd <2 x float> %x, %x
  br i1 %again, label %loop, label %end
end:
  %e = extractelement <2 x float> %y, i32 1
  ret float %e
}
)");
  size_t count = 0;
  for (size_t at = text.find("phi nnan nsz float"); at != std::string::npos;
       at = text.find("phi nnan nsz float", at + 1))
    ++count;
  EXPECT_EQ(count, 2u) << text;
}

/// A number that is taken apart and put together again is not computed anew; parts of several are put together.
TEST(Scalarize, JoinsParts) {
  EXPECT_EQ(scalarized(R"(
define void @f(i32 %a, i32 %b, ptr %p) {
  %v0 = insertelement <2 x i32> poison, i32 %a, i32 0
  %v = insertelement <2 x i32> %v0, i32 %b, i32 1
  %h = bitcast <2 x i32> %v to <4 x half>
  %same = shufflevector <4 x half> %h, <4 x half> poison, <2 x i32> <i32 2, i32 3>
  %mixed = shufflevector <4 x half> %h, <4 x half> poison, <2 x i32> <i32 1, i32 2>
  %x = bitcast <2 x half> %same to i32
  %y = bitcast <2 x half> %mixed to float
  store i32 %x, ptr %p
  store float %y, ptr %p
  ret void
}
)"),
            R"(define void @f(i32 %a, i32 %b, ptr %p) {
  %1 = bitcast i32 %a to <2 x half>
  %2 = extractelement <2 x half> %1, i64 0
  %3 = extractelement <2 x half> %1, i64 1
  %4 = bitcast i32 %b to <2 x half>
  %5 = extractelement <2 x half> %4, i64 0
  %6 = extractelement <2 x half> %4, i64 1
  %7 = insertelement <2 x half> poison, half %3, i64 0
  %8 = insertelement <2 x half> %7, half %5, i64 1
  %9 = bitcast <2 x half> %8 to float
  store i32 %b, ptr %p, align 4
  store float %9, ptr %p, align 4
  ret void
}
)");
}

/// An operation that needs a whole vector gets one, and a variable index stays.
TEST(Scalarize, LeavesWholeVectors) {
  EXPECT_EQ(scalarized(R"(
define i32 @f(i32 %a, i32 %i, ptr %p) {
  %x0 = insertelement <2 x i32> zeroinitializer, i32 %a, i32 1
  %x = add <2 x i32> %x0, <i32 1, i32 2>
  store <2 x i32> %x, ptr %p
  %e = extractelement <2 x i32> %x, i32 %i
  ret i32 %e
}
)"),
            R"(define i32 @f(i32 %a, i32 %i, ptr %p) {
  %1 = add i32 0, 1
  %2 = add i32 %a, 2
  %3 = insertelement <2 x i32> poison, i32 %1, i64 0
  %4 = insertelement <2 x i32> %3, i32 %2, i64 1
  store <2 x i32> %4, ptr %p, align 8
  %e = extractelement <2 x i32> %4, i32 %i
  ret i32 %e
}
)");
}
