# Prints the config of kernel `scale` of a file, tuned.cc, that takes the fewest cycles: of all that its constraint allows,
# each in a process of its own. The first of equals. Arguments: the file, then the flags of the launch.
file=$1
shift
for twice in 0 1; do
  for block in 32 64 128 512; do
    kilnc "$file" --kernel=scale --run --repeat=1 "--config=block=$block,twice=$twice" "$@" |
      sed -E "s/.*programs: ([0-9.]+) cycles.*/\1 block=$block,twice=$twice/"
  done
done | sort -s -g -k1,1 | head -n 1 | cut -d ' ' -f 2
