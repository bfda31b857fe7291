"""The rules of the house, as functions from the repository's files to complaints.

`python3 rules.py ROOT RULE` checks one rule on a checkout and prints what breaks it, one complaint a line. Files are a
dictionary from path to File, so that rules_test.py can hold each rule against a few invented files.
"""

import ast
import os
import re
import subprocess
import sys
from typing import NamedTuple


class File(NamedTuple):
    text: str
    executable: bool = False


TOP = {"CMakeLists.txt", "dialect", "lowering", "runtime", "kernels", "models", "test", "tools", "README.md", "LICENSE"}
FOLDERS = ("dialect/", "lowering/", "runtime/", "kernels/", "models/", "tools/", "test/")
MOST_LINES = 600
SOURCES = (".cpp", ".cc", ".h", ".td", ".mlir", ".py")
# A file and those that share its name have this many lines of code. A smaller one is a part of the file that uses it,
# except for these.
LEAST_CODE = 8
SMALL = {
    "dialect/simt/SimtOps", "dialect/tile/TileOps",  # TableGen's entry points
    "dialect/dsl/MathFunctions",  # makes declarations of a table
    "dialect/tile/Limits",  # the one header of the dialect that the language and its users read
    "kernels/rows", "lowering/TemporaryPath", "test/temporary_folder",  # used all over their folders
    "tools/kiln-gpu/parts", "tools/kilnc/Main", "tools/libkiln/older_glibc",  # linked into some programs only
}

# The permitted includes: the first entry whose pattern matches the including file lists the project's headers that it
# may include. `compiler` states whether it may include headers of MLIR and LLVM.
DSL_DATA = r"dialect/dsl/(Types|Nearest|MathFunctions|Members|Mistakes|Functions|Loop|Scaled|Sorts|Tile|Kernel|Plan)\.h|dialect/tile/(ElementTypes|Functions)\.def"
ARROWS = [
    # including file, project headers it may include, compiler headers allowed
    (r"dialect/tile/", r"dialect/tile/", True),
    (r"dialect/simt/", r"dialect/(simt|tile)/", True),
    (r"dialect/dsl/(Types|Nearest|MathFunctions|Members|Mistakes|Functions|Loop|Scaled|Sorts|Tile|Kernel|Plan)\.h", DSL_DATA, False),
    (r"dialect/dsl/", r"dialect/(dsl|tile)/", True),
    (r"lowering/", r"lowering/|dialect/(tile|simt)/|dialect/dsl/(Types|Nearest)\.h", True),
    (r"runtime/Compile[^/]*$", r"runtime/|lowering/|dialect/(tile|simt)/|" + DSL_DATA + r"|dialect/dsl/Trace\.h", True),
    (r"runtime/", r"runtime/|lowering/|dialect/(tile|simt)/|" + DSL_DATA, True),
    (r"kernels/", r"kernels/|" + DSL_DATA, False),
    (r"models/", r"models/|kernels/|runtime/(Tensor|Device|Compile|Meters|SideStream|Streams|Files|"
     r"Version|cuda/CudaDevice)\.h|"
     r"lowering/analysis/Lifetimes\.h|" + DSL_DATA, False),
    (r"(tools|test)/", r"", True),
]


def top(files):
    """The top level holds the agreed names and dot-files, nothing else."""
    for name in sorted({path.split("/")[0] for path in files}):
        if name not in TOP and not name.startswith("."):
            yield f"{name}: expected only {' '.join(sorted(TOP))} and dot-files at the top level"
    for name in sorted(TOP - {path.split("/")[0] for path in files}):
        yield f"{name}: expected at the top level, but it is missing"


def layering(files):
    """No include goes against the arrows, and every quoted include is spelt from the root."""
    for path, file in files.items():
        if not path.endswith((".cpp", ".cc", ".h")):
            continue
        arrow = next((arrow for arrow in ARROWS if re.match(arrow[0], path)), None)
        if arrow is None:
            yield f"{path}: no arrow says what it may include"
            continue
        for number, line in enumerate(file.text.splitlines(), 1):
            found = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
            if not found:
                continue
            quote, header = found.groups()
            if re.match(r"(mlir|llvm|clang)(-c)?/", header):
                if not arrow[2]:
                    yield f"{path}:{number}: includes '{header}', but the compiler's headers end below this folder"
            elif header.startswith(FOLDERS):
                if header not in files and not header.endswith(".inc"):
                    yield f"{path}:{number}: includes '{header}', which does not exist"
                elif not re.match(arrow[1], header):
                    yield f"{path}:{number}: includes '{header}', which is against the arrows"
            elif quote == '"' and "/" not in header:
                yield f"{path}:{number}: expected an include spelt from the root, but got '{header}'"


def identity(files):
    """What a file of the compiler's identity includes is a part of that identity: no edit leaves stale kernels in caches."""
    table = files["runtime/CMakeLists.txt"].text if "runtime/CMakeLists.txt" in files else ""
    found = re.search(r"set\(compiler_sources ([^)]*)\)\s*foreach\(folder ([^)]*)\)\s*foreach\(kind ([^)]*)\)", table)
    if not found:
        yield "runtime/CMakeLists.txt: expected compiler_sources, a list of files, and loops over folders and kinds"
        return
    single = {path.removeprefix("${PROJECT_SOURCE_DIR}/") for path in found.group(1).split()}
    folders, kinds = tuple(f"{name}/" for name in found.group(2).split()), tuple(f".{kind}" for kind in found.group(3).split())
    hashed = {path for path in files if path in single or path.startswith(folders) and path.endswith(kinds)}
    for path in sorted(hashed):
        for number, line in enumerate(files[path].text.splitlines(), 1):
            header = re.match(r'\s*#?\s*include\s*"([^"]+)"', line)
            if header and header.group(1) in files and header.group(1) not in hashed:
                yield f"{path}:{number}: includes '{header.group(1)}', which runtime/CMakeLists.txt does not hash"


def kebab(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()


def naming(files):
    """Each pass has its file, its flag and its test, all with one name; file names follow their folder's fashion."""
    table = files.get("lowering/Passes.td")
    passes = re.findall(r'^def\s+(\w+)\s*:\s*Pass<"([^"]+)"', table.text, re.M) if table else []
    if not passes:
        yield "lowering/Passes.td: expected passes, but found none"
    known = set()
    for name, flag in passes:
        folder = flag.split("-")[0]
        if flag != f"{folder}-{kebab(name)}":
            yield f"lowering/Passes.td: expected '--{folder}-{kebab(name)}' for pass {name}, but got '--{flag}'"
        known.add(f"lowering/{folder}/{name}.cpp")
        for wanted in (f"lowering/{folder}/{name}.cpp", f"test/lowering/{folder}/{kebab(name)}.mlir"):
            if wanted not in files:
                yield f"{wanted}: expected for pass {name}, but it is missing"
    for path in files:
        folder, _, name = path.rpartition("/")
        if path.endswith(".cc") and re.match(r"(kernels|models|tools)(/|$)", folder) and name != "Registry.cc":
            if not re.fullmatch(r"[a-z0-9_]+\.cc", name):
                yield f"{path}: expected a snake_case name"
        if path.endswith(".mlir") and not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*\.mlir", name):
            yield f"{path}: expected a kebab-case name"
        if re.match(r"(.*[a-z_])?(utils?|helpers?|common|misc|managers?)\.\w+$", name, re.I):
            yield f"{path}: a name that says nothing"


NO_CODE = re.compile(r"\s*(//|$)|#include|#pragma once|#ifndef|#endif|namespace|\}  // namespace|using ")


def size(files):
    """No source, test or .td file is over 600 lines, and none of C++ is too small to be a file."""
    code = {}
    for path, file in files.items():
        lines = file.text.count("\n")
        if path.endswith(SOURCES) and lines > MOST_LINES:
            yield f"{path}: expected at most {MOST_LINES} lines, but got {lines}: it has two subjects"
        if path.endswith((".cpp", ".cc", ".h", ".td", ".def", ".c")) and not re.search(r"/(inputs|tutorial)/", path):
            name = path.rpartition(".")[0]
            code[name] = code.get(name, 0) + sum(not NO_CODE.match(line) for line in file.text.splitlines())
    for name, lines in code.items():
        if lines < LEAST_CODE and name not in SMALL:
            yield f"{name}: expected at least {LEAST_CODE} lines of code, but got {lines}: a part of the file that uses it"


def columns(files):
    """No line of C++ is wider than .clang-format lets it be; raw strings, which it leaves alone, do not count."""
    limit = re.search(r"^ColumnLimit: (\d+)$", files[".clang-format"].text, re.M) if ".clang-format" in files else None
    if not limit:
        yield ".clang-format: expected a line 'ColumnLimit: N'"
        return
    most = int(limit.group(1))
    for path, file in files.items():
        if not path.endswith((".cpp", ".cc", ".h")):
            continue
        text = re.sub(r'R"(\w*)\(.*?\)\1"', lambda raw: '""' + "\n" * raw.group().count("\n"), file.text, flags=re.S)
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > most:
                yield f"{path}:{number}: expected at most {most} columns, but got {len(line)}"


WORDS = [
    (r"T[O]DO|FIX[M]E|\bXX[X]\b", "unfinished work"),
    (r"^\s*#\s*if\s+[0]\b", "code that is switched off"),
    (r"(?<![\w./:>)\]}-])/(wor[k]|roo[t]|hom[e]|far[m])/[\w.]", "a path of one particular machine"),
    (r"[\"']hs[l]\(", "a colour that is black in many readers of SVG"),
    (r"de[b]\.debian\.org|securit[y]\.debian\.org|ap[t]\.llvm\.org|py[p]i\.org|pythonhoste[d]\.org|npmj[s]\.org",
     "a package host"),
]


def words(files):
    """Nothing unfinished, switched off, or true on one machine only is written down."""
    for path, file in files.items():
        for number, line in enumerate(file.text.splitlines(), 1):
            for pattern, meaning in WORDS:
                found = re.search(pattern, line)
                if found:
                    yield f"{path}:{number}: {meaning}: '{found.group().strip()}'"


def scripts(files):
    """A file with a shebang can be executed, and a file that can be executed has a shebang."""
    for path, file in files.items():
        shebang = file.text.startswith("#!")
        if shebang and not file.executable:
            yield f"{path}: has a shebang, but no execute bit"
        if file.executable and not shebang:
            yield f"{path}: has the execute bit, but no shebang"


# Counts of things that are not in the tree.
MEASURED = re.compile(r"kernels of nvcc")


def readme(files):
    """What a page names is there: programs, scripts, and the files that it links to, or the build writes them. It does
    not count what changes with every commit."""
    programs, pages = set(), set()
    for path, file in files.items():
        if path.endswith("CMakeLists.txt"):
            programs.update(re.findall(r"kiln_(?:program|gtest)\(\s*([\w-]+)", file.text))
            pages.update(f"build/reference/{page}.md" for page in re.findall(r"kiln_reference\(\s*([\w-]+)", file.text))
            if "kiln_passes(" in file.text:
                pages.add("build/reference/passes.md")
    for path, file in files.items():
        if not path.endswith(".md"):
            continue
        for name in re.findall(r"(?<![\w/])build/bin/([\w-]+)", file.text):
            if name not in programs:
                yield f"{path}: names 'build/bin/{name}', which no CMakeLists.txt builds"
        for name in re.findall(r"(?<![\w/.-])(?:\./)?(tools/[\w-]+)(?![\w/.-])", file.text):
            if name not in files and not any(other.startswith(name + "/") for other in files):
                yield f"{path}: names '{name}', which does not exist"
        for number, line in enumerate(file.text.splitlines(), 1):
            for count in re.findall(r"\b\d[\d,.]* (?:of \d[\d,.]* )?(?:tests?|passes|kernels|operations|pass)\b", line):
                if not MEASURED.search(line):
                    yield f"{path}:{number}: counts '{count}', which the next commit makes wrong: name the command alone"
        prose = re.sub(r"^```.*?^```", "", file.text, flags=re.M | re.S)
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", re.sub(r"`[^`\n]*`", "", prose)):
            target = os.path.normpath(os.path.join(os.path.dirname(path), link))
            if target not in files and target not in pages and not any(other.startswith(target + "/") for other in files):
                yield f"{path}: links to '{link}', which does not exist"


# Former names, as patterns, with the terms of the field that replaced them.
FORMER = {
    r"attention_(part|join)\b": "attention_split, attention_combine",
    r"\bbeside (it|a copy)\b": "baseline",
    r"\bceildiv\b": "cdiv",
    r"\bchances\.h\b|\brounding by chance\b": "dropout_rng.h, stochastic rounding",
    r"\bcolumn_?ranges\b": "query_ranges",
    r"\bgo(ing|es) on from\b|--resume goes on": "resuming, continues",
    r"\bkeep[12]\b|\bfresh[12]\b": "beta1, one_minus_beta1, …",
    r"\bmade again\b": "recomputed",
    r"\bf32 masters\b": "master weights",
    r"\b(break|continue|return)_when\b": "break_if, continue_if, return_if",
    r"`site`|\bsite \(2\)": "rng_state",
}


def pages(files):
    """Pages are short: README.md has at most 150 lines, a line of prose 140 columns, a sentence and a cell 40 words. Pages and
    the texts that programs print have no former name."""
    for path, file in files.items():
        former = file.text if path.endswith(".md") else ""
        if path.endswith((".cc", ".cpp", ".h")) and path.startswith(("kernels/", "models/", "tools/", "runtime/")):
            former = re.sub(r'^#include .*|"(?:[^"\\\n]|\\.)*"|.', lambda m: m[0] if m[0][0] == '"' else "", file.text, flags=re.M)
        for number, line in enumerate(former.splitlines(), 1):
            for pattern, name in FORMER.items():
                if found := re.search(pattern, line):
                    yield f"{path}:{number}: has the former name '{found[0]}' of {name}"
        if not path.endswith(".md"):
            continue
        if path == "README.md" and (count := file.text.count("\n")) > 150:
            yield f"{path}: expected at most 150 lines, but got {count}"
        prose = re.sub(r"^ *```.*?^ *```|^(?:    (?! *[-*\d])|!)[^\n]*", lambda m: "\n" * m[0].count("\n"), file.text, flags=re.M | re.S)
        for number, line in enumerate(prose.splitlines(), 1):
            if not line.startswith("|") and len(line) > 140:
                yield f"{path}:{number}: expected at most 140 columns, but got {len(line)}"
        plain = re.sub(r"`[^`]+`", "code", re.sub(r"\]\([^)]*\)", "]", prose))
        cells = re.findall(r"(?<=\|)[^|\n]+(?=\|)", plain)
        blocks = re.split(r"\n\s*\n|\n(?= *(?:[-*]|\d+\.) )|^[#|].*$", plain, flags=re.M)
        for kind, texts in (("cell", cells), ("sentence", [s for b in blocks for s in re.split(r"(?<=[.?!])\**\s+", b)])):
            for text in texts:
                if (count := len(re.findall(r"\w\S*", text))) > 40:
                    yield f"{path}: expected at most 40 words in a {kind}, but got {count}: {' '.join(text.split())[:60]} …"


def variables(files):
    """Every variable that the sources read is in the table of runtime/README.md, or, if tests alone read it, of test/README.md;
    every one there is read."""
    tables = {path: set(re.findall(r"^\| `([A-Z_]+)` \|", files[path].text, re.M)) if path in files else set()
              for path in ("runtime/README.md", "test/README.md")}
    product, tests = tables.values()
    read = {}
    for path, file in files.items():
        if path.endswith(SOURCES) or path.startswith("tools/") and file.executable:
            for number, line in enumerate(file.text.splitlines(), 1):
                for name in re.findall(r'getenv\("(\w+)"\)|"(KILN_[A-Z_]+)"|\$\{?(KILN_[A-Z_]+)', line):
                    read.setdefault("".join(name), f"{path}:{number}")
    for name, place in sorted(read.items()):
        if name not in product and not (name in tests and place.startswith(("test/", ".ci/"))):
            yield f"{place}: reads '{name}', which runtime/README.md's table of variables does not name"
    for path, listed in tables.items():
        for name in sorted(listed - set(read)):
            yield f"{path}: names the variable '{name}', which nothing reads"


# Optional modules: those of lit, and of other projects, which a user installs for comparison.
OTHER_MODULES = {"test/lit.cfg.py": {"lit"}, "tools/python/kiln/ops.py": {"jax", "numpy", "torch"},
                 "tools/python/kiln/torch.py": {"torch"}, "kernels/tutorial/13_pytorch.py": {"torch"},
                 "test/tools/inputs/python_arrays.py": {"jax", "numpy", "torch"}, "tools/kiln-gpu/peers.py": {"torch"},
                 "tools/kiln-bench/triton_static.py": {"triton"}, "tools/kiln-bench/triton_users.py": {"triton"},
                 "test/oracles/tokens.py": {"tiktoken", "tokenizers"}, "test/oracles/words.py": {"tokenizers"},
                 "test/oracles/hellaswag.py": {"torch", "transformers"}, "test/oracles/bytelm.py": {"torch"},
                 "test/oracles/draws.py": {"numpy", "torch"}, "test/oracles/annotated.py": {"torch"},
                 "test/oracles/bleu.py": {"sacrebleu"}, "test/oracles/translation.py": {"torch"},
                 "tools/seed_tables/peer_torch.py": {"torch", "transformers"},
                 "tools/seed_tables/peer_tokens.py": {"tiktoken", "tokenizers"},
                 "tools/seed_tables/peer_jax.py": {"jax"},
                 "test/oracles/tensorboard_events.py": {"tensorboard"},
                 "test/oracles/sampling.py": {"torch", "transformers"}, "test/oracles/llmc.py": {"numpy"}}


def modules(files):
    """Scripts in Python import nothing but its standard library and each other: tools/setup installs no module."""
    own = {os.path.basename(path)[:-3] for path in files if path.endswith(".py")}
    own |= {os.path.basename(os.path.dirname(path)) for path in files if path.endswith("/__init__.py")}
    for path, file in files.items():
        if not path.endswith(".py") and not re.match(r"#!.*python", file.text):
            continue
        for node in ast.walk(ast.parse(file.text)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else \
                [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
            for name in {name.split(".")[0] for name in names} - sys.stdlib_module_names - own:
                if name not in OTHER_MODULES.get(path, ()):
                    yield f"{path}:{node.lineno}: imports '{name}', which tools/setup does not install"


def registry(files):
    """Every kernel that a file of kernels/ makes is in the registry, and in it once."""
    listed = re.findall(r"&(\w+)", files["kernels/Registry.cc"].text) if "kernels/Registry.cc" in files else []
    for path, file in files.items():
        if not re.match(r"kernels/\w+\.cc$", path):
            continue
        for name in re.findall(r"^const Kernel (\w+)\s*=", file.text, re.M):
            if listed.count(name) != 1:
                yield f"{path}: expected kernel '{name}' once in kernels/Registry.cc, but found it {listed.count(name)} times"


def bounds(files):
    """dialect/NUMERICS.md's tables have each function of Functions.def with its bounds."""
    said = {}
    for names, *rows in re.findall(r"^\| \| (.*) \|\n\|[-|]+\n\| f32 \| (.*) \|\n\| f64 \| (.*) \|$",
                                   files["dialect/NUMERICS.md"].text, re.M):
        said |= dict(zip(names.split(" | "), zip(*(row.split(" | ") for row in rows))))
    wanted = {}
    for name, f32, f64 in re.findall(r"^KILN_\w*FUNCTION\w*\((\w+), (?:\w+Op, )?([\d.]+), ([\d.]+),",
                                     files["dialect/tile/Functions.def"].text, re.M):
        wanted[name] = (f32, f64)
    for name in sorted(said.keys() | wanted.keys()):
        if said.get(name) != wanted.get(name):
            yield (f"dialect/NUMERICS.md: expected {name} with the bounds {' and '.join(wanted.get(name, ['of no function']))}, "
                   f"but got {' and '.join(said.get(name, ['none']))}")


FUNCTION = re.compile(r"^(static )?(?! |static|return|else|using)[\w:<>,&* ]+?[ *&]([a-z]\w*)\(([^()]*)\)(?= (?:const |noexcept )*\{|;)",
                      re.M)


def parse_types(text):
    """The types in a list of parameters, without qualifiers, namespaces and names."""
    types = []
    for part in re.sub(r"<[^<>]*>", lambda some: some[0].replace(",", ";"), text).split(","):
        part = re.sub(r"\bconst\b|\w+::", "", part.split("=")[0]).strip()
        named = re.match(r"(.*[ &*>])\w+$", part)
        types.append((named[1] if named else part).replace(" ", ""))
    return tuple(types)


def shadows(files):
    """No static function hides a function of an outer namespace: files that are compiled together would then call it."""
    space = {path: (re.findall(r"^namespace ([\w:]+) \{", file.text, re.M) or [""])[0] for path, file in files.items()}
    declared = {}
    for path, file in files.items():
        if path.endswith(".h"):
            for is_static, name, parameters in FUNCTION.findall(file.text):
                if not is_static:
                    declared.setdefault((name, parse_types(parameters)), []).append(path)
    for path, file in files.items():
        if path.startswith("test/") or not path.endswith((".cpp", ".cc")):
            continue
        for is_static, name, parameters in FUNCTION.findall(file.text):
            for header in declared.get((name, parse_types(parameters)), ()) if is_static else ():
                if space[header] and space[path].startswith(space[header] + "::"):
                    yield f"{path}: its function '{name}' hides that of {header}"


RULES = {rule.__name__: rule for rule in (top, layering, identity, naming, size, columns, words, scripts, readme, pages, variables, modules,
                                          registry, bounds, shadows)}


def read(root):
    """The files of a checkout that git does not ignore; binary ones are without text."""
    listing = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True, capture_output=True, text=True,
    ).stdout
    files = {}
    for path in sorted(set(filter(None, listing.split("\0")))):
        full = os.path.join(root, path)
        if not os.path.isfile(full):
            continue
        with open(full, "rb") as stream:
            data = stream.read()
        text = "" if b"\0" in data else data.decode("utf-8", "replace")
        files[path] = File(text, os.access(full, os.X_OK))
    return files


def main():
    if len(sys.argv) != 3 or sys.argv[2] not in RULES:
        sys.exit(f"usage: rules.py ROOT {'|'.join(RULES)}")
    complaints = list(RULES[sys.argv[2]](read(sys.argv[1])))
    print("\n".join(complaints))
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
