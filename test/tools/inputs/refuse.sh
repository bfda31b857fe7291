#!/usr/bin/env bash
# Gives kiln-opt and kilnc one module after the other and prints what they say, and their exit status where it is not 2.
# $1: the modules' folder; then their names.
folder=$1
shift
for name in "$@"; do
  for program in kiln-opt kilnc; do
    $program "$folder/$name.mlir" 2>&1
    status=$?
    [ $status = 2 ] || echo "expected status 2, but got $status: $program $name"
  done
done
