#!/usr/bin/env bash
# Prints every stage of a kernel for each kind of target, and says which came out empty.
set -e
emit() {
  kilnc --kernel=add --args='f32[?], f32[?], f32[?]' --target="$1" --emit="$2" -o "$out"
  [ -s "$out" ] || echo "$1 $2: nothing"
}
out=$1
for stage in tile linalg loops llvm-dialect llvm asm obj; do
  for target in cpu cpu:generic x86-64-v3; do emit $target $stage; done
done
for stage in tile layouts exchanges simt llvm-dialect llvm ptx; do emit sm_80 $stage; done
echo all
