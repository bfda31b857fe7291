"""Writes modules that MLIR's parser must not get, and some that it may, into the folder argv[1]."""

import pathlib
import sys

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)


def write(name, text):
    (folder / f"{name}.mlir").write_bytes(text if isinstance(text, bytes) else text.encode())


def attribute(text):
    return "module attributes {t.a = " + text + "} {}\n"


def loops(count):
    head = "func.func @f(%n: index) {\n"
    heads = "".join(f"scf.for %i{i} = %n to %n step %n {{\n" for i in range(count))
    return head + heads + "}\n" * count + "return }\n"


def aliases(count):
    return "#a0 = [1]\n" + "".join(f"#a{i + 1} = [#a{i}]\n" for i in range(count)) + attribute(f"#a{count}")


write("loops", loops(5000))
write("lists", attribute("[" * 5000 + "]" * 5000))
write("types", attribute("tuple<" * 5000 + "i1" + ">" * 5000))
write("regions", "module {" + '"x.y"() ({' * 5000 + "}) : () -> ()" * 5000 + "}")
write("aliases", aliases(20000))
write("continued", "#a0 =\n[1]\n" + "".join(f"#a{i + 1} =\n[#a{i}]\n" for i in range(20000)) + attribute("#a20000"))
write("signs", attribute("affine_map<(d0) -> (" + "-" * 20000 + "d0)>"))
write("sums", attribute("affine_map<(d0) -> (" + "d0 + " * 100000 + "d0)>"))
write("index-array", "\n\n" + attribute("array<index: 0>"))
write("index-alias", "!t = index\n" + attribute("array < !t: 0>"))
write("zero", b"module {\n}\n\0")
write("bytes", b"module {\n\xff}\n")
write("bytecode", b"ML\xefR\r")
write("large", b"// " + b"x" * (64 << 20))

# Texts that only seem deeply nested: strings, comments, arrows and comparisons, many adjacent brackets and long lists.
write("shallow-strings", attribute('"' + "([{<\\\"" * 1000 + '"') + "//" + "[" * 5000 + "\n")
write("shallow-arrows", "func.func private @f(" + ", ".join(["() -> ()"] * 1000) + ")\n")
write("shallow-sets", attribute("affine_set<(d0) : (" + ", ".join(["d0 - 1 >= 0"] * 600) + ")>"))
write("shallow-lists", attribute("[" + ", ".join(["[-1, -2]"] * 5000) + "]"))
write("shallow-loops", loops(200))
