// Every instruction that the simulator knows, in one form each, and the same with a modifier that nobody knows: an
// error that quotes it and names its line.

#include "test/expect_error.h"
#include "test/runtime/simulator/machine.h"

#include <fmt/format.h>

namespace kiln::simulator::test {

static const char *const forms[] = {
    "abs.s32 %r0, %r1;",
    "activemask.b32 %r0;",
    "add.s32 %r0, %r1, %r2;",
    "addc.u32 %r0, %r1, %r2;",
    "and.b32 %r0, %r1, %r2;",
    "bfe.u32 %r0, %r1, %r2, %r3;",
    "bfi.b32 %r0, %r1, %r2, %r3, %r4;",
    "bfind.u32 %r0, %r1;",
    "brev.b32 %r0, %r1;",
    "clz.b32 %r0, %r1;",
    "cnot.b32 %r0, %r1;",
    "copysign.f32 %f0, %f1, %f2;",
    "cos.approx.f32 %f0, %f1;",
    "cvt.u32.u16 %r0, %h;",
    "cvta.to.global.u64 %s0, %s1;",
    "div.s32 %r0, %r1, %r2;",
    "dp2a.lo.u32.u32 %r0, %r1, %r2, %r3;",
    "dp4a.u32.u32 %r0, %r1, %r2, %r3;",
    "ex2.approx.f32 %f0, %f1;",
    "fma.rn.f32 %f0, %f1, %f2, %f0;",
    "isspacep.global %q0, %s0;",
    "lg2.approx.f32 %f0, %f1;",
    "lop3.b32 %r0, %r1, %r2, %r3, 128;",
    "mad.lo.u32 %r0, %r1, %r2, %r3;",
    "madc.lo.u32 %r0, %r1, %r2, %r3;",
    "max.s32 %r0, %r1, %r2;",
    "min.s32 %r0, %r1, %r2;",
    "mov.u32 %r0, %r1;",
    "mul.lo.u32 %r0, %r1, %r2;",
    "neg.s32 %r0, %r1;",
    "not.b32 %r0, %r1;",
    "or.b32 %r0, %r1, %r2;",
    "popc.b32 %r0, %r1;",
    "prmt.b32 %r0, %r1, %r2, %r3;",
    "rcp.rn.f32 %f0, %f1;",
    "rem.u32 %r0, %r1, %r2;",
    "rsqrt.approx.f32 %f0, %f1;",
    "sad.u32 %r0, %r1, %r2, %r3;",
    "selp.u32 %r0, %r1, %r2, %q0;",
    "set.eq.u32.u32 %r0, %r1, %r2;",
    "setp.eq.u32 %q0, %r0, %r1;",
    "shf.l.wrap.b32 %r0, %r1, %r2, %r3;",
    "shl.b32 %r0, %r1, %r2;",
    "shr.u32 %r0, %r1, %r2;",
    "sin.approx.f32 %f0, %f1;",
    "slct.u32.s32 %r0, %r1, %r2, %r3;",
    "sqrt.rn.f32 %f0, %f1;",
    "sub.s32 %r0, %r1, %r2;",
    "subc.u32 %r0, %r1, %r2;",
    "tanh.approx.f32 %f0, %f1;",
    "testp.finite.f32 %q0, %f0;",
    "xor.b32 %r0, %r1, %r2;",
    // Memory.
    "atom.global.add.u32 %r0, [%p0], %r1;",
    "cp.async.ca.shared.global [data], [%p0], 4;",
    "cp.async.commit_group;",
    "cp.async.wait_group 0;",
    "cp.async.wait_all;",
    "cp.async.bulk.commit_group;",
    "cp.async.bulk.wait_group 0;",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [data], [%p0], 16, [bar];",
    "createpolicy.fractional.L2::evict_last.b64 %s0, 0f3f800000;",
    "ld.global.u32 %r0, [%p0];",
    "ldu.global.u32 %r0, [%p0];",
    "prefetch.global.L2 [%p0];",
    "red.global.add.u32 [%p0], %r1;",
    "st.global.u32 [%p0], %r0;",
    "fence.acq_rel.gpu;",
    "fence.proxy.async;",
    "membar.gl;",
    // Lanes, warps, blocks.
    "bar.sync 0;",
    "bar.warp.sync 0xffffffff;",
    "barrier.sync 0;",
    "barrier.cluster.arrive;",
    "elect.sync %r0|%q0, 0xffffffff;",
    "match.any.sync.b32 %r0, %r1, 0xffffffff;",
    "redux.sync.add.u32 %r0, %r1, 0xffffffff;",
    "shfl.sync.idx.b32 %r0, %r1, %r2, %r3, 0xffffffff;",
    "vote.sync.any.pred %q0, %q1, 0xffffffff;",
    "getctarank.u64 %r0, %s0;",
    "mapa.u64 %s0, %s1, %r0;",
    "griddepcontrol.wait;",
    "nanosleep.u32 %r0;",
    "mbarrier.init.shared::cta.b64 [bar], 1;",
    "mbarrier.arrive.shared::cta.b64 %s0, [bar];",
    "mbarrier.test_wait.parity.shared::cta.b64 %q0, [bar], 0;",
    "mbarrier.inval.shared::cta.b64 [bar];",
    // Matrices.
    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [data];",
    "stmatrix.sync.aligned.m8n8.x1.shared.b16 [data], {%r0};",
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1}, {%r2}, {%f0, %f1, %f2, %f3};",
    "movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r1;",
    "wmma.load.a.sync.aligned.m16n16k16.row.f16 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%p0];",
    "wgmma.fence.sync.aligned;",
    "wgmma.commit_group.sync.aligned;",
    "wgmma.wait_group.sync.aligned 0;",
    // Control.
    "bra.uni NEXT;\nNEXT:",
    "call.uni callee;",
    "@%q0 exit;",
    "@%q0 ret;",
    "@%q0 trap;",
};

static std::string textOf(const std::string &line) {
  return ".version 8.6\n.target sm_90a\n.address_size 64\n.func callee() { ret; }\n.visible .entry k(.param .u64 p) {\n"
         ".shared .align 16 .b8 data[128];\n.shared .b64 bar;\n.reg .b16 %h; .reg .b32 %r<8>; .reg .b64 %p0, %s<2>; "
         ".reg "
         ".f32 %f<4>; .reg .pred %q<2>;\n" + // line 8
         line +
         "\nret;\n}\n";
}

static void build(const std::string &line) {
  Memory memory;
  buildProgram(std::make_shared<ptx::Module>(ptx::parse(textOf(line))), "k", memory);
}

TEST(OpcodesTest, AreKnown) {
  for (const char *form : forms)
    EXPECT_NO_THROW(build(form)) << form;
}

// Wherever it stands among the modifiers.
TEST(OpcodesTest, RefuseUnknownModifiers) {
  for (const std::string form : forms) {
    const size_t begin = form.starts_with('@') ? form.find(' ') + 1 : 0, end = form.find_first_of(" ;", begin);
    for (size_t at = form.find_first_of(". ;", begin); at <= end; at = form.find_first_of(". ;", at + 1)) {
      std::string wrong = form;
      wrong.insert(at, ".magic");
      const std::string spelling = wrong.substr(begin, end - begin + 6);
      expectError([&] { build(wrong); }, {"PTX line 9: ", "'" + spelling + "'"});
    }
  }
}

// Instructions of other GPUs and of later ones.
TEST(OpcodesTest, RefuseUnknownInstructions) {
  for (const std::string line :
       {"conjure.u32 %r0, %r1;", "tcgen05.ld.sync.aligned.16x64b.x1.b32 {%r0}, [%r1];",
        "tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%p0, {%r0}];",
        "multimem.red.global.add.u32 [%p0], %r0;"})
    expectError([&] { build(line); }, {"PTX line 9: expected an instruction that the simulator knows, but got '" +
                                       line.substr(0, line.find(' ')) + "'"});
}

} // namespace kiln::simulator::test
