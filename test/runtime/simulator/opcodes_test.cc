// Every instruction that the simulator supports, in one form each, and with an unknown modifier: an error that quotes
// it and names its line.

#include "test/expect_error.h"
#include "test/paths.h"
#include "test/runtime/simulator/machine.h"
#include "test/temporary_folder.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <set>
#include <sstream>

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
    "bmsk.clamp.b32 %r0, %r1, %r2;",
    "brev.b32 %r0, %r1;",
    "clz.b32 %r0, %r1;",
    "cnot.b32 %r0, %r1;",
    "copysign.f32 %f0, %f1, %f2;",
    "cos.approx.f32 %f0, %f1;",
    "cvt.u32.u16 %r0, %h;",
    "cvt.pack.sat.u8.s32.b32 %r0, %r1, %r2, %r3;",
    "cvta.to.global.u64 %s0, %s1;",
    "div.s32 %r0, %r1, %r2;",
    "dp2a.lo.u32.u32 %r0, %r1, %r2, %r3;",
    "dp4a.u32.u32 %r0, %r1, %r2, %r3;",
    "ex2.approx.f32 %f0, %f1;",
    "fma.rn.f32 %f0, %f1, %f2, %f0;",
    "fns.b32 %r0, %r1, %r2, %r3;",
    "isspacep.global %q0, %s0;",
    "lg2.approx.f32 %f0, %f1;",
    "lop3.b32 %r0, %r1, %r2, %r3, 128;",
    "mad.lo.u32 %r0, %r1, %r2, %r3;",
    "madc.lo.u32 %r0, %r1, %r2, %r3;",
    "mad24.lo.u32 %r0, %r1, %r2, %r3;",
    "max.s32 %r0, %r1, %r2;",
    "min.s32 %r0, %r1, %r2;",
    "mov.u32 %r0, %r1;",
    "mul.lo.u32 %r0, %r1, %r2;",
    "mul24.hi.s32 %r0, %r1, %r2;",
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
    "szext.wrap.s32 %r0, %r1, %r2;",
    "tanh.approx.f32 %f0, %f1;",
    "testp.finite.f32 %q0, %f0;",
    "xor.b32 %r0, %r1, %r2;",
    // Bytes and halves.
    "vadd.u32.u32.u32 %r0, %r1, %r2;",
    "vsub.u32.u32.u32 %r0, %r1, %r2;",
    "vabsdiff.u32.u32.u32 %r0, %r1, %r2;",
    "vmin.u32.u32.u32 %r0, %r1, %r2;",
    "vmax.u32.u32.u32 %r0, %r1, %r2;",
    "vshl.u32.u32.u32.clamp %r0, %r1, %r2;",
    "vshr.u32.u32.u32.wrap %r0, %r1, %r2;",
    "vset.u32.u32.eq %r0, %r1, %r2;",
    "vmad.u32.u32.u32 %r0, %r1, %r2, %r3;",
    "vadd2.u32.u32.u32 %r0, %r1, %r2, %r3;",
    "vsub2.u32.u32.u32 %r0, %r1, %r2, %r3;",
    "vavrg2.u32.u32.u32 %r0, %r1, %r2, %r3;",
    "vabsdiff2.u32.u32.u32 %r0, %r1, %r2, %r3;",
    "vmin2.u32.u32.u32 %r0, %r1, %r2, %r3;",
    "vmax2.u32.u32.u32 %r0, %r1, %r2, %r3;",
    "vset2.u32.u32.eq %r0, %r1, %r2, %r3;",
    "vadd4.u32.u32.u32 %r0, %r1, %r2, %r3;",
    "vsub4.u32.u32.u32 %r0, %r1, %r2, %r3;",
    "vavrg4.u32.u32.u32 %r0, %r1, %r2, %r3;",
    "vabsdiff4.u32.u32.u32 %r0, %r1, %r2, %r3;",
    "vmin4.u32.u32.u32 %r0, %r1, %r2, %r3;",
    "vmax4.u32.u32.u32 %r0, %r1, %r2, %r3;",
    "vset4.u32.u32.eq %r0, %r1, %r2, %r3;",
    // Memory.
    "alloca.u64 %s0, %s1;",
    "stacksave.u64 %s0;",
    "stackrestore.u64 %s0;",
    "applypriority.global.L2::evict_normal [%p0], 128;",
    "discard.global.L2 [%p0], 128;",
    "prefetchu.L1 [%p0];",
    "cp.async.mbarrier.arrive.shared::cta.b64 [bar];",
    "cp.async.bulk.prefetch.L2.global [%p0], 16;",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%p0], [data], 16;",
    "cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%p0, {%r0}], [data];",
    "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [%p0, {%r0}], [data];",
    "cp.async.bulk.prefetch.tensor.1d.L2.global.tile [%p0, {%r0}];",
    "tensormap.replace.tile.global_address.global.b1024.b64 [%p0], %s0;",
    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [data], %r0, [bar];",
    "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.u32 [data], %r0, [bar];",
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
    "pmevent 1;",
    "setmaxnreg.inc.sync.aligned.u32 64;",
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%p0], [data], 128;",
    "mbarrier.arrive_drop.shared::cta.b64 %s0, [bar];",
    "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 16;",
    "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 16;",
    "mbarrier.pending_count.b64 %r0, %s0;",
    "mbarrier.try_wait.parity.shared::cta.b64 %q0, [bar], 0;",
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
    "wmma.store.d.sync.aligned.m16n16k16.row.f32 [%p0], {%f0, %f1, %f2, %f3, %f0, %f1, %f2, %f3};",
    "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%f0, %f1, %f2, %f3, %f0, %f1, %f2, %f3}, "
    "{%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, "
    "{%f0, %f1, %f2, %f3, %f0, %f1, %f2, %f3};",
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %s0, %s1, 1, 1, 1, 0, 0;",
    // Control.
    "brx.idx %r0, LABELS;",
    "brkpt;",
    "bra.uni NEXT;\nNEXT:",
    "call.uni callee;",
    "@%q0 exit;",
    "@%q0 ret;",
    "@%q0 trap;",
};

/// The instructions of the PTX ISA 9.0, by the headings of its chapter "Instructions" (`match.sync` is `match.any.sync`
/// and `match.all.sync`).
static const std::string isaNames =
    "abs activemask add addc alloca and applypriority atom bar bar.warp.sync barrier barrier.cluster bfe bfi bfind "
    "bmsk bra brev brkpt brx.idx call clusterlaunchcontrol.query_cancel clusterlaunchcontrol.try_cancel clz cnot "
    "copysign cos cp.async cp.async.bulk cp.async.bulk.commit_group cp.async.bulk.prefetch "
    "cp.async.bulk.prefetch.tensor cp.async.bulk.tensor cp.async.bulk.wait_group cp.async.commit_group "
    "cp.async.mbarrier.arrive cp.async.wait_all cp.async.wait_group cp.reduce.async.bulk "
    "cp.reduce.async.bulk.tensor createpolicy cvt cvt.pack cvta discard div dp2a dp4a elect.sync ex2 exit fence fma "
    "fns getctarank griddepcontrol isspacep istypep ld ldmatrix ldu lg2 lop3 mad mad24 madc mapa match.sync max "
    "mbarrier.arrive mbarrier.arrive_drop mbarrier.complete_tx mbarrier.expect_tx mbarrier.init mbarrier.inval "
    "mbarrier.pending_count mbarrier.test_wait mbarrier.try_wait membar min mma mma.sp mov movmatrix mul mul24 "
    "multimem.cp.async.bulk multimem.cp.reduce.async.bulk multimem.ld_reduce multimem.red multimem.st nanosleep neg "
    "not or pmevent popc prefetch prefetchu prmt rcp red red.async redux.sync rem ret rsqrt sad selp set setmaxnreg "
    "setp shf shfl.sync shl shr sin slct sqrt st st.async st.bulk stackrestore stacksave stmatrix sub subc suld suq "
    "sured sust szext tanh tcgen05.alloc tcgen05.commit tcgen05.cp tcgen05.dealloc tcgen05.fence tcgen05.ld "
    "tcgen05.ld.red tcgen05.mma tcgen05.mma.sp tcgen05.mma.ws tcgen05.mma.ws.sp tcgen05.relinquish_alloc_permit "
    "tcgen05.shift tcgen05.st tcgen05.wait tensormap.cp_fenceproxy tensormap.replace testp tex tld4 trap txq "
    "vabsdiff vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmad vmax vmax2 vmax4 vmin vmin2 vmin4 vote.sync "
    "vset vset2 vset4 vshl vshr vsub vsub2 vsub4 wgmma.commit_group wgmma.fence wgmma.mma_async wgmma.mma_async.sp "
    "wgmma.wait_group wmma.load wmma.mma wmma.store xor ";

static std::string textOf(const std::string &line) {
  return ".version 8.6\n.target sm_90a\n.address_size 64\n.func callee() { ret; }\n.visible .entry k(.param .u64 p) {\n"
         ".shared .align 16 .b8 data[128];\n.shared .b64 bar;\n.reg .b16 %h; .reg .b32 %r<8>; .reg .b64 %p0, %s<2>; "
         ".reg "
         ".f32 %f<4>; .reg .pred %q<2>; LABELS: .branchtargets END;\n" + // line 8
         line +
         "\nEND: ret;\n}\n";
}

static void build(const std::string &line) {
  Memory memory;
  buildProgram(std::make_shared<ptx::Module>(ptx::parse(textOf(line))), "k", memory);
}

TEST(OpcodesTest, AreKnown) {
  for (const char *form : forms)
    EXPECT_NO_THROW(build(form)) << form;
}

// At any position among the modifiers.
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
        "tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%p0, {%r0}];", "multimem.red.global.add.u32 [%p0], %r0;"})
    expectError([&] { build(line); }, {"PTX line 9: expected an instruction that the simulator supports, but got '" +
                                       line.substr(0, line.find(' ')) + "'"});
}

// The ISA states the first GPU and version that have an instruction.
TEST(TargetTest, OldTextsAreRefused) {
  const auto refusal = [](const std::string &head, const std::string &line) -> std::string {
    try {
      Memory memory;
      buildProgram(std::make_shared<ptx::Module>(ptx::parse(
                       head + "\n.address_size 64\n.visible .entry k() {\n.reg .b32 %r<4>; .reg .b64 %d<4>;\n" + line +
                       "\nret;\n}\n")),
                   "k", memory);
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(".version 8.0\n.target sm_80", "red.global.add.v2.f32 [%d0], {%r0, %r1};"),
            "PTX line 6: expected '.target sm_90' or above, but got 'sm_80', in 'red.global.add.v2.f32'");
  EXPECT_EQ(refusal(".version 8.0\n.target sm_90", "red.global.add.v2.f32 [%d0], {%r0, %r1};"),
            "PTX line 6: expected '.version 8.1' or above, but got '8.0', in 'red.global.add.v2.f32'");
  EXPECT_EQ(refusal(".version 8.6\n.target sm_90a", "add.rn.f32x2 %d0, %d1, %d2;"),
            "PTX line 6: expected '.target sm_100' or above, but got 'sm_90a', in 'add.rn.f32x2'");
  EXPECT_EQ(refusal(".version 8.6\n.target sm_100a", "add.rn.f32x2 %d0, %d1, %d2;"), "");
  EXPECT_EQ(refusal(".version 8.6\n.target sm_90a", "redux.sync.max.f32 %r0, %r1, -1;"),
            "PTX line 6: expected '.target sm_100' or above, but got 'sm_90a', in 'redux.sync.max.f32'");
}

// --- What is left out ----------------------------------------------------------------------------------------------

/// The names in the README's table of unsupported instructions.
static std::set<std::string> namesInReadme() {
  const std::string text = readText(kiln::test::sourcePath("runtime/simulator/README.md"));
  const size_t begin = text.find("**Not supported.**"), end = text.find("\n\n", text.find('|', begin));
  std::set<std::string> names;
  for (size_t open = text.find('`', begin); open < end; open = text.find('`', open)) {
    const size_t close = text.find('`', open + 1);
    names.insert(text.substr(open + 1, close - open - 1));
    open = close + 1;
  }
  return names;
}

static std::set<std::string> wordsOf(const std::string &text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

// Each is refused with its name and line, for all operands.
TEST(LeftOutTest, IsRefusedByName) {
  for (const std::string &name : namesInReadme())
    for (const std::string rest : {".sync.aligned.b32 %r0, %r1;", " %r0;"})
      expectError([&] { build(name + rest); },
                  {"PTX line 9: expected an instruction that the simulator supports, but got '" + name});
}

// Every instruction of the ISA is either left out or among the forms that are known.
TEST(LeftOutTest, OrItIsKnown) {
  const std::set<std::string> names = namesInReadme();
  for (const std::string &name : wordsOf(isaNames)) {
    const std::string opcode = name.substr(0, name.find('.')), modifiers = name.substr(opcode.size());
    const bool isKnown = std::ranges::any_of(forms, [&](const std::string form) {
      const std::string spelling = form.substr(form.starts_with('@') ? form.find(' ') + 1 : 0);
      const size_t end = spelling.find_first_of(". ;");
      return spelling.substr(0, end) == opcode && spelling.find(modifiers, end) != std::string::npos;
    });
    EXPECT_NE(isKnown, names.contains(name)) << name;
  }
}

// No opcode is known that the ISA does not have.
TEST(LeftOutTest, KnownOpcodesAreTheIsas) {
  std::set<std::string> opcodes;
  for (const std::string &name : wordsOf(isaNames))
    opcodes.insert(name.substr(0, name.find('.')));
  for (const std::string_view opcode : knownOpcodes()) {
    EXPECT_TRUE(opcodes.contains(std::string(opcode))) << opcode;
    EXPECT_FALSE(namesInReadme().contains(std::string(opcode))) << opcode;
  }
}

} // namespace kiln::simulator::test
