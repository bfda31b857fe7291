#!/usr/bin/env bash
# Has kilnc write stages into the folder $1, and then once more where links stand in their place.
set -euo pipefail

export KILN_DUMP=$1/dump
dump() { kilnc --kernel=add --run --grid=1 --args='f32[16], f32[16], f32[16]' 2>&1; }
mkdir -p "$KILN_DUMP"
dump
folder=$(echo "$KILN_DUMP"/add-*)
echo kept > "$1/victim"
ln -sf "$1/victim" "$folder/00-tile.mlir"
dump
grep -qx kept "$1/victim"
[[ ! -L $folder/00-tile.mlir ]]
mv "$folder" "$1/moved"
ln -s "$1/moved" "$folder"
! dump
