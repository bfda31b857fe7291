#!/usr/bin/env bash
# Gives kiln-opt and kilnc files that cannot be read or written, and prints what they say with their exit status.
# $1: a module; $2: a folder to work in.
module=$1
cd "$2" || exit 1

# try COMMAND: in bash, lest it end this script.
try() {
  bash -c "$1" 2>&1 > /dev/null
  echo "status $?"
}

touch linked
for program in kiln-opt 'kilnc --emit=obj'; do
  echo "== ${program%% *}: reading"
  try "$program none.mlir"
  try "$program folder.mlir"
  try "$program rows.mlir/below.mlir"
  try "$program endless.mlir"
  [ "$program" != kiln-opt ] || try "$program - 0<&-"
  [ "$program" != kiln-opt ] || try "$program - < $module"
  echo "== ${program%% *}: writing"
  try "$program rows.mlir -o none/out"
  try "$program rows.mlir -o folder"
  try "$program rows.mlir -o rows.mlir/out"
  try "$program rows.mlir -o /dev/full"
  try "ulimit -f 0; $program rows.mlir -o cut"
  try "$program rows.mlir -o ''"
  try "$program rows.mlir -o link && [ -L link ] && [ -s linked ]"
  try "cp rows.mlir same.mlir && $program same.mlir -o same.mlir && ! cmp -s rows.mlir same.mlir"
done
ls
