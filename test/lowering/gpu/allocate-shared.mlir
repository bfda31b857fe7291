// Buffers that are never alive together share bytes. The function's attribute has the total.
// RUN: kiln-opt %s --gpu-allocate-shared | FileCheck %s

#row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [* *]>

// A buffer is alive from its first use to its last. Here the second begins after the end of the first.
// CHECK-LABEL: func @one_after_the_other
// CHECK-SAME: simt.shared_bytes = 128 : i64
// CHECK: simt.buffer {offset = 0 : i64}
// CHECK: simt.buffer {offset = 0 : i64}
func.func @one_after_the_other(%x: tensor<32xf32, #row>) attributes {tile.kernel} {
  %a = simt.buffer : memref<128xi8, 3>
  %b = simt.buffer : memref<128xi8, 3>
  simt.write %x, %a strides [4] : tensor<32xf32, #row>, memref<128xi8, 3>
  %0 = simt.read %a strides [4] : memref<128xi8, 3> -> tensor<32xf32, #row>
  simt.write %0, %b strides [4] : tensor<32xf32, #row>, memref<128xi8, 3>
  %1 = simt.read %b strides [4] : memref<128xi8, 3> -> tensor<32xf32, #row>
  return
}

// Two buffers that are alive together do not overlap, and each begins at a multiple of 128 bytes.
// CHECK-LABEL: func @together
// CHECK-SAME: simt.shared_bytes = 384 : i64
// CHECK-SAME: simt.shared_parts = ["0 130 {{.*}}allocate-shared.mlir:{{[0-9]+}}", "256 128 {{.*}}allocate-shared.mlir:{{[0-9]+}}"]
// CHECK: simt.buffer {offset = 0 : i64} : memref<130xi8, 3>
// CHECK: simt.buffer {offset = 256 : i64} : memref<128xi8, 3>
func.func @together(%x: tensor<32xf32, #row>) attributes {tile.kernel} {
  %a = simt.buffer : memref<130xi8, 3>
  %b = simt.buffer : memref<128xi8, 3>
  simt.write %x, %a strides [4] : tensor<32xf32, #row>, memref<130xi8, 3>
  simt.write %x, %b strides [4] : tensor<32xf32, #row>, memref<128xi8, 3>
  %0 = simt.read %a strides [4] : memref<130xi8, 3> -> tensor<32xf32, #row>
  %1 = simt.read %b strides [4] : memref<128xi8, 3> -> tensor<32xf32, #row>
  return
}

// If a loop reads a buffer that it did not write in the same iteration, the next iteration reads it again. So the
// buffer is alive through the whole loop, and the body's own buffer does not overlap it.
// CHECK-LABEL: func @loop
// CHECK-SAME: simt.shared_bytes = 256 : i64
func.func @loop(%x: tensor<32xf32, #row>, %n: i64) attributes {tile.kernel} {
  %outer = simt.buffer : memref<128xi8, 3>
  simt.write %x, %outer strides [4] : tensor<32xf32, #row>, memref<128xi8, 3>
  scf.for %i = %n to %n step %n : i64 {
    %0 = simt.read %outer strides [4] : memref<128xi8, 3> -> tensor<32xf32, #row>
    %inner = simt.buffer : memref<128xi8, 3>
    simt.write %0, %inner strides [4] : tensor<32xf32, #row>, memref<128xi8, 3>
    %1 = simt.read %inner strides [4] : memref<128xi8, 3> -> tensor<32xf32, #row>
  }
  return
}

// The two sides of a branch share bytes.
// CHECK-LABEL: func @branches
// CHECK-SAME: simt.shared_bytes = 128 : i64
func.func @branches(%x: tensor<32xf32, #row>, %p: i1) attributes {tile.kernel} {
  scf.if %p {
    %a = simt.buffer : memref<128xi8, 3>
    simt.write %x, %a strides [4] : tensor<32xf32, #row>, memref<128xi8, 3>
    %0 = simt.read %a strides [4] : memref<128xi8, 3> -> tensor<32xf32, #row>
  } else {
    %a = simt.buffer : memref<128xi8, 3>
    simt.write %x, %a strides [4] : tensor<32xf32, #row>, memref<128xi8, 3>
    %0 = simt.read %a strides [4] : memref<128xi8, 3> -> tensor<32xf32, #row>
  }
  return
}

// A kernel without shared memory has the size 0. A function that is no kernel has none.
// CHECK-LABEL: func @none()
// CHECK-SAME: simt.shared_bytes = 0 : i64
func.func @none() attributes {tile.kernel} {
  return
}
// CHECK-LABEL: func @other()
// CHECK-NOT: simt.shared_bytes
// CHECK: return
func.func @other() {
  return
}

// A ring of a loop inside of another: its last slot is empty outside of its own loop, and has the buffer of the results
// that fits there. The larger one is behind the ring.
// CHECK-LABEL: func @idle_slots
// CHECK-SAME: simt.shared_bytes = 384 : i64
// CHECK: simt.buffer {idle = 256 : i64, offset = 0 : i64}
// CHECK: simt.buffer {offset = 256 : i64}
// CHECK-LABEL: func @small_slots
// CHECK-SAME: simt.shared_bytes = 640 : i64
// CHECK: simt.buffer {idle = 256 : i64, offset = 0 : i64}
// CHECK: simt.buffer {offset = 384 : i64}
func.func @idle_slots(%x: tensor<32xf32, #row>, %n: i64) attributes {tile.kernel} {
  %ring = simt.buffer {idle = 256} : memref<384xi8, 3>
  scf.for %i = %n to %n step %n : i64 {
    scf.for %k = %n to %n step %n : i64 {
      %0 = simt.read %ring strides [4] : memref<384xi8, 3> -> tensor<32xf32, #row>
    }
    %results = simt.buffer : memref<128xi8, 3>
    simt.write %x, %results strides [4] : tensor<32xf32, #row>, memref<128xi8, 3>
    %1 = simt.read %results strides [4] : memref<128xi8, 3> -> tensor<32xf32, #row>
  }
  return
}
func.func @small_slots(%x: tensor<32xf32, #row>, %n: i64) attributes {tile.kernel} {
  %ring = simt.buffer {idle = 256} : memref<384xi8, 3>
  scf.for %i = %n to %n step %n : i64 {
    scf.for %k = %n to %n step %n : i64 {
      %0 = simt.read %ring strides [4] : memref<384xi8, 3> -> tensor<32xf32, #row>
    }
    %results = simt.buffer : memref<256xi8, 3>
    simt.write %x, %results strides [4] : tensor<32xf32, #row>, memref<256xi8, 3>
    %1 = simt.read %results strides [4] : memref<256xi8, 3> -> tensor<32xf32, #row>
  }
  return
}

// A buffer that is live during the ring's loop is not placed in its slots.
// CHECK-LABEL: func @through_the_loop
// CHECK-SAME: simt.shared_bytes = 512 : i64
func.func @through_the_loop(%x: tensor<32xf32, #row>, %n: i64) attributes {tile.kernel} {
  %ring = simt.buffer {idle = 256} : memref<384xi8, 3>
  scf.for %i = %n to %n step %n : i64 {
    %row = simt.buffer : memref<128xi8, 3>
    simt.write %x, %row strides [4] : tensor<32xf32, #row>, memref<128xi8, 3>
    scf.for %k = %n to %n step %n : i64 {
      %0 = simt.read %ring strides [4] : memref<384xi8, 3> -> tensor<32xf32, #row>
    }
    %1 = simt.read %row strides [4] : memref<128xi8, 3> -> tensor<32xf32, #row>
  }
  return
}

// Empty slots of a ring that no loop reads are not used.
// CHECK-LABEL: func @unread
// CHECK-SAME: simt.shared_bytes = 384 : i64
func.func @unread() attributes {tile.kernel} {
  %ring = simt.buffer {idle = 256} : memref<384xi8, 3>
  return
}
