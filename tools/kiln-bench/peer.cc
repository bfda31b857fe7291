// oneDNN as a peer, if it was found at configure time. It is called only here.

#include "tools/kiln-bench/bench.h"

#ifdef KILN_HAVE_ONEDNN
#include <oneapi/dnnl/dnnl.hpp>
/// From libgomp, which has oneDNN's threads. Declared here, because <omp.h> belongs to g++ and Clang does not find it.
extern "C" void omp_set_num_threads(int threads);
#endif

using namespace kiln;

#ifdef KILN_HAVE_ONEDNN
/// oneDNN has a separate function for f32 GEMMs.
static bench::Contender floatPeer(const bench::PeerProduct &p, const Tensor &a, const Tensor &b, Tensor &c) {
  return [p, &a, &b, &c] {
    const dnnl_status_t status =
        dnnl_sgemm(p.transposeA ? 'T' : 'N', p.transposeB ? 'T' : 'N', p.M, p.N, p.K, 1.0f,
                   static_cast<const float *>(a.data()), a.extents()[1], static_cast<const float *>(b.data()),
                   b.extents()[1], 0.0f, static_cast<float *>(c.data()), p.N);
    if (status != dnnl_success)
      throw Error("oneDNN failed to multiply", Fault::device);
  };
}

static std::optional<dnnl::memory::data_type> peerType(Type type) {
  switch (type) {
  case Type::f32:
    return dnnl::memory::data_type::f32;
  case Type::bf16:
    return dnnl::memory::data_type::bf16;
  case Type::i8:
    return dnnl::memory::data_type::s8;
  case Type::i32:
    return dnnl::memory::data_type::s32;
  default:
    return {};
  }
}

/// All others are a primitive, created once; none if oneDNN does not support it on this machine.
static std::optional<bench::Contender> narrowPeer(const bench::PeerProduct &p, const Tensor &a, const Tensor &b,
                                                  Tensor &c) {
  const auto type = peerType(a.type()), typeOfC = peerType(c.type());
  if (!type || !typeOfC)
    return {};
  using Strides = dnnl::memory::dims;
  const auto strides = [](bool turned, int64_t width) { return turned ? Strides{1, width} : Strides{width, 1}; };
  try {
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    const dnnl::memory::desc left({p.M, p.K}, *type, strides(p.transposeA, a.extents()[1]));
    const dnnl::memory::desc right({p.K, p.N}, *type, strides(p.transposeB, b.extents()[1]));
    const dnnl::memory::desc result({p.M, p.N}, *typeOfC, strides(false, p.N));
    const dnnl::matmul product(dnnl::matmul::primitive_desc(dnnl::matmul::desc(left, right, result), engine));
    const std::unordered_map<int, dnnl::memory> memory = {{DNNL_ARG_SRC, {left, engine, a.data()}},
                                                          {DNNL_ARG_WEIGHTS, {right, engine, b.data()}},
                                                          {DNNL_ARG_DST, {result, engine, c.data()}}};
    return [product, memory, stream = dnnl::stream(engine)]() mutable {
      product.execute(stream, memory);
      stream.wait();
    };
  } catch (const dnnl::error &) {
    return {};
  }
}
#endif

void bench::setPeerThreads([[maybe_unused]] int threads) {
#ifdef KILN_HAVE_ONEDNN
  omp_set_num_threads(threads);
#endif
}

std::optional<bench::Contender> bench::oneDnnContender([[maybe_unused]] const Setting &setting,
                                                       [[maybe_unused]] const PeerProduct &product,
                                                       [[maybe_unused]] const Tensor &a,
                                                       [[maybe_unused]] const Tensor &b, [[maybe_unused]] Tensor &c) {
#ifdef KILN_HAVE_ONEDNN
  if (setting.isHost())
    return a.type() == Type::f32 ? floatPeer(product, a, b, c) : narrowPeer(product, a, b, c);
#endif
  return {};
}
