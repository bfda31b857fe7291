// Transcendental functions, extrema and bf16 conversions become arithmetic.
// RUN: kiln-opt %s --cpu-lower-math | FileCheck %s
// RUN: kiln-opt %s --cpu-lower-math="scale-instruction=true" | FileCheck %s --check-prefix=SCALE
// RUN: kiln-opt %s --cpu-lower-math="round-instruction=true" | FileCheck %s --check-prefix=ROUND

// Without the instruction, the exponent is added in integers. With it, the vector is scaled at once.
// CHECK-LABEL: @exp2
// CHECK-COUNT-5: math.fma
// CHECK: arith.shli
// CHECK-NOT: math.exp2
// SCALE-LABEL: @exp2
// SCALE-NOT: arith.cmpf
// SCALE: math.roundeven
// SCALE-COUNT-5: math.fma
// SCALE: llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"
func.func @exp2(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = math.exp2 %x : vector<16xf32>
  return %0 : vector<16xf32>
}

// A scalar does not use the instruction.
// SCALE-LABEL: @scalar
// SCALE-NOT: call_intrinsic
// SCALE: return
func.func @scalar(%x: f32) -> f32 {
  %0 = math.exp %x : f32
  return %0 : f32
}

// Only for few arguments do more than a few digits of 2/π matter. A branch tests whether any lane has such an argument,
// and only those lanes take its result.
// CHECK-LABEL: @angle
// CHECK-SAME: %[[X:.*]]: vector<16xf32>
// CHECK: %[[FAR:.*]] = arith.cmpf oge
// CHECK: %[[ANY:.*]] = vector.reduction <or>, %[[FAR]]
// CHECK: scf.if %[[ANY]]
// CHECK: arith.select %[[FAR]]
// CHECK: } else {
// CHECK-NEXT: scf.yield
// CHECK-NOT: math.{{sin|cos}}
// CHECK: return
func.func @angle(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = math.sin %x : vector<16xf32>
  return %0 : vector<16xf32>
}

// A remainder takes one division if the quotient is small. Otherwise a branch loops over multiples of the divisor.
// CHECK-LABEL: @remainder
// CHECK-SAME: %[[X:.*]]: vector<16xf32>, %[[Y:.*]]: vector<16xf32>
// CHECK: arith.divf
// CHECK: math.trunc
// CHECK: %[[FAR:.*]] = arith.cmpf oge
// CHECK: scf.if
// CHECK: scf.for
// CHECK: } else {
// CHECK-NEXT: scf.yield
// CHECK: math.copysign %{{.*}}, %[[X]]
// CHECK-NOT: arith.remf
// CHECK: return
func.func @remainder(%x: vector<16xf32>, %y: vector<16xf32>) -> vector<16xf32> {
  %0 = arith.remf %x, %y : vector<16xf32>
  return %0 : vector<16xf32>
}

// The x86 instruction returns %b if either is NaN. If %b is NaN, the result must be %a.
// CHECK-LABEL: @larger
// CHECK-SAME: %[[A:.*]]: vector<16xf32>, %[[B:.*]]: vector<16xf32>
// CHECK: %[[GREATER:.*]] = arith.cmpf ogt, %[[A]], %[[B]]
// CHECK: %[[MAX:.*]] = arith.select %[[GREATER]], %[[A]], %[[B]]
// CHECK: %[[NUMBER:.*]] = arith.cmpf ord, %[[B]], %[[B]]
// CHECK: %[[RESULT:.*]] = arith.select %[[NUMBER]], %[[MAX]], %[[A]]
// CHECK: return %[[RESULT]]
func.func @larger(%a: vector<16xf32>, %b: vector<16xf32>) -> vector<16xf32> {
  %0 = arith.maxnumf %a, %b : vector<16xf32>
  return %0 : vector<16xf32>
}

// CHECK-LABEL: @smaller
// CHECK: arith.cmpf olt, %arg0, %arg1 : f64
func.func @smaller(%a: f64, %b: f64) -> f64 {
  %0 = arith.minnumf %a, %b : f64
  return %0 : f64
}

// bf16 becomes i16 in parameters, memory, loops and constants.
// CHECK-LABEL: @carried
// CHECK-SAME: memref<?xi16, strided<[1]>>
// CHECK-NOT: bf16
// CHECK: arith.constant 16256 : i16
// CHECK: %[[WORD:.*]] = memref.load
// CHECK: %[[WIDE:.*]] = arith.extui %[[WORD]] : i16 to i32
// CHECK: arith.shli %[[WIDE]]
// CHECK: arith.trunci %{{.*}} : i32 to i16
// CHECK-NOT: bf16
// CHECK: return
func.func @carried(%v: memref<?xbf16, strided<[1]>>, %c: i1) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : bf16
  %0 = memref.load %v[%c0] : memref<?xbf16, strided<[1]>>
  %1 = arith.extf %0 : bf16 to f32
  %2 = arith.addf %1, %1 : f32
  %3 = arith.truncf %2 : f32 to bf16
  %4 = scf.if %c -> bf16 {
    scf.yield %3 : bf16
  } else {
    scf.yield %one : bf16
  }
  memref.store %4, %v[%c0] : memref<?xbf16, strided<[1]>>
  return
}

// The instruction flushes denormals, so they get an exponent before it, which is removed after it.
// ROUND-LABEL: @rounded
// ROUND-SAME: memref<16xi16>
// ROUND: %[[WORD:.*]] = arith.bitcast %{{.*}} : vector<16xf32> to vector<16xi32>
// ROUND: %[[EXPONENT:.*]] = arith.andi %[[WORD]], %{{.*}}
// ROUND: %[[SMALL:.*]] = arith.cmpi eq, %[[EXPONENT]], %
// ROUND: %[[LENT:.*]] = arith.ori %[[WORD]], %
// ROUND: %[[SAFE:.*]] = arith.select %[[SMALL]], %[[LENT]], %[[WORD]]
// ROUND: %[[REAL:.*]] = arith.bitcast %[[SAFE]] : vector<16xi32> to vector<16xf32>
// ROUND: %[[NARROW:.*]] = llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"(%[[REAL]]) : (vector<16xf32>) -> vector<16xbf16>
// ROUND: %[[HALF:.*]] = arith.bitcast %[[NARROW]] : vector<16xbf16> to vector<16xi16>
// ROUND: %[[BACK:.*]] = arith.subi %[[HALF]], %
// ROUND: %[[RESULT:.*]] = arith.select %[[SMALL]], %[[BACK]], %[[HALF]]
// ROUND: vector.store %[[RESULT]]
func.func @rounded(%x: vector<16xf32>, %v: memref<16xbf16>) {
  %c0 = arith.constant 0 : index
  %0 = arith.truncf %x : vector<16xf32> to vector<16xbf16>
  vector.store %0, %v[%c0] : memref<16xbf16>, vector<16xbf16>
  return
}

// A caller that permits denormals to be flushed gets the instruction alone.
// ROUND-LABEL: @flushes
// ROUND-NOT: arith.select
// ROUND: llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"(%arg0)
// ROUND-NOT: arith.select
// ROUND: return
func.func @flushes(%x: vector<16xf32>, %v: memref<16xbf16>) {
  %c0 = arith.constant 0 : index
  %0 = arith.truncf %x {cpu.flushes} : vector<16xf32> to vector<16xbf16>
  vector.store %0, %v[%c0] : memref<16xbf16>, vector<16xbf16>
  return
}

// An integer is converted to bf16 with one rounding, through f64 rounded to odd.
// CHECK-LABEL: @integer
// CHECK: arith.sitofp %arg0 : i32 to f64
// CHECK-NOT: bf16
func.func @integer(%x: i32, %v: memref<1xbf16>) {
  %c0 = arith.constant 0 : index
  %0 = arith.sitofp %x : i32 to bf16
  memref.store %0, %v[%c0] : memref<1xbf16>
  return
}
