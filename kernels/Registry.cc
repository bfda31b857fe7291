// The list of all kernels.

#include "kernels/Registry.h"
#include "kernels/activate.h"
#include "kernels/adamw.h"
#include "kernels/add.h"
#include "kernels/attention.h"
#include "kernels/cache_append.h"
#include "kernels/column_sums.h"
#include "kernels/cross_entropy.h"
#include "kernels/dropout.h"
#include "kernels/embedding.h"
#include "kernels/gelu.h"
#include "kernels/gradient_norms.h"
#include "kernels/layernorm.h"
#include "kernels/matmul.h"
#include "kernels/outliers.h"
#include "kernels/plain_attention.h"
#include "kernels/softmax.h"
#include "kernels/sum.h"

namespace kiln {

const std::vector<const Kernel *> &kernels() {
  static const std::vector<const Kernel *> all = {
      &activateKernel,
      &adamwKernel,
      &addKernel,
      &attentionKernel,
      &attentionBackwardKernel,
      &attentionBackwardKeysKernel,
      &attentionBackwardQueriesKernel,
      &attentionCombineKernel,
      &attentionSplitKernel,
      &cacheAppendKernel,
      &columnSumsKernel,
      &crossEntropyKernel,
      &crossEntropyLossKernel,
      &dropoutKernel,
      &embeddingKernel,
      &embeddingSumKernel,
      &geluKernel,
      &geluBackwardKernel,
      &gradientNormsKernel,
      &gradientSquaresKernel,
      &headProductKernel,
      &layernormKernel,
      &layernormBackwardKernel,
      &maskedSoftmaxKernel,
      &maskedSoftmaxBackwardKernel,
      &matmulKernel,
      &matmulBiasKernel,
      &matmulGeluKernel,
      &matmulGeluBackwardKernel,
      &matmulLinearKernel,
      &matmulLinearBackwardKernel,
      &matmulResidualKernel,
      &normKernel,
      &outliersKernel,
      &positionGradientKernel,
      &residualLayernormKernel,
      &softmaxKernel,
      &squaresKernel,
      &sumPairKernel,
      &sumPartialsKernel,
      &tokenGradientKernel,
      &totalKernel,
      &weightGradientKernel,
  };
  return all;
}

} // namespace kiln
