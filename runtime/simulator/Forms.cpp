// A table in the notation of the PTX ISA, and the search for an instruction's row.

#include "runtime/simulator/CodeBuilder.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <map>

namespace kiln::simulator {

/// A row: opcodes; positions of modifiers, one of several `<.a .b>`, optional ones `[.a]`; the first GPU that has the
/// form, with `a` one of the targets for a single architecture or family. `.a@90` is an alternative of sm_90 and later.
/// `set` names alternatives.
static constexpr std::string_view table = R"(
set rnd .rn .rz .rm .rp
set int .u16 .s16 .u32 .s32 .u64 .s64
set bits .b16 .b32 .b64
set scope .cta .cluster@90 .gpu .sys
set cmp .eq .ne .lt .le .gt .ge
set ucmp .equ .neu .ltu .leu .gtu .geu .num .nan
set bool .and .or .xor
set halves .f16 .f16x2
set brains .bf16 .bf16x2
add sub <int>
add sub [.sat] .s32
add sub [.cc] <.u32 .s32 .u64 .s64>
addc subc [.cc] <.u32 .s32 .u64 .s64>
add sub mul [rnd] [.ftz] [.sat] .f32
add sub mul [rnd] .f64
add sub mul [.rn] [.ftz] [.sat] <halves>
add sub mul [.rn] <brains> sm_90
add sub mul [rnd] [.ftz] .f32x2 sm_100
add sub [rnd] [.sat] .f32 <.f16 .bf16> sm_100
add <.u16x2 .s16x2> sm_90
mul mad <.lo .hi> <int>
mul mad .wide <.u16 .s16 .u32 .s32>
mad .hi .sat .s32
mad madc <.lo .hi> .cc <.u32 .s32 .u64 .s64>
madc <.lo .hi> <.u32 .s32 .u64 .s64>
mul24 mad24 <.lo .hi> <.u32 .s32>
mad24 .hi .sat .s32
mad fma <rnd> [.ftz] [.sat] .f32
mad fma <rnd> .f64
fma .rn [.ftz] [.sat .relu] <halves>
fma .rn [.relu] <brains>
fma .rn .oob [.relu] <halves brains> sm_90
fma <rnd> [.ftz] .f32x2 sm_100
fma <rnd> [.sat] .f32 <.f16 .bf16> sm_100
sad rem div <int>
div <.approx .full rnd> [.ftz] .f32
div <rnd> .f64
abs neg <.s16 .s32 .s64>
abs neg [.ftz] <.f32 halves>
abs neg <.f64 brains>
min max <int>
min max [.relu] <.s32 .s16x2> sm_90
min max .s32
min max <.u16x2 .s16x2> sm_90
min max [.ftz] [.NaN] .f32
min max [.ftz] [.NaN] .xorsign .abs .f32 sm_86
min max [.ftz] [.NaN] .abs .f32 sm_100
min max .f64
min max [.ftz] [.NaN] <halves>
min max [.NaN] <brains>
min max [.ftz] [.NaN] .xorsign .abs <halves> sm_86
min max [.NaN] .xorsign .abs <brains> sm_86
rcp sqrt <.approx rnd> [.ftz] .f32
rcp sqrt <rnd> .f64
rcp <rnd> .ftz .f64
rcp rsqrt .approx .ftz .f64
rsqrt .approx [.ftz] .f32
rsqrt .approx .f64
sin cos lg2 ex2 .approx [.ftz] .f32
ex2 .approx <halves>
ex2 .approx .ftz <brains> sm_90
tanh .approx <.f32 halves>
tanh .approx <brains> sm_90
testp <.finite .infinite .number .notanumber .normal .subnormal> <.f32 .f64>
copysign <.f32 .f64>
dp4a <.u32 .s32> <.u32 .s32>
dp2a <.lo .hi> <.u32 .s32> <.u32 .s32>
# Bits.
and or xor not <.pred bits>
cnot shl <bits>
shr <bits int>
brev clz popc <.b32 .b64>
bfind [.shiftamt] <.u32 .s32 .u64 .s64>
shf <.l .r> <.clamp .wrap> .b32
bfe <.u32 .s32 .u64 .s64>
bfi <.b32 .b64>
szext <.clamp .wrap> <.u32 .s32>
bmsk <.clamp .wrap> .b32
fns .b32
lop3 [.and .or] .b32
prmt .b32 [.f4e .b4e .rc8 .ecl .ecr .rc16]
# Choices and comparisons.
selp <bits int .f32 .f64>
slct <bits int .f32 .f64> .s32
slct [.ftz] <bits int .f32 .f64> .f32
setp <.eq .ne> [bool] <bits int>
setp <cmp> [bool] <.s16 .s32 .s64>
setp <cmp .lo .ls .hi .hs> [bool] <.u16 .u32 .u64>
setp <cmp ucmp> [bool] [.ftz] <.f32 halves>
setp <cmp ucmp> [bool] .f64
setp <cmp ucmp> [bool] <brains> sm_90
set <.eq .ne> [bool] <.u32 .s32 .f32> <bits int>
set <cmp> [bool] <.u32 .s32 .f32> <.s16 .s32 .s64>
set <cmp .lo .ls .hi .hs> [bool] <.u32 .s32 .f32> <.u16 .u32 .u64>
set <cmp ucmp> [bool] [.ftz] <.u32 .s32 .f32> .f32
set <cmp ucmp> [bool] <.u32 .s32 .f32> .f64
set <cmp ucmp> [bool] [.ftz] <.u16 .s16 .u32 .s32 .f16> .f16
set <cmp ucmp> [bool] [.ftz] <.u32 .s32 .f16x2> .f16x2
set <cmp ucmp> [bool] <.u16 .s16 .u32 .s32 .bf16> .bf16 sm_90
set <cmp ucmp> [bool] <.u32 .s32 .bf16x2> .bf16x2 sm_90
# Moves and conversions.
mov <bits .b128 int .f32 .f64 .pred>
set narrow .e4m3x2 .e5m2x2
set tiny .e2m3x2 .e3m2x2
set ints .u8 .s8 int
cvt [.sat] <ints> <ints>
cvt <.rni .rzi .rmi .rpi> [.ftz] [.sat] <ints> .f32
cvt <.rni .rzi .rmi .rpi> [.sat] <ints> .f64
cvt <.rni .rzi .rmi .rpi> [.sat] <ints> .f16
cvt <.rni .rzi .rmi .rpi> <int> .bf16 sm_90
cvt <rnd> [.sat] <.f16 .f64> <ints>
cvt <rnd> [.ftz] [.sat] .f32 <ints>
cvt <rnd> .bf16 <int> sm_90
cvt [.rni .rzi .rmi .rpi] [.ftz] [.sat] .f32 .f32
cvt [.rni .rzi .rmi .rpi] [.sat] .f64 .f64
cvt [.rni .rzi .rmi .rpi] [.sat] .f16 .f16
cvt <.rni .rzi .rmi .rpi> .bf16 .bf16 sm_90
cvt [.ftz] [.sat] .f32 .f16
cvt [.sat] .f64 .f16
cvt .f64 .f32
cvt [.ftz] [.sat] .f64 .f32
cvt <rnd> [.ftz] [.sat] .f32 .f64
cvt <rnd> [.ftz] [.sat] .f16 .f32
cvt <rnd> [.sat] .f16 .f64
cvt [rnd] .f32 .bf16
cvt [rnd] [.ftz] .f32 .bf16 sm_90
cvt [rnd] .f64 .bf16 sm_90
cvt <rnd> .bf16 <.f16 .f64> sm_90
cvt [rnd] .f16 .bf16 sm_90
cvt .bf16 <.f16 .bf16> sm_90
cvt <rnd> [.ftz] .bf16 .f32
cvt <.rn .rz> [.relu] [.satfinite] <.f16 .bf16 .f16x2 .bf16x2> .f32
cvt .rna [.satfinite] .tf32 .f32
cvt <.rn .rz> [.relu] .tf32 .f32 sm_90
cvt <.rn .rz> [.relu] .satfinite .tf32 .f32 sm_100
cvt .rn .satfinite [.relu] <narrow> <.f32 .f16x2> sm_89
cvt .rn [.relu] .f16x2 <narrow> sm_89
cvt .rn .satfinite [.relu] <.e2m1x2 tiny> .f32 sm_100a
cvt .rn [.relu] .f16x2 <.e2m1x2 tiny> sm_100a
cvt <.rz .rp> [.satfinite] .ue8m0x2 <.f32 .bf16x2> sm_100a
cvt .rn .bf16x2 .ue8m0x2 sm_100a
cvt .pack .sat <.u16 .s16> .s32
cvt .pack .sat <.u2 .s2 .u4 .s4 .u8 .s8> .s32 .b32
cvta [.to] <.global .shared .shared::cta .local .const .param .param::entry> <.u32 .u64>
cvta [.to] .shared::cluster <.u32 .u64> sm_90
isspacep <.global .shared .shared::cta .local .const .param .param::entry>
isspacep .shared::cluster sm_90
# Memory.
set plain bits int .b8 .u8 .s8 .f32 .f64 .b128
set ss .global .shared .shared::cta .shared::cluster@90 .local .const .param .param::entry .param::func
set strong .global .shared .shared::cta .shared::cluster@90
set vec .v2 .v4 .v8
set near .L1::evict_normal .L1::evict_unchanged .L1::evict_first .L1::evict_last .L1::no_allocate
set far .L2::evict_normal .L2::evict_first .L2::evict_last
set ahead .L2::64B .L2::128B .L2::256B
ld [.weak] [ss] [.ca .cg .cs .lu .cv] [vec] <plain>
ld [.weak] [.global] [.ca .cg .cs .lu .cv] [.L2::cache_hint] [ahead] [vec] <plain>
ld [.weak] [.global] [near] [far] [.L2::cache_hint] [ahead] [vec] <plain>
ld .volatile [strong] [vec] <plain>
ld .volatile [.global] [ahead] [vec] <plain>
ld <.relaxed .acquire> <scope> [strong] [vec] <plain>
ld <.relaxed .acquire> <scope> [.global] [near] [far] [.L2::cache_hint] [ahead] [vec] <plain>
ld .mmio .relaxed .sys [.global] <plain>
ld .global [.ca .cg .cs] .nc [.L2::cache_hint] [ahead] [vec] <plain>
ld .global .nc [near] [far] [.L2::cache_hint] [ahead] [vec] <plain>
ldu [.global] [.v2 .v4] <plain>
set to .global .shared .shared::cta .shared::cluster@90 .local .param .param::func
st [.weak] [to] [.wb .cg .cs .wt] [vec] <plain>
st [.weak] [.global] [.wb .cg .cs .wt] [.L2::cache_hint] [vec] <plain>
st [.weak] [.global] [near] [far] [.L2::cache_hint] [vec] <plain>
st .volatile [strong] [vec] <plain>
st <.relaxed .release> <scope> [strong] [vec] <plain>
st <.relaxed .release> <scope> [.global] [near] [far] [.L2::cache_hint] [vec] <plain>
st .mmio .relaxed .sys [.global] <plain>
set wide .b32 .b64 .u32 .u64 .s32 .s64 .f32 .f64
st .async [.weak] [.shared::cluster] .mbarrier::complete_tx::bytes [.v2 .v4] <wide> sm_90
prefetch [.global .local] <.L1 .L2>
prefetch [.global] <.L2::evict_last .L2::evict_normal>
prefetch [.const .param] .tensormap sm_90
prefetchu .L1
applypriority [.global] .L2::evict_normal
discard [.global] .L2
set primary .L2::evict_last .L2::evict_normal .L2::evict_first .L2::evict_unchanged
set secondary .L2::evict_first .L2::evict_unchanged
createpolicy .fractional <primary> [secondary] .b64
createpolicy .range [.global] <primary> [secondary] .b64
createpolicy .cvt .L2 .b64
# Atomics. The decode function refuses the orders that red lacks.
set order .relaxed .acquire .release .acq_rel
set at .global .shared .shared::cta .shared::cluster@90
atom red [order] [scope] [at] <.and .or .xor> [.L2::cache_hint] <.b32 .b64>
atom red [order] [scope] [at] .add [.L2::cache_hint] <.u32 .s32 .u64 .f32 .f64>
atom red [order] [scope] [at] <.inc .dec> [.L2::cache_hint] .u32
atom red [order] [scope] [at] <.min .max> [.L2::cache_hint] <.u32 .s32 .u64 .s64>
atom red [order] [scope] [at] .add .noftz [.L2::cache_hint] <halves>
atom red [order] [scope] [at] .add .noftz [.L2::cache_hint] <brains> sm_90
atom red [order] [scope] [.global] .add [.L2::cache_hint] <.v2 .v4> .f32 sm_90
atom red [order] [scope] [.global] <.add .min .max> .noftz [.L2::cache_hint] <.v2 .v4 .v8> <.f16 .bf16> sm_90
atom red [order] [scope] [.global] <.add .min .max> .noftz [.L2::cache_hint] <.v2 .v4> <.f16x2 .bf16x2> sm_90
atom [order] [scope] [at] .cas <bits>
atom [order] [scope] [at] .exch [.L2::cache_hint] <.b32 .b64>
atom [order] [scope] [at] .cas .b128 sm_90
atom [order] [scope] [at] .exch [.L2::cache_hint] .b128 sm_90
red .async .relaxed .cluster [.shared::cluster] .mbarrier::complete_tx::bytes <.inc .dec> .u32 sm_90
red .async .relaxed .cluster [.shared::cluster] .mbarrier::complete_tx::bytes <.min .max> <.u32 .s32> sm_90
red .async .relaxed .cluster [.shared::cluster] .mbarrier::complete_tx::bytes .add <.u32 .s32 .u64 .s64> sm_90
red .async .relaxed .cluster [.shared::cluster] .mbarrier::complete_tx::bytes <.and .or .xor> .b32 sm_90
# Order and barriers.
fence [.sc .acq_rel] <scope>
fence <.acquire .release> <scope>
fence .acquire .sync_restrict::shared::cluster .cluster sm_90
fence .release .sync_restrict::shared::cta .cluster sm_90
fence .mbarrier_init .release .cluster sm_90
fence .proxy .alias
fence .proxy .async [.global .shared::cta .shared::cluster] sm_90
fence .proxy .tensormap::generic <.acquire .release> <scope> sm_90
fence .proxy .async::generic .acquire .sync_restrict::shared::cluster .cluster sm_90
fence .proxy .async::generic .release .sync_restrict::shared::cta .cluster sm_90
membar <.cta .gl .sys>
membar .proxy .alias
bar [.cta] <.sync .arrive>
bar [.cta] .red .popc .u32
bar [.cta] .red <.and .or> .pred
bar .warp .sync
barrier [.cta] <.sync .arrive> [.aligned]
barrier [.cta] .red .popc [.aligned] .u32
barrier [.cta] .red <.and .or> [.aligned] .pred
barrier .cluster .arrive [.release .relaxed] [.aligned] sm_90
barrier .cluster .wait [.acquire] [.aligned] sm_90
# Exchange in a warp.
shfl .sync <.up .down .bfly .idx> .b32
vote .sync <.all .any .uni> .pred
vote .sync .ballot .b32
match <.any .all> .sync <.b32 .b64>
redux .sync <.add .min .max> <.u32 .s32>
redux .sync <.and .or .xor> .b32
redux .sync <.min .max> [.abs] [.NaN] .f32 sm_100a
activemask .b32
elect .sync sm_90
# Matrices.
set shared .shared .shared::cta
ldmatrix .sync .aligned .m8n8 <.x1 .x2 .x4> [.trans] [shared] .b16
ldmatrix .sync .aligned .m16n16 <.x1 .x2> .trans [shared] .b8 sm_100a
ldmatrix .sync .aligned .m16n16 <.x1 .x2> .trans [shared] .b8x16 <.b6x16_p32 .b4x16_p64> sm_100a
ldmatrix .sync .aligned .m8n16 <.x1 .x2 .x4> [shared] .b8x16 <.b6x16_p32 .b4x16_p64> sm_100a
stmatrix .sync .aligned .m8n8 <.x1 .x2 .x4> [.trans] [shared] .b16 sm_90
stmatrix .sync .aligned .m16n8 <.x1 .x2 .x4> .trans [shared] .b8 sm_100a
movmatrix .sync .aligned .m8n8 .trans .b16
set wshape .m16n16k16 .m8n32k16 .m32n8k16
set layout .row .col
set matrices .global .shared .shared::cta
wmma .load <.a .b> .sync .aligned <layout> <wshape> [matrices] <.f16 .bf16 .s8 .u8>
wmma .load <.a .b> .sync .aligned <layout> .m16n16k8 [matrices] .tf32
wmma .load .c .sync .aligned <layout> <wshape .m16n16k8> [matrices] <.f16 .f32 .s32>
wmma .store .d .sync .aligned <layout> <wshape .m16n16k8> [matrices] <.f16 .f32 .s32>
wmma .mma .sync .aligned <layout> <layout> <wshape> <.f16 .f32> <.f16 .f32> [.satfinite]
wmma .mma .sync .aligned <layout> <layout> <wshape> .f32 .bf16 .bf16 .f32
wmma .mma .sync .aligned <layout> <layout> .m16n16k8 .f32 .tf32 .tf32 .f32
wmma .mma .sync .aligned <layout> <layout> <wshape> .s32 .s8 .s8 .s32 [.satfinite]
wmma .mma .sync .aligned <layout> <layout> <wshape> .s32 .u8 .u8 .s32 [.satfinite]
# Asynchronous copies.
cp .async .ca .shared .global
cp .async <.ca .cg> <.shared .shared::cta> .global [.L2::cache_hint] [ahead]
cp .async <.commit_group .wait_all .wait_group>
cp .async .mbarrier .arrive [.noinc] [.shared .shared::cta] .b64
cp .async .bulk <.commit_group> sm_90
cp .async .bulk .wait_group [.read] sm_90
cp .async .bulk <.shared::cta .shared::cluster> .global .mbarrier::complete_tx::bytes [.L2::cache_hint] sm_90
cp .async .bulk .shared::cluster .global .mbarrier::complete_tx::bytes .multicast::cluster [.L2::cache_hint] sm_90
cp .async .bulk .shared::cluster .shared::cta .mbarrier::complete_tx::bytes sm_90
cp .async .bulk .global .shared::cta .bulk_group [.L2::cache_hint] sm_90
cp .async .bulk .global .shared::cta .bulk_group [.L2::cache_hint] .cp_mask sm_100
cp .async .bulk .prefetch .L2 .global [.L2::cache_hint] sm_90
cp .reduce .async .bulk .shared::cluster .shared::cta .mbarrier::complete_tx::bytes <.and .or .xor> .b32 sm_90
cp .reduce .async .bulk .shared::cluster .shared::cta .mbarrier::complete_tx::bytes .add <.u32 .s32 .u64> sm_90
cp .reduce .async .bulk .shared::cluster .shared::cta .mbarrier::complete_tx::bytes <.inc .dec> .u32 sm_90
cp .reduce .async .bulk .shared::cluster .shared::cta .mbarrier::complete_tx::bytes <.min .max> <.u32 .s32> sm_90
cp .reduce .async .bulk .global .shared::cta .bulk_group [.L2::cache_hint] <.and .or .xor> <.b32 .b64> sm_90
cp .reduce .async .bulk .global .shared::cta .bulk_group [.L2::cache_hint] .add <.u32 .s32 .u64 .f32 .f64> sm_90
cp .reduce .async .bulk .global .shared::cta .bulk_group [.L2::cache_hint] .add .noftz <.f16 .bf16> sm_90
cp .reduce .async .bulk .global .shared::cta .bulk_group [.L2::cache_hint] <.inc .dec> .u32 sm_90
cp .reduce .async .bulk .global .shared::cta .bulk_group [.L2::cache_hint] <.min .max> <.u32 .s32 .u64 .s64> sm_90
cp .reduce .async .bulk .global .shared::cta .bulk_group [.L2::cache_hint] <.min .max> <.f16 .bf16> sm_90
set dim .1d .2d .3d .4d .5d
set ctas .cta_group::1@100a .cta_group::2@100a
set many .multicast::cluster
set reduction .add .min .max .inc .dec .and .or .xor
set full .mbarrier::complete_tx::bytes
cp .async .bulk .tensor <dim> .shared::cta .global [.tile] <full> [ctas] [.L2::cache_hint] sm_90
cp .async .bulk .tensor <dim> .shared::cluster .global [.tile] <full> [many] [ctas] [.L2::cache_hint] sm_90
cp .async .bulk .tensor <dim> .global .shared::cta [.tile] .bulk_group [.L2::cache_hint] sm_90
cp .async .bulk .prefetch .tensor <dim> .L2 .global [.tile] [.L2::cache_hint] sm_90
cp .reduce .async .bulk .tensor <dim> .global .shared::cta <reduction> [.tile] .bulk_group [.L2::cache_hint] sm_90
set cluster .shared .shared::cta .shared::cluster
# mbarriers.
mbarrier .init [shared] .b64
mbarrier .inval [shared] .b64
mbarrier <.expect_tx .complete_tx> .relaxed <.cta .cluster> [cluster] .b64 sm_90
mbarrier <.expect_tx .complete_tx> [cluster] .b64 sm_90
mbarrier <.arrive .arrive_drop> [shared] .b64
mbarrier <.arrive .arrive_drop> [.expect_tx] [cluster] .b64 sm_90
mbarrier <.arrive .arrive_drop> [.expect_tx] <.release .relaxed> <.cta .cluster> [cluster] .b64 sm_90
mbarrier <.arrive .arrive_drop> .noComplete [shared] .b64
mbarrier <.arrive .arrive_drop> [.noComplete] .release .cta [shared] .b64
mbarrier .test_wait [.parity] [shared] .b64
mbarrier .test_wait [.parity] .acquire .cta [shared] .b64
mbarrier .test_wait [.parity] <.acquire .relaxed> <.cta .cluster> [shared] .b64 sm_90
mbarrier .try_wait [.parity] [shared] .b64 sm_90
mbarrier .try_wait [.parity] <.acquire .relaxed> <.cta .cluster> [shared] .b64 sm_90
mbarrier .pending_count .b64
# Tensor maps.
tensormap .replace .tile .global_address [.global .shared::cta] .b1024 .b64 sm_90a
tensormap .replace .tile <.rank .box_dim .global_dim .element_stride> [.global .shared::cta] .b1024 .b32 sm_90a
tensormap .replace .tile .global_stride [.global .shared::cta] .b1024 .b64 sm_90a
set modes .elemtype .interleave_layout .swizzle_mode .fill_mode
tensormap .replace .tile <modes> [.global .shared::cta] .b1024 .b32 sm_90a
tensormap .cp_fenceproxy .global .shared::cta .tensormap::generic .release <scope> .sync .aligned sm_90
)";

namespace {
/// The GPUs that have a form.
struct Since {
  int number = 0;
  bool isSpecific = false; // a target such as sm_90a or sm_100f

  bool has(std::string_view target) const {
    int own = 0;
    const char *const end = target.data() + target.size();
    const char *const last = std::from_chars(target.data() + std::min<size_t>(3, target.size()), end, own).ptr;
    return own >= number && (!isSpecific || last != end);
  }
};

struct Position {
  bool isOptional = false;
  std::vector<std::pair<std::string_view, Since>> alternatives;
};

struct Form {
  std::vector<Position> positions;
  Since since;
};
} // namespace

static Since sinceOf(std::string_view text) {
  Since since;
  std::from_chars(text.data(), text.data() + text.size(), since.number);
  since.isSpecific = text.ends_with('a');
  return since;
}

static std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find(at, begin), text.size());
    if (end > begin)
      parts.push_back(text.substr(begin, end - begin));
  }
  return parts;
}

using Sets = std::map<std::string_view, Position>;

/// Adds an alternative, or those of a set.
static void add(Position &position, std::string_view word, const Sets &sets) {
  if (const auto set = sets.find(word); set != sets.end()) {
    position.alternatives.insert(position.alternatives.end(), set->second.alternatives.begin(),
                                 set->second.alternatives.end());
    return;
  }
  const size_t end = std::min(word.find('@'), word.size());
  position.alternatives.emplace_back(word.substr(1, end - 1), sinceOf(word.substr(std::min(end + 1, word.size()))));
}

static Form parseForm(std::span<const std::string_view> words, const Sets &sets) {
  Form form;
  bool isOpen = false;
  for (std::string_view word : words) {
    if (word.starts_with("sm_")) {
      form.since = sinceOf(word.substr(3));
      continue;
    }
    if (!isOpen)
      form.positions.push_back({.isOptional = word[0] == '['});
    isOpen |= word[0] == '[' || word[0] == '<';
    word = word.substr(word.find_first_not_of("[<"));
    if (word.ends_with(']') || word.ends_with('>')) {
      isOpen = false;
      word.remove_suffix(1);
    }
    add(form.positions.back(), word, sets);
  }
  return form;
}

static std::map<std::string_view, std::vector<Form>> readTable() {
  std::map<std::string_view, std::vector<Form>> forms;
  Sets sets;
  for (const std::string_view line : split(table, '\n')) {
    const std::vector<std::string_view> words = split(line, ' ');
    if (words[0] == "#")
      continue;
    if (words[0] == "set" && words[1][0] != '<') {
      Position set;
      for (const std::string_view word : std::span(words).subspan(2))
        add(set, word, sets);
      sets[words[1]] = set;
      continue;
    }
    const auto first = std::ranges::find_if(words, [](std::string_view word) {
      return word[0] == '.' || word[0] == '[' || word[0] == '<' || word.starts_with("sm_");
    });
    const Form form = parseForm({first, words.end()}, sets);
    for (auto opcode = words.begin(); opcode != first; ++opcode)
      forms[*opcode].push_back(form);
  }
  return forms;
}

/// Modifiers whose order has a meaning: 1 a type, 2 a state space, 0 another one.
static int orderedKind(std::string_view modifier) {
  if (modifier.starts_with("shared") || modifier == "global")
    return 2;
  const size_t letters = modifier.starts_with("bf") || modifier.starts_with("tf") || modifier.starts_with("ue") ? 2 : 1;
  return modifier.size() > letters && std::string_view("busfet").find(modifier[0]) != std::string_view::npos &&
                 modifier[letters] >= '0' && modifier[letters] <= '9'
             ? 1
             : 0;
}

/// The GPUs that have the form with these modifiers; nothing unless they fill its positions, apart from optional ones,
/// and none is left.
static std::optional<Since> sinceOf(const Form &form, std::span<const std::string_view> modifiers) {
  Since since = form.since;
  uint64_t taken = 0;
  std::array<size_t, 3> next = {}; // by kind, the first that may follow
  for (const Position &position : form.positions) {
    bool isFilled = position.isOptional;
    for (size_t i = 0; i < modifiers.size(); ++i) {
      const auto kind = static_cast<size_t>(orderedKind(modifiers[i]));
      if (taken >> i & 1 || (kind > 0 && i < next[kind]))
        continue;
      const auto found =
          std::ranges::find(position.alternatives, modifiers[i], [](const auto &each) { return each.first; });
      if (found == position.alternatives.end())
        continue;
      taken |= uint64_t{1} << i;
      next[kind] = i + 1;
      since.number = std::max(since.number, found->second.number);
      since.isSpecific |= found->second.isSpecific;
      isFilled = true;
      break;
    }
    if (!isFilled)
      return std::nullopt;
  }
  return taken == (uint64_t{1} << modifiers.size()) - 1 ? std::optional(since) : std::nullopt;
}

/// Throws unless the PTX ISA has the instruction for the text's `.target`.
static void expectForm(const Decoder &decoder, std::span<const std::string_view> modifiers) {
  static const std::map<std::string_view, std::vector<Form>> forms = readTable();
  const auto known = forms.find(decoder.instruction.opcode);
  if (known == forms.end())
    return;
  const std::string_view target = decoder.builder.module.target;
  std::optional<Since> later;
  for (const Form &form : known->second)
    if (const std::optional<Since> since = sinceOf(form, modifiers)) {
      if (since->has(target))
        return;
      later = since;
    }
  if (later)
    decoder.wrong(
        fmt::format("'.target sm_{}{}' or above, but got '{}',", later->number, later->isSpecific ? "a" : "", target));
  decoder.wrong("modifiers that the PTX ISA combines");
}

void KnownForms::expect(const Decoder &decoder) {
  const ptx::Instruction &instruction = decoder.instruction;
  const auto modifiers = decoder.builder.function.modifiersOf(instruction);
  const char *const begin = instruction.opcode.data();
  const std::string_view last = modifiers.empty() ? instruction.opcode : modifiers.back();
  if (const std::string_view text(begin, static_cast<size_t>(last.data() + last.size() - begin));
      !known.contains(text)) {
    expectForm(decoder, modifiers);
    known.insert(text);
  }
}

} // namespace kiln::simulator
