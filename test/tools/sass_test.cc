// The reader of machine code: kernels, loops, classes, and the work of an instruction.

#include "tools/kiln-bench/assembly.h"

#include <gtest/gtest.h>

namespace kiln::bench::test {

/// Two kernels in nvdisasm's format: one with a loop of products within another loop, followed by a longer loop of as
/// many, and a branch to itself at the end; and one without a loop.
static const char *const text = R"(	.headerflags	@"EF_CUDA_SM80"
//--------------------- .text.product --------------------------
	.section	.text.product,"ax",@progbits
	.sectionflags	@"SHF_BARRIERS=1"
	.sectioninfo	@"SHI_REGISTERS=40"
        .global         product
product:
.text.product:
        /*0000*/                   MOV R1, c[0x0][0x28] ;
.L_x_1:
        /*0010*/                   IMAD.MOV.U32 R5, RZ, RZ, 0x7f ;
.L_x_2:
        /*0020*/                   LDSM.16.M88.4 R4, [R2] ;
        /*0030*/                   LDSM.16.MT88.2 R8, [R3+0x100] ;
        /*0040*/                   HMMA.16816.F32.BF16 R12, R4, R8, R12 ;
        /*0050*/              @P1  LDGSTS.E.BYPASS.LTC128B.128 [R2], [R6.64] ;
        /*0060*/             @!P0  BRA `(.L_x_2) ;
        /*0070*/               @P1 BRA `(.L_x_1) ;
.L_x_3:
        /*0080*/                   HMMA.16816.F32.BF16 R12, R4, R8, R12 ;
        /*0090*/                   ISETP.GE.AND P0, PT, R0, R1, PT ;
        /*00a0*/                   FSEL R0, R0, R1, !P0 ;
        /*00b0*/                   UIADD3 UR4, UR4, 0x1, URZ ;
        /*00c0*/                   USEL UR4, URZ, 0x10, !UP0 ;
        /*00d0*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*00e0*/               @P0 BRA `(.L_x_3) ;
        /*00f0*/                   EXIT ;
.L_x_4:
        /*0100*/                   BRA `(.L_x_4);
        /*0110*/                   NOP;
	.section	.text.copy,"ax",@progbits
copy:
.text.copy:
        /*0000*/                   { LDG.E.128 R4, [R2.64] ;
        /*0008*/                     STG.E.U16 [R2.64], R4 ; }
        /*0010*/                   EXIT ;
	.section	.nv.info,"",@"SHT_CUDA_INFO"
        /*0000*/                   .byte 0x04
)";

// A kernel ends at the next section, and not at the flags of its own.
TEST(SassTest, Kernels) {
  const std::vector<SassKernel> kernels = readSass(text);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].name, "product");
  EXPECT_EQ(kernels[0].code.size(), 18u);
  EXPECT_EQ(kernels[1].name, "copy");
  ASSERT_EQ(kernels[1].code.size(), 3u);
  EXPECT_EQ(kernels[1].code[1].opcode, "STG.E.U16");
}

// Guards are no part of an instruction.
TEST(SassTest, Guards) {
  const SassKernel kernel = readSass(text)[0];
  EXPECT_EQ(kernel.code[5].opcode, "LDGSTS.E.BYPASS.LTC128B.128");
  EXPECT_EQ(kernel.code[6].opcode, "BRA");
  EXPECT_EQ(kernel.code[6].operands, "`(.L_x_2)");
}

// Padding that is never executed is no instruction.
TEST(SassTest, Padding) {
  const char *const padded = R"(	.section	.text.product,"ax",@progbits
.text.product:
        /*0000*/               @!PT LDS RZ, [RZ] ;
        /*0010*/               @!P1 LDS R0, [R1] ;
)";
  const std::vector<SassKernel> kernels = readSass(padded);
  ASSERT_EQ(kernels.size(), 1u);
  ASSERT_EQ(kernels[0].code.size(), 1u);
  EXPECT_EQ(kernels[0].code[0].operands, "R0, [R1]");
}

// Only innermost loops count, and the branch to itself at each kernel's end is none.
TEST(SassTest, Loops) {
  const SassKernel kernel = readSass(text)[0];
  ASSERT_EQ(kernel.loops.size(), 2u);
  EXPECT_EQ(kernel.loops[0].begin, 2u);
  EXPECT_EQ(kernel.loops[0].end, 7u);
  EXPECT_EQ(kernel.loops[1].begin, 8u);
  EXPECT_EQ(kernel.loops[1].end, 15u);
}

// Of loops with equally many products, the shortest is the main loop.
TEST(SassTest, MainLoop) {
  const std::vector<SassKernel> kernels = readSass(text);
  ASSERT_NE(kernels[0].mainLoop(), nullptr);
  EXPECT_EQ(kernels[0].mainLoop()->begin, 2u);
  EXPECT_EQ(kernels[1].mainLoop(), nullptr);
}

// Without products it is the longest one.
TEST(SassTest, MainLoopWithoutProducts) {
  SassKernel kernel;
  kernel.code.assign(20, {"FADD", ""});
  kernel.loops = {{0, 3}, {5, 15}, {16, 20}};
  EXPECT_EQ(kernel.mainLoop()->begin, 5u);
}

// Each opcode has a class, for all modifiers; the uniform unit's opcodes have that of their counterparts.
TEST(SassTest, Classes) {
  const std::pair<const char *, Class> want[] = {{"HMMA.16816.F32", Class::mma},
                                                 {"HGMMA.64x128x16.F32", Class::mma},
                                                 {"HFMA2.MMA", Class::fp},
                                                 {"LDSM.16.M88.4", Class::ldmatrix},
                                                 {"LDS.128", Class::lds},
                                                 {"STS.64", Class::sts},
                                                 {"STSM.16.M88.4", Class::sts},
                                                 {"LDGSTS.E.128", Class::asyncCopy},
                                                 {"LDG.E", Class::ldg},
                                                 {"STG.E.128", Class::stg},
                                                 {"RED.E.ADD.F32", Class::atomic},
                                                 {"ATOMG.E.CAS", Class::atomic},
                                                 {"MUFU.EX2", Class::mufu},
                                                 {"FFMA.FTZ", Class::fp},
                                                 {"FMNMX", Class::fp},
                                                 {"F2FP.BF16.PACK_AB", Class::convert},
                                                 {"PRMT", Class::convert},
                                                 {"IADD3.X", Class::integer},
                                                 {"UIADD3", Class::integer},
                                                 {"MOV", Class::integer},
                                                 {"ISETP.GE.AND", Class::predicate},
                                                 {"UISETP.GT.AND", Class::predicate},
                                                 {"USEL", Class::predicate},
                                                 {"FSEL", Class::predicate},
                                                 {"BAR.SYNC", Class::barrier},
                                                 {"SHFL.BFLY", Class::shuffle},
                                                 {"BRA.U", Class::branch},
                                                 {"EXIT", Class::branch},
                                                 {"LDL.64", Class::local},
                                                 {"STL", Class::local},
                                                 {"DEPBAR.LE", Class::other},
                                                 {"LDGDEPBAR", Class::other},
                                                 {"NOP", Class::other}};
  for (const auto &[opcode, kind] : want)
    EXPECT_EQ(classOf({opcode, ""}), kind) << opcode;
}

// A warp's share of products, wavefronts and bytes follow from the widths in opcodes.
TEST(SassTest, Work) {
  const SassKernel kernel = readSass(text)[0];
  const Work loop = kernel.workOf(kernel.loops[0].begin, kernel.loops[0].end);
  EXPECT_EQ(loop.counts.total(), 5);
  EXPECT_EQ(loop.counts[Class::mma], 1);
  EXPECT_EQ(loop.mmaOperations, 2 * 16 * 8 * 16);
  EXPECT_EQ(loop.mmaType, "bf16");
  EXPECT_EQ(loop.wavefronts, 4 + 2 + 4); // two ldmatrix, and what the copy writes
  EXPECT_EQ(loop.bytes, 32 * 16);
  const Work copy = readSass(text)[1].whole();
  EXPECT_EQ(copy.bytes, 32 * 16 + 32 * 2);
}

// Products of every kind that the opcodes spell. A warp does a quarter of a warpgroup's.
TEST(SassTest, Products) {
  const std::tuple<const char *, double, const char *> want[] = {
      {"HMMA.1688.F32.TF32", 2. * 16 * 8 * 8, "tf32"},      {"HMMA.16816.F16", 2. * 16 * 8 * 16, "f16"},
      {"IMMA.16832.S8.S8", 2. * 16 * 8 * 32, "s8"},         {"HGMMA.64x256x16.F32.BF16", 2. * 16 * 256 * 16, "bf16"},
      {"QGMMA.64x64x32.F32.E4M3", 2. * 16 * 64 * 32, "f8"}, {"DMMA.884", 2. * 8 * 8 * 4, "f64"}};
  for (const auto &[opcode, operations, type] : want) {
    SassKernel kernel;
    kernel.code = {{opcode, ""}};
    EXPECT_EQ(kernel.whole().mmaOperations, operations) << opcode;
    EXPECT_EQ(kernel.whole().groupOperations, std::string(opcode).find("GMMA") == std::string::npos ? 0 : operations)
        << opcode;
    EXPECT_EQ(kernel.whole().mmaType, type) << opcode;
  }
}

} // namespace kiln::bench::test
