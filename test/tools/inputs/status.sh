#!/usr/bin/env bash
# Runs kilnc with mistakes and in poor places, and says which exit statuses were not the expected ones.
# $1: this folder; $2: a folder to work in.
inputs=$1
cd "$2" || exit 1
failures=0

# expect STATUS COMMAND
expect() {
  bash -c "$2" > said 2>&1
  local got=$?
  [ $got = "$1" ] && return
  echo "expected status $1, but got $got: $2"
  cat said
  failures=1
}

rows="kilnc $inputs/rows.mlir --emit=obj"
# The user's.
expect 2 "$rows --target=x"
expect 2 "$rows --target=pentium"
expect 2 "$rows --emit=ptx"
expect 2 "$rows --no-such-flag"
expect 2 "$rows --mlir-timing-display=x"
expect 2 "kilnc --kernel=$'\xff\xfe'"
expect 2 "kilnc --kernel=add --args=$'f32[\xff]'"
expect 2 "kilnc --kernel=add --args='f32[?], f32[?], f32[?]' --config=$'block=\xff'"
# The machine's: files, folders, memory.
expect 3 "$rows -o /dev/full"
expect 3 "kilnc none.cc"
expect 0 "TMPDIR= kilnc $inputs/scaled.cc --kernel=rows --args='f32[?x768], f32[?]'"
expect 3 "TMPDIR=/no/such/folder kilnc $inputs/scaled.cc --kernel=rows --args='f32[?x768], f32[?]'"
grep -q "which TMPDIR names, but could not write to '/no/such/folder': No such file or directory" said || failures=1
# Invalid values of variables, also during another error.
expect 2 "KILN_CACHE_BYTES=abc kilnc --kernel=gelu --run --grid=1 --args='f32[4], f32[4]'"
expect 2 "KILN_CACHE_BYTES=abc kilnc $inputs/scaled.cc --kernel=rows --run --grid=1 --args='f32[2x768], f32[2]'"
# Kiln's own, with and without a place for the reproducer.
touch file
expect 4 "KILN_DUMP=dump kilnc $inputs/fatal.mlir --emit=obj -o out"
expect 4 "KILN_DUMP=file kilnc $inputs/fatal.mlir --emit=obj -o out"
expect 4 "TMPDIR=/no/such/folder kilnc $inputs/fatal.mlir --emit=obj -o out"
exit $failures
