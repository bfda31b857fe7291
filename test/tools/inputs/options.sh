#!/usr/bin/env bash
# Gives kiln-opt one option after the other and prints what it says, and its exit status where that is not 2.
# $1: a module; then the options.
module=$1
shift
for option in "$@"; do
  kiln-opt "$module" "$option" 2>&1
  status=$?
  [ $status = 2 ] || echo "expected status 2, but got $status: $option"
done
