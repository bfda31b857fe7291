"""From the table of dialect/README.md that begins "| Triton | Kiln |": a C++ file that compiles where all names of its
right column are there. Checked are what is called in a code span, `name(…)`, `x.name(…)` of a Tile, `view.name(…)` of a
View, `Scope::name`, `{.member = …}`, and every word of a span that is words alone."""

import re
import sys

CXX = {"for", "if", "static_assert", "return"}  # C++'s own

text = open(sys.argv[1], encoding="utf-8").read()
table = re.search(r"^\| Triton \| Kiln \|\n\|---\|---\|\n((?:\|.*\n)+)", text, re.M)
if not table:
    sys.exit(f"{sys.argv[1]}: expected a table with the head '| Triton | Kiln |'")
names, scoped, methods, members = set(), set(), set(), set()
for row in table.group(1).splitlines():
    cells = re.split(r"(?<!\\)\|", row)
    if len(cells) != 4:
        sys.exit(f"{sys.argv[1]}: expected two cells, but got '{row}'")
    for span in re.findall(r"`([^`]+)`", cells[2]):
        if re.fullmatch(r"[a-z]\w*( [a-z]\w*)*", span):
            names.update(span.split())
            continue
        methods.update(re.findall(r"\b(view|x)\.(\w+)\(", span))
        names.update(re.findall(r"(?<![.\w:])(\w+)\(", span))
        scoped.update(re.findall(r"\b([A-Z]\w*::\w+)", span))
        members.update(re.findall(r"[{ ]\.(\w+) =", span))
names -= CXX
print('#include "dialect/dsl/Kernel.h"\n#include "dialect/dsl/Plan.h"\nnamespace check {')
for name in sorted(names):
    print(f"using kiln::{name};")
for number, name in enumerate(sorted(scoped)):
    print(f"constexpr auto scoped{number} = kiln::{name};")
for number, (of, name) in enumerate(sorted(methods)):
    print(f"const auto method{number} = &kiln::{'View' if of == 'view' else 'Tile'}::{name};")
for name in sorted(members):
    print(f"template <class T> concept Has_{name} = requires(T t) {{ t.{name}; }};")
    print(f"static_assert(Has_{name}<kiln::LoadOptions> || Has_{name}<kiln::StoreOptions> || "
          f"Has_{name}<kiln::AtomicOptions> || Has_{name}<kiln::Hints>);")
print("} // namespace check")
