// Matrix products (GEMM) with fused epilogues.
//
//     layout nn:  C = A · B      A (M, K), B (K, N)     y = x · W         W stored (in, out)
//     layout nt:  C = A · Bᵀ     A (M, K), B (N, K)     dx = dy · Wᵀ
//     layout tn:  C = Aᵀ · B     A (K, M), B (K, N)     dW = xᵀ · dy
//
// C is (M, N). A and B have one type, f32, bf16 or f16; sums are f32. `planMatmul` also takes i8 with C in i32, which
// is exact unless it overflows. Matrices may have any row stride. A program computes one (BM, BN) tile of C and loops
// over K in steps of BK. The order of each element's sum depends only on BK, the split and `kUnroll`, never on the
// number of threads.
//
// Skinny GEMM (GEMV): with up to 8 rows of A, as in decoding, the time is that of reading B once. For exact f32, a GPU
// then uses no tensor tiles, because most of their rows would be padding. A thread multiplies 16 bytes of B at a time
// by one element of each row. Programs are small, so that enough SMs have one. Each program issues all loads of an
// iteration before it uses any. A CPU does this for up to four rows. If B is transposed, it computes dot products with
// rows of B. Otherwise it multiplies each row of B by an element of A and adds it to a row of accumulators.

#pragma once

#include "kernels/activation.h"
#include "kernels/dropout_rng.h"

namespace kiln {

enum class Layout { nn, nt, tn };

/// Tile sizes and variants of all GEMM kernels.
struct MatmulConfig {
  int bm = 64, bn = 64, bk = 64;
  int kUnroll = 0; // skinny GEMM, for a few rows of A: partial sums of an element of C, divides bk; 0: tiles and `dot`
  int64_t split = 0;                     // split-K, tn only: rows of A and B that a program sums; 0: all
  bool ta = false, tb = false;           // A, B are stored transposed; set by the plan
  bool accumulate = false;               // C += …; set by the plan
  bool storePreact = false;              // matmul_gelu and matmul_linear store the pre-activation; set by the plan
  bool storeBiasGrad = false;            // weight_gradient stores the bias gradient; set by the plan
  Precision precision = Precision::ieee; // of f32 operands
  int warps = 4;                         // warps of a CTA, on a GPU
  int stages = 0;                        // pipeline stages in shared memory, on a GPU; 0: up to 3, as many as fit
  int64_t groupM = 0; // persistent programs: GROUP_M, row tiles of a band; 0: a program computes one tile
  // The epilogue of matmul_linear and of its backward kernel; set by their plans.
  bool biased = false, residual = false;
  Activation activation = Activation::none;
  DropoutMode dropout = DropoutMode::off;
};

extern const Kernel matmulKernel, matmulBiasKernel, matmulGeluKernel, matmulResidualKernel, matmulGeluBackwardKernel,
    matmulLinearKernel, matmulLinearBackwardKernel, weightGradientKernel;

/// Epilogues by the registers they need in addition to the accumulators, fewest first.
enum class Epilogue {
  light,             // stores; also adds a bias
  added,             // adds a matrix of two-byte elements
  activated,         // applies a fast function, and may store the pre-activation
  activatedAndAdded, // both
  accumulate,        // adds to the old value of C
  heavy,             // applies an accurate function, or adds an f32 matrix
  dropout            // draws random numbers for dropout
};

/// Default config for C (M, N) with sums of length K over operands of `type`, from shape, layout and the target's fixed
/// properties.
MatmulConfig pickMatmul(const Target &target, Layout layout, int64_t M, int64_t N, int64_t K, Type type = Type::f32,
                        Epilogue epilogue = Epilogue::light);

/// C = op(A) · op(B), or C += … with `accumulate`.
Plan planMatmul(const Target &target, Layout layout, const TensorRef &a, const TensorRef &b, const TensorRef &c,
                bool accumulate = false, const std::optional<MatmulConfig> &config = {});

/// C = op(A) · op(B) + bias. bias (N).
Plan planMatmulBias(const Target &target, Layout layout, const TensorRef &a, const TensorRef &b, const TensorRef &bias,
                    const TensorRef &c, const std::optional<MatmulConfig> &config = {});

/// C = gelu(op(A) · op(B) + bias). `preact` (M, N), if given, receives the pre-activation, rounded to C's type.
Plan planMatmulGelu(const Target &target, Layout layout, const TensorRef &a, const TensorRef &b, const TensorRef &bias,
                    const std::optional<TensorRef> &preact, const TensorRef &c,
                    const std::optional<MatmulConfig> &config = {});

/// C = op(A) · op(B) + bias + residual. residual (M, N); `c` may be `residual`.
Plan planMatmulResidual(const Target &target, Layout layout, const TensorRef &a, const TensorRef &b,
                        const TensorRef &bias, const TensorRef &residual, const TensorRef &c,
                        const std::optional<MatmulConfig> &config = {});

/// C = (op(A) · op(B)) ∘ gelu'(preact): the gradient of a product, propagated through the GELU before it. preact (M,
/// N); `c` may be `preact`.
Plan planMatmulGeluBackward(const Target &target, Layout layout, const TensorRef &a, const TensorRef &b,
                            const TensorRef &preact, const TensorRef &c,
                            const std::optional<MatmulConfig> &config = {});

/// Epilogue residual + drop(activation(op(A) · op(B) + bias)). An activation whose derivative needs its argument is
/// applied to the pre-activation rounded to C's type, so that activate.h recomputes equal values from `preact`.
struct LinearEpilogue {
  std::optional<TensorRef> bias = {}; // (N)
  Activation activation = Activation::none;
  std::optional<TensorRef> preact = {};   // (M, N), receives the pre-activation
  std::optional<Dropout> dropout = {};    // over the rows and columns of C
  std::optional<TensorRef> residual = {}; // (M, N); C may be the same memory
};

/// C = residual + drop(activation(op(A) · op(B) + bias)). The plan uses the simpler kernels above where they suffice.
Plan planLinear(const Target &target, Layout layout, const TensorRef &a, const TensorRef &b, const TensorRef &c,
                const LinearEpilogue &epilogue = {}, const std::optional<MatmulConfig> &config = {});

/// The function to differentiate, drop(activation(x)), and the tensor from which its derivative is computed.
struct LinearBackward {
  Activation activation = Activation::none;
  /// (M, N): the pre-activation, or the result after dropout if isKnownByResult().
  std::optional<TensorRef> from = {};
  std::optional<Dropout> dropout = {};
};

/// C = (op(A) · op(B)) ∘ activation' ∘ mask · scale: the gradient of a product, propagated through the activation and
/// dropout before it. `c` may be `from`.
Plan planLinearBackward(const Target &target, Layout layout, const TensorRef &a, const TensorRef &b, const TensorRef &c,
                        const LinearBackward &backward = {}, const std::optional<MatmulConfig> &config = {});

/// The gradient of a weight: dw = xᵀ · dy, and db = Σ_k dy[k].
struct WeightGradient {
  TensorRef x, dy, dw;              // (K, M), (K, N), (M, N)
  std::optional<TensorRef> db = {}; // (N)
};

/// Gradients of several weights, `+=` with `accumulate`; none is an operand of another. On a CPU each has a launch. On
/// a GPU, those with equal K and types share one launch (grouped GEMM), because more tiles fill the GPU better. If
/// tiles are few and K is long, split-K writes partial sums, and further launches add them in order. Workspace: splits
/// · (M + 1) · N f32 for each weight with split-K.
Plan planWeightGradients(const Target &target, const std::vector<WeightGradient> &all, bool accumulate = false,
                         const std::optional<MatmulConfig> &config = {});
/// The gradient of one weight, as above.
Plan planWeightGradient(const Target &target, const TensorRef &x, const TensorRef &dy, const TensorRef &dw,
                        const std::optional<TensorRef> &db, bool accumulate = false,
                        const std::optional<MatmulConfig> &config = {});

} // namespace kiln
