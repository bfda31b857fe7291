// nvcc 13.0, -arch=sm_80 -ptx, makes video.ptx of this.
extern "C" __global__ void video(const unsigned *a, const unsigned *b, const unsigned *c, unsigned *out) {
  const int t = threadIdx.x;
  const unsigned x = a[t], y = b[t], z = c[t];
  unsigned *mine = out + 16 * t, d;
  mine[0] = __vsadu4(x, y);
  mine[1] = __vsads4(x, y);
#define CASE(i, text) asm volatile(text : "=r"(d) : "r"(x), "r"(y), "r"(z)); mine[i] = d;
  CASE(2, "vadd.s32.s32.u32.sat %0, %1.b1, %2.h0;")
  CASE(3, "vsub.u32.u32.u32.sat.add %0, %1.h1, %2.b3, %3;")
  CASE(4, "vabsdiff.u32.s32.s32.max %0, %1, %2, %3;")
  CASE(5, "vmin.s32.s32.s32 %0.b2, %1.b0, %2.b1, %3;")
  CASE(6, "vshl.u32.u32.u32.sat.clamp %0, %1, %2.b0;")
  CASE(7, "vshr.s32.s32.u32.wrap.min %0, %1, %2, %3;")
  CASE(8, "vmad.s32.s32.u32.sat.shr7 %0, %1.h0, -%2.h1, %3;")
  CASE(9, "vmad.u32.u32.u32.po %0, %1.b2, %2.h0, %3;")
  CASE(10, "vset.s32.u32.lt.add %0, %1.h0, %2.h1, %3;")
  CASE(11, "vadd2.s32.s32.s32.sat %0, %1, %2, %3;")
  CASE(12, "vavrg4.u32.u32.u32 %0.b20, %1.b7061, %2, %3;")
  CASE(13, "vset4.u32.s32.gt.add %0, %1, %2, %3;")
  CASE(14, "vmax2.s32.u32.s32 %0.h1, %1.h12, %2.h03, %3;")
  CASE(15, "vabsdiff4.u32.u32.u32.add %0.b310, %1, %2, %3;")
}
