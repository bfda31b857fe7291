// oneDNN as a peer in the benchmark: the only place where it is called, and only when it was there at configure time.

#include "tools/kiln-bench/bench.h"

#ifdef KILN_HAVE_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

using namespace kiln;

bool bench::hasPeerMatmul([[maybe_unused]] const Setting &setting) {
#ifdef KILN_HAVE_ONEDNN
  return setting.isHost();
#else
  return false;
#endif
}

void bench::peerMatmul(bool transposeA, bool transposeB, int64_t M, int64_t N, int64_t K, const float *a, int64_t lda,
                       const float *b, int64_t ldb, float *c, int64_t ldc) {
#ifdef KILN_HAVE_ONEDNN
  dnnl_status_t status =
      dnnl_sgemm(transposeA ? 'T' : 'N', transposeB ? 'T' : 'N', M, N, K, 1.0f, a, lda, b, ldb, 0.0f, c, ldc);
  if (status != dnnl_success)
    throw Error("oneDNN failed to multiply", Fault::device);
#else
  throw Error("this kiln-bench was built without oneDNN", Fault::device);
#endif
}
