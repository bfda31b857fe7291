// Matrix products with what comes after them fused into the same launch.
//
//     layout nn:  C = A · B      A (M, K), B (K, N)     y = x · W         W stored (in, out)
//     layout nt:  C = A · Bᵀ     A (M, K), B (N, K)     dx = dy · Wᵀ
//     layout tn:  C = Aᵀ · B     A (K, M), B (K, N)     dW = xᵀ · dy
//
// C is (M, N). A and B have one type, f32, bf16 or f16; products are summed in f32. `planMatmul` also takes i8, of
// which C gets the sums in i32, exact where they fit. Matrices may have any row stride. A program computes one (BM, BN)
// tile of C and walks K in steps of BK. Each element's sum has an order that depends on BK, the split and the steps
// side by side alone, never on the number of threads.
//
// Up to 8 rows of A, those of texts that grow, leave nothing to do but to read B once. Exact products of f32 of so few
// are not tiles on a GPU, whose other rows would be multiplied in vain: a thread multiplies 16 bytes of B at a time by
// one number of each row, and programs are small enough that all SMs have some, each of which asks for all of a step
// before it takes any. On a CPU up to four rows are multiplied by rows of a turned B, and of another B take each row
// times a number, which is added to sums as long as it.

#pragma once

#include "kernels/activation.h"
#include "kernels/chances.h"

namespace kiln {

enum class Layout { nn, nt, tn };

/// Tile sizes and variants of every product kernel.
struct MatmulConfig {
  int bm = 64, bn = 64, bk = 64;
  int side = 0; // steps of K that a few rows of A are multiplied by side by side, divides bk; 0: by products of tiles
  int64_t split = 0;                     // tn only: rows of A and B a program sums; 0: all
  bool ta = false, tb = false;           // A, B are stored transposed; set by the plan
  bool accumulate = false;               // C += …; set by the plan
  bool keep = false;                     // matmul_gelu stores the pre-activation; weight_gradient the column sums
  Precision precision = Precision::ieee; // of products of f32
  int warps = 4;                         // of a program, on a GPU
  int stages = 0;                        // steps whose operands a GPU holds in shared memory; 0: up to 3, as fit
  // What follows the product in matmul_linear and its backward kernel; set by their plans.
  bool biased = false, residual = false;
  Activation activation = Activation::none;
  Drop drop = Drop::no;
};

extern const Kernel matmulKernel, matmulBiasKernel, matmulGeluKernel, matmulResidualKernel, matmulGeluBackwardKernel,
    matmulLinearKernel, matmulLinearBackwardKernel, weightGradientKernel;

/// What follows a product, by the registers that it takes beside the sums, the fewest first.
enum class Epilogue {
  light,      // they are stored; a bias, too
  added,      // a matrix of two-byte numbers is added
  activated,  // a fast function is applied, and what it was applied to may be kept
  accumulate, // they are added to what is there
  heavy,      // an accurate function is applied, or a matrix of f32 is added
  chances     // dropout draws numbers
};

/// Tile sizes and precision for C (M, N) with sums of length K of products of `type`, from shape, layout and the
/// target's fixed properties.
MatmulConfig pickMatmul(const Target &target, Layout layout, int64_t M, int64_t N, int64_t K, Type type = Type::f32,
                        Epilogue epilogue = Epilogue::light);

/// C = op(A) · op(B), or C += … with `accumulate`.
Plan planMatmul(const Target &target, Layout layout, const TensorRef &a, const TensorRef &b, const TensorRef &c,
                bool accumulate = false, const std::optional<MatmulConfig> &config = {});

/// C = op(A) · op(B) + bias. bias (N).
Plan planMatmulBias(const Target &target, Layout layout, const TensorRef &a, const TensorRef &b, const TensorRef &bias,
                    const TensorRef &c, const std::optional<MatmulConfig> &config = {});

/// C = gelu(op(A) · op(B) + bias). `preact` (M, N), when given, receives what gelu was applied to: the sum, rounded to
/// C's type.
Plan planMatmulGelu(const Target &target, Layout layout, const TensorRef &a, const TensorRef &b, const TensorRef &bias,
                    const std::optional<TensorRef> &preact, const TensorRef &c,
                    const std::optional<MatmulConfig> &config = {});

/// C = op(A) · op(B) + bias + residual. residual (M, N); `c` may be `residual`.
Plan planMatmulResidual(const Target &target, Layout layout, const TensorRef &a, const TensorRef &b,
                        const TensorRef &bias, const TensorRef &residual, const TensorRef &c,
                        const std::optional<MatmulConfig> &config = {});

/// C = (op(A) · op(B)) ∘ gelu'(preact): the gradient of a product carried back through the GELU before it.
/// preact (M, N); `c` may be `preact`.
Plan planMatmulGeluBackward(const Target &target, Layout layout, const TensorRef &a, const TensorRef &b,
                            const TensorRef &preact, const TensorRef &c,
                            const std::optional<MatmulConfig> &config = {});

/// What may follow a product: residual + drop(activation(op(A) · op(B) + bias)). An activation whose derivative needs
/// its argument is applied to the sum rounded to C's type, so that activate.h makes the same of `preact`.
struct LinearEpilogue {
  std::optional<TensorRef> bias = {}; // (N)
  Activation activation = Activation::none;
  std::optional<TensorRef> preact = {};   // (M, N), receives what the activation was applied to
  std::optional<Dropout> dropout = {};    // of the rows and columns of C
  std::optional<TensorRef> residual = {}; // (M, N); C may be it
};

/// C = residual + drop(activation(op(A) · op(B) + bias)), by the kernels above where they do.
Plan planLinear(const Target &target, Layout layout, const TensorRef &a, const TensorRef &b, const TensorRef &c,
                const LinearEpilogue &epilogue = {}, const std::optional<MatmulConfig> &config = {});

/// What a gradient is carried back through: drop(activation(·)).
struct LinearSlope {
  Activation activation = Activation::none;
  /// (M, N): what the activation was applied to, or its result after dropout where isKnownByResult().
  std::optional<TensorRef> from = {};
  std::optional<Dropout> dropout = {};
};

/// C = (op(A) · op(B)) ∘ activation' ∘ mask · scale: the gradient of a product carried back through what comes before
/// it. `c` may be `from`.
Plan planLinearBackward(const Target &target, Layout layout, const TensorRef &a, const TensorRef &b, const TensorRef &c,
                        const LinearSlope &slope = {}, const std::optional<MatmulConfig> &config = {});

/// The gradient of a weight: dw = xᵀ · dy, and db = Σ_k dy[k].
struct WeightGradient {
  TensorRef x, dy, dw;              // (K, M), (K, N), (M, N)
  std::optional<TensorRef> db = {}; // (N)
};

/// The gradients of several weights, `+=` with `accumulate`, of which none is an operand of another. On a CPU a launch
/// for each; on a GPU one for all of the same K and types, whose tiles fill it better than each weight's would. Where
/// tiles are few and K is long, K is split among programs that leave partial sums (workspace: splits · (M + 1) · N f32
/// for each weight), and further launches add these in order.
Plan planWeightGradients(const Target &target, const std::vector<WeightGradient> &all, bool accumulate = false,
                         const std::optional<MatmulConfig> &config = {});
/// The same of one weight.
Plan planWeightGradient(const Target &target, const TensorRef &x, const TensorRef &dy, const TensorRef &dw,
                        const std::optional<TensorRef> &db, bool accumulate = false,
                        const std::optional<MatmulConfig> &config = {});

} // namespace kiln
