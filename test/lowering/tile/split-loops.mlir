// Iterations that need no mask get a loop of their own.
// RUN: kiln-opt %s --tile-split-loops | FileCheck %s

// The mask of a causal score is column − row ≤ m − n, truncated to 32 bits, and decreases with n. It is all true up to
// n = m − 63, if m − n fits 32 bits. Neither loop ends later than the original, so their counters need no more bits.
// CHECK-LABEL: @causal
// CHECK-SAME: %[[X:.*]]: memref<?xf32>
// CHECK-DAG: %[[M:.*]] = arith.muli %{{.*}}, %c64_i64 : i64
// CHECK-DAG: %[[END:.*]] = tile.dim %[[X]], 0
// CHECK-DAG: %[[ROW:.*]] = tile.reshape %{{.*}} : tensor<48xi32> -> tensor<48x1xi32>
// CHECK: %[[REST:.*]] = arith.subi %[[M]], %{{.*}} : i64
// CHECK: %[[SUM:.*]] = arith.addi %{{.*}}, %[[REST]] : i64
// CHECK: %[[BOUND:.*]] = arith.subi %[[SUM]], %c62_i64 : i64
// CHECK: %[[FITS:.*]] = arith.cmpi sle, %{{.*}}, %c2147483647_i64 : i64
// CHECK: %[[MASKED:.*]] = arith.select %[[FITS]], %[[BOUND]], %c0_i64 : i64

// The load is inside its view up to n = T − 64.
// CHECK: %[[OWN:.*]] = tile.dim %[[X]], 0
// CHECK: %[[LEFT:.*]] = arith.addi %{{.*}}, %[[OWN]]
// CHECK: %[[LOADED:.*]] = arith.subi %[[LEFT]], %c63_i64 : i64
// CHECK: arith.minsi %[[MASKED]], %[[LOADED]]
// CHECK: arith.divui
// CHECK: %[[GRID:.*]] = arith.addi %c0_i64, %{{.*}} : i64
// CHECK: %[[MIDDLE:.*]] = arith.maxsi %[[GRID]], %c0_i64
// CHECK: %[[MIDDLE_END:.*]] = arith.minsi %[[MIDDLE]], %[[END]]
// CHECK: %[[INSIDE:.*]] = scf.for %{{.*}} = %c0_i64 to %[[MIDDLE_END]] step %c16_i64 iter_args(%[[ACC:.*]] = %cst)
// CHECK-NEXT: %[[S:.*]] = tile.load %{{.*}} {tile.inside = array<i64: 0>}
// CHECK-NEXT: %[[LINE:.*]] = tile.reshape %[[S]]
// CHECK-NEXT: %[[ROWS:.*]] = tile.broadcast %[[LINE]]
// CHECK-NEXT: %[[NEXT:.*]] = arith.addf %[[ACC]], %[[ROWS]]
// CHECK-NEXT: scf.yield %[[NEXT]]

// The masked loop has a limit for each row, clamped to the range of the position differences.
// CHECK: %[[ALL:.*]] = scf.for %[[N:.*]] = %[[MIDDLE]] to %[[END]] step %c16_i64 iter_args(%{{.*}} = %[[INSIDE]])
// CHECK: tile.load %{{.*}}[%[[N]]] : memref
// CHECK: %[[LIMIT:.*]] = arith.trunci
// CHECK: %[[ATLEAST:.*]] = arith.maxsi %[[LIMIT]], %c-48_i32
// CHECK: %[[NEAR:.*]] = arith.minsi %[[ATLEAST]], %c64_i32
// CHECK: %[[LIMITS:.*]] = tile.splat %[[NEAR]] : i32 -> tensor<48x1xi32>
// CHECK: %[[LAST:.*]] = arith.addi %[[ROW]], %[[LIMITS]]
// CHECK: %[[LASTS:.*]] = tile.broadcast %[[LAST]]
// CHECK: %[[MASK:.*]] = arith.cmpi sle, %{{.*}}, %[[LASTS]]
// CHECK: arith.select %[[MASK]]
// CHECK: tile.store %[[ALL]]
func.func @causal(%x: memref<?xf32>, %y: memref<48x64xf32>) attributes {tile.kernel} {
  %c0_i64 = arith.constant 0 : i64
  %c16_i64 = arith.constant 16 : i64
  %c64_i64 = arith.constant 64 : i64
  %cst = arith.constant dense<0.0> : tensor<48x64xf32>
  %p = tile.program_id 0
  %m = arith.muli %p, %c64_i64 : i64
  %T = tile.dim %x, 0 : memref<?xf32>
  %columns = tile.iota : tensor<64xi32>
  %column = tile.reshape %columns : tensor<64xi32> -> tensor<1x64xi32>
  %column2 = tile.broadcast %column : tensor<1x64xi32> -> tensor<48x64xi32>
  %rows = tile.iota : tensor<48xi32>
  %row = tile.reshape %rows : tensor<48xi32> -> tensor<48x1xi32>
  %row2 = tile.broadcast %row : tensor<48x1xi32> -> tensor<48x64xi32>
  %difference = arith.subi %column2, %row2 : tensor<48x64xi32>
  %sum = scf.for %n = %c0_i64 to %T step %c16_i64 iter_args(%acc = %cst) -> (tensor<48x64xf32>) : i64 {
    %s = tile.load %x[%n] : memref<?xf32> -> tensor<64xf32>
    %line = tile.reshape %s : tensor<64xf32> -> tensor<1x64xf32>
    %tile = tile.broadcast %line : tensor<1x64xf32> -> tensor<48x64xf32>
    %limit = arith.subi %m, %n : i64
    %cut = arith.trunci %limit : i64 to i32
    %limits = tile.splat %cut : i32 -> tensor<48x64xi32>
    %mask = arith.cmpi sle, %difference, %limits : tensor<48x64xi32>
    %seen = arith.select %mask, %tile, %cst : tensor<48x64xi1>, tensor<48x64xf32>
    %next = arith.addf %acc, %seen : tensor<48x64xf32>
    scf.yield %next : tensor<48x64xf32>
  }
  tile.store %sum, %y[%c0_i64, %c0_i64] : tensor<48x64xf32>, memref<48x64xf32>
  return
}

// A conjunction of two masks, one true up to a position and the other from a position on: three loops. A 64-bit sum of
// positions and a scalar does not wrap if the scalar is an extent.
// CHECK-LABEL: @window
// CHECK: scf.for %{{.*}} = %c0_i64 to
// CHECK: arith.cmpi slt
// CHECK: arith.cmpi sge
// CHECK: arith.andi
// CHECK: arith.select
// CHECK: scf.for
// CHECK-NOT: arith.{{cmpi|andi|select}}
// CHECK: scf.yield
// CHECK: scf.for
// CHECK: arith.andi
// CHECK: arith.select
// CHECK: return
func.func @window(%x: memref<?xi64>) -> tensor<8xi64> attributes {tile.kernel} {
  %c0_i64 = arith.constant 0 : i64
  %c4_i64 = arith.constant 4 : i64
  %c100_i64 = arith.constant 100 : i64
  %low = arith.constant dense<100> : tensor<8xi64>
  %cst = arith.constant dense<1> : tensor<8xi64>
  %T = tile.dim %x, 0 : memref<?xi64>
  %ends = tile.splat %T : i64 -> tensor<8xi64>
  %positions = tile.iota : tensor<8xi64>
  %sum = scf.for %n = %c0_i64 to %T step %c4_i64 iter_args(%acc = %cst) -> (tensor<8xi64>) : i64 {
    %begin = tile.splat %n : i64 -> tensor<8xi64>
    %at = arith.addi %begin, %positions : tensor<8xi64>
    %below = arith.cmpi slt, %at, %ends : tensor<8xi64>
    %above = arith.cmpi sge, %at, %low : tensor<8xi64>
    %mask = arith.andi %below, %above : tensor<8xi1>
    %seen = arith.select %mask, %at, %cst : tensor<8xi1>, tensor<8xi64>
    %next = arith.muli %acc, %seen : tensor<8xi64>
    scf.yield %next : tensor<8xi64>
  }
  return %sum : tensor<8xi64>
}

// A sum of a position and a scalar argument may wrap. A loop-invariant mask needs no loop of its own, nor does one that
// moves by two for each position.
// CHECK-LABEL: @kept
// CHECK-COUNT-1: scf.for
// CHECK-NOT: scf.for
// CHECK: return
func.func @kept(%x: memref<?xi64>, %limit: i64) -> tensor<8xi64> attributes {tile.kernel} {
  %c0_i64 = arith.constant 0 : i64
  %c4_i64 = arith.constant 4 : i64
  %cst = arith.constant dense<1> : tensor<8xi64>
  %T = tile.dim %x, 0 : memref<?xi64>
  %limits = tile.splat %limit : i64 -> tensor<8xi64>
  %ends = tile.splat %T : i64 -> tensor<8xi64>
  %positions = tile.iota : tensor<8xi64>
  %sum = scf.for %n = %c0_i64 to %T step %c4_i64 iter_args(%acc = %cst) -> (tensor<8xi64>) : i64 {
    %begin = tile.splat %n : i64 -> tensor<8xi64>
    %at = arith.addi %begin, %positions : tensor<8xi64>
    %unknown = arith.cmpi slt, %at, %limits : tensor<8xi64>
    %same = arith.cmpi slt, %positions, %ends : tensor<8xi64>
    %twice = arith.addi %n, %n : i64
    %twos = tile.splat %twice : i64 -> tensor<8xi64>
    %fast = arith.cmpi slt, %positions, %twos : tensor<8xi64>
    %both = arith.andi %unknown, %same : tensor<8xi1>
    %mask = arith.andi %both, %fast : tensor<8xi1>
    %seen = arith.select %mask, %at, %cst : tensor<8xi1>, tensor<8xi64>
    %next = arith.muli %acc, %seen : tensor<8xi64>
    scf.yield %next : tensor<8xi64>
  }
  return %sum : tensor<8xi64>
}

// If a load does not move along a dimension, it is inside in all iterations or in none. If it is outside, no iteration
// is split off.
// CHECK-LABEL: @still
// CHECK: %[[H:.*]] = tile.program_id 1
// CHECK: %[[HEADS:.*]] = tile.dim %{{.*}}, 0
// CHECK: %[[LEFT:.*]] = arith.addi %{{.*}}, %[[HEADS]]
// CHECK: %[[THERE:.*]] = arith.cmpi sge, %[[LEFT]], %c1_i64
// CHECK: %[[SELECTED:.*]] = arith.select %[[THERE]], %{{.*}}, %c0_i64
// CHECK: %[[MIDDLE:.*]] = arith.maxsi %[[SELECTED]], %c0_i64
// CHECK: scf.for %{{.*}} = %c0_i64 to
// CHECK: tile.load %{{.*}} {tile.inside = array<i64: 0, 1>}
// CHECK: scf.for %{{.*}} = %[[MIDDLE]] to
// CHECK: tile.load %{{.*}}[%[[H]], %{{.*}}] : memref
func.func @still(%x: memref<?x?xi64>, %y: memref<1x8xi64>) attributes {tile.kernel} {
  %c0_i64 = arith.constant 0 : i64
  %c8_i64 = arith.constant 8 : i64
  %cst = arith.constant dense<1> : tensor<1x8xi64>
  %h = tile.program_id 1
  %T = tile.dim %x, 1 : memref<?x?xi64>
  %positions = tile.iota : tensor<8xi64>
  %line = tile.reshape %positions : tensor<8xi64> -> tensor<1x8xi64>
  %sum = scf.for %n = %c0_i64 to %T step %c8_i64 iter_args(%acc = %cst) -> (tensor<1x8xi64>) : i64 {
    %s = tile.load %x[%h, %n] : memref<?x?xi64> -> tensor<1x8xi64>
    %left = arith.subi %T, %n : i64
    %ends = tile.splat %left : i64 -> tensor<1x8xi64>
    %mask = arith.cmpi slt, %line, %ends : tensor<1x8xi64>
    %seen = arith.select %mask, %s, %cst : tensor<1x8xi1>, tensor<1x8xi64>
    %next = arith.addi %acc, %seen : tensor<1x8xi64>
    scf.yield %next : tensor<1x8xi64>
  }
  tile.store %sum, %y[%c0_i64, %c0_i64] : tensor<1x8xi64>, memref<1x8xi64>
  return
}

// A store that moves with the position is marked as inside, like a load.
// CHECK-LABEL: @stores
// CHECK: scf.for
// CHECK: tile.store %{{.*}} {tile.inside = array<i64: 0>}
// CHECK: scf.for
// CHECK-NOT: tile.inside
// CHECK: return
func.func @stores(%x: memref<?xi64>) attributes {tile.kernel} {
  %c0_i64 = arith.constant 0 : i64
  %c8_i64 = arith.constant 8 : i64
  %cst = arith.constant dense<1> : tensor<8xi64>
  %T = tile.dim %x, 0 : memref<?xi64>
  %positions = tile.iota : tensor<8xi64>
  scf.for %n = %c0_i64 to %T step %c8_i64 : i64 {
    %left = arith.subi %T, %n : i64
    %ends = tile.splat %left : i64 -> tensor<8xi64>
    %mask = arith.cmpi slt, %positions, %ends : tensor<8xi64>
    %seen = arith.select %mask, %positions, %cst : tensor<8xi1>, tensor<8xi64>
    tile.store %seen, %x[%n] : tensor<8xi64>, memref<?xi64>
  }
  return
}

// Each row has a lower and an upper limit for its columns. Iterations between the largest lower and the smallest upper
// limit need no mask, and later ones only the upper. Limits are known not to be negative. A test shows whether the
// position fits 32 bits.
// CHECK-LABEL: @limits
// CHECK-DAG: %[[T:.*]] = tile.dim %{{.*}}, 0
// CHECK-DAG: %[[FROM:.*]] = arith.maxsi %{{.*}}, %{{.*}} : tensor<4x1xi32>
// CHECK-DAG: %[[TO:.*]] = arith.maxsi %{{.*}}, %{{.*}} : tensor<4x1xi32>
// CHECK: %[[FROMS:.*]] = tile.reduce max %[[FROM]] axis 1
// CHECK: %[[LAST_FROM:.*]] = tile.reduce max %[[FROMS]] axis 0
// CHECK: %[[WIDE:.*]] = arith.extsi %[[LAST_FROM]] : i32 to i64
// CHECK: %[[LARGEST:.*]] = arith.addi %{{.*}}, %[[T]] : i64
// CHECK: arith.cmpi sle, %[[LARGEST]], %c2147483647_i64
// CHECK: %[[TOS:.*]] = tile.reduce min %[[TO]] axis 1
// CHECK: tile.reduce min %[[TOS]] axis 0
// CHECK: scf.for
// CHECK: arith.cmpi sge
// CHECK: arith.cmpi slt
// CHECK: scf.yield
// CHECK: scf.for
// CHECK-NOT: arith.{{cmpi|andi|select}}
// CHECK: scf.yield
// CHECK: scf.for
// CHECK-NOT: arith.cmpi sge
// CHECK: arith.cmpi slt
// CHECK: scf.yield
// CHECK: return
func.func @limits(%x: memref<?xf32>, %ranges: memref<?x2xi32>) -> tensor<4x8xf32> attributes {tile.kernel} {
  %c0_i64 = arith.constant 0 : i64
  %c1_i64 = arith.constant 1 : i64
  %c8_i64 = arith.constant 8 : i64
  %zeros = arith.constant dense<0> : tensor<4x1xi32>
  %cst = arith.constant dense<0.0> : tensor<4x8xf32>
  %T = tile.dim %x, 0 : memref<?xf32>
  %r0 = tile.load %ranges[%c0_i64, %c0_i64] : memref<?x2xi32> -> tensor<4x1xi32>
  %r1 = tile.load %ranges[%c0_i64, %c1_i64] : memref<?x2xi32> -> tensor<4x1xi32>
  %from = arith.maxsi %r0, %zeros : tensor<4x1xi32>
  %to = arith.maxsi %r1, %zeros : tensor<4x1xi32>
  %columns = tile.iota : tensor<8xi32>
  %line = tile.reshape %columns : tensor<8xi32> -> tensor<1x8xi32>
  %column = tile.broadcast %line : tensor<1x8xi32> -> tensor<4x8xi32>
  %sum = scf.for %n = %c0_i64 to %T step %c8_i64 iter_args(%acc = %cst) -> (tensor<4x8xf32>) : i64 {
    %s = tile.load %x[%n] : memref<?xf32> -> tensor<8xf32>
    %row = tile.reshape %s : tensor<8xf32> -> tensor<1x8xf32>
    %tile = tile.broadcast %row : tensor<1x8xf32> -> tensor<4x8xf32>
    %cut = arith.trunci %n : i64 to i32
    %corner = tile.splat %cut : i32 -> tensor<4x1xi32>
    %low = arith.subi %from, %corner : tensor<4x1xi32>
    %lows = tile.broadcast %low : tensor<4x1xi32> -> tensor<4x8xi32>
    %high = arith.subi %to, %corner : tensor<4x1xi32>
    %highs = tile.broadcast %high : tensor<4x1xi32> -> tensor<4x8xi32>
    %above = arith.cmpi sge, %column, %lows : tensor<4x8xi32>
    %below = arith.cmpi slt, %column, %highs : tensor<4x8xi32>
    %mask = arith.andi %above, %below : tensor<4x8xi1>
    %seen = arith.select %mask, %tile, %cst : tensor<4x8xi1>, tensor<4x8xf32>
    %next = arith.addf %acc, %seen : tensor<4x8xf32>
    scf.yield %next : tensor<4x8xf32>
  }
  return %sum : tensor<4x8xf32>
}

// Limits of unknown sign may wrap when the position is subtracted. A position truncated to 8 bits is not
// monotonic.
// CHECK-LABEL: @wrapping
// CHECK-COUNT-1: scf.for
// CHECK-NOT: scf.for
// CHECK: return
func.func @wrapping(%x: memref<?xi32>, %limits: memref<8xi32>) -> tensor<8xi32> attributes {tile.kernel} {
  %c0_i64 = arith.constant 0 : i64
  %c8_i64 = arith.constant 8 : i64
  %cst = arith.constant dense<0> : tensor<8xi32>
  %hundred = arith.constant dense<100> : tensor<8xi8>
  %T = tile.dim %x, 0 : memref<?xi32>
  %to = tile.load %limits[%c0_i64] : memref<8xi32> -> tensor<8xi32>
  %column = tile.iota : tensor<8xi32>
  %sum = scf.for %n = %c0_i64 to %T step %c8_i64 iter_args(%acc = %cst) -> (tensor<8xi32>) : i64 {
    %cut = arith.trunci %n : i64 to i32
    %corner = tile.splat %cut : i32 -> tensor<8xi32>
    %high = arith.subi %to, %corner : tensor<8xi32>
    %below = arith.cmpi slt, %column, %high : tensor<8xi32>
    %short = arith.trunci %n : i64 to i8
    %shorts = tile.splat %short : i8 -> tensor<8xi8>
    %above = arith.cmpi slt, %hundred, %shorts : tensor<8xi8>
    %mask = arith.andi %above, %below : tensor<8xi1>
    %seen = arith.select %mask, %column, %cst : tensor<8xi1>, tensor<8xi32>
    %next = arith.addi %acc, %seen : tensor<8xi32>
    scf.yield %next : tensor<8xi32>
  }
  return %sum : tensor<8xi32>
}
