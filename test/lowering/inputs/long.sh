#!/usr/bin/env bash
# Compiles the kernels of the file $1 for every kind of target, each in two minutes at most.
set -euo pipefail

compile() { # KERNEL LINKS ARGUMENTS
  local target
  for target in '--generic --emit=llvm' '--target=x86-64-v3 --emit=llvm' '--target=sm_80 --emit=ptx' '--target=sm_90a --emit=ptx'; do
    # shellcheck disable=SC2086
    timeout 120 kilnc "$file" --kernel="$1" --config="links=$2" --args="$3" $target -o /dev/null ||
      { echo "$1 with $2 links, $target: ended with status $?"; exit 1; }
  done
}
file=$1
compile chase 120 'i64[?], i64[?]'
compile scanned 120 'f32[?], f32[?], f32[?]'
compile packed 120 'f32[?x?], f32[?x?], f32[?x?]'
compile masked 120 'f32[?], f32[?], i32'
compile nested 60 'i32[?]'
