// nvcc 13.0, -arch=sm_80 -ptx, makes video.ptx of this.
extern "C" __global__ void video(const unsigned *a, const unsigned *b, const unsigned *c, unsigned *out) {
  const int t = threadIdx.x;
  const unsigned x = a[t], y = b[t], z = c[t];
  unsigned *mine = out + 8 * t, d;
  mine[0] = __vsadu4(x, y);
  mine[1] = __vsads4(x, y);
#define CASE(i, text) asm volatile(text : "=r"(d) : "r"(x), "r"(y), "r"(z)); mine[i] = d;
  CASE(2, "vadd2.s32.s32.s32.sat %0, %1, %2, %3;")
  CASE(3, "vavrg4.u32.u32.u32 %0.b20, %1.b7061, %2, %3;")
  CASE(4, "vset4.u32.s32.gt.add %0, %1, %2, %3;")
  CASE(5, "vmax2.s32.u32.s32 %0.h1, %1.h12, %2.h03, %3;")
  CASE(6, "vabsdiff4.u32.u32.u32.add %0.b310, %1, %2, %3;")
}
