"""Checks that the medians in the CSV of two measurements are their means: medians.py FILE."""

import csv
import math
import sys

with open(sys.argv[1]) as file:
    rows = list(csv.DictReader(file))
assert rows
for row in rows:
    least, most = float(row["us_20"]), float(row["us_80"])
    assert math.isclose(float(row["us"]), (least + most) / 2, rel_tol=1e-7), row
