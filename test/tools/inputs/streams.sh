#!/usr/bin/env bash
# Runs programs with streams that are closed, full or pipes without a reader, and says which exit statuses were not the
# expected ones. $1: a module for kiln-opt.
failures=0

# expect STATUS COMMAND: what bash gets from COMMAND, in which `broken` is the number of a pipe without a reader.
expect() {
  exec 7> >(:)
  wait $!
  bash -c "${2//broken/7}" 2> /dev/null 7>&7
  local got=$?
  exec 7>&-
  [ $got = "$1" ] && return
  echo "expected status $1, but got $got: $2"
  failures=1
}

add="kilnc --kernel=add --args='f32[?], f32[?], f32[?]'"
# Results: lost, they are an error.
for program in 'kilnc --list' 'kilnc --help' "$add --emit=asm" 'gpt2 --help' 'gpt2 train --help' 'gpt2 info' \
  'kiln-bench --help' 'kiln-opt --help' 'kilnc --version' 'kiln-sim --version' 'gpt2 --version' "kiln-opt $1"; do
  expect 0 "$program > /dev/null"
  for stream in '> /dev/full' '>&-' '>&broken'; do
    expect 3 "$program $stream"
  done
done
# Messages: lost, they change nothing.
for stream in '2> /dev/full' '2>&-' '2>&broken' '0>&- 1>&- 2>&-'; do
  expect 2 "gpt2 trian $stream"
  expect 2 "kiln-bench sorting $stream"
  expect 3 "kiln-opt $1.none $stream"
  expect 2 "kilnc --emit=more $stream"
done
for stream in '2> /dev/full' '2>&-' '2>&broken'; do
  expect 0 "$add --emit=llvm --mlir-print-ir-after-all $stream > /dev/null"
  expect 0 "KILN_CACHE=/dev/null/folder gpt2 info $stream > /dev/null"
done
# Files that take no more.
expect 3 "$add -o /dev/full"
expect 3 "kiln-opt $1 -o /dev/full"
exit $failures
