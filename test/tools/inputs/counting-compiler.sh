#!/bin/sh
# The C++ compiler, which writes a line into the file LOG for each call.
echo compiled >> "$LOG"
exec c++ "$@"
