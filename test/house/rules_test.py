"""Each rule of rules.py complains about a file that breaks it, and is silent about the same file put right."""

import os
import subprocess
import tempfile
import unittest

import rules
from rules import File

PASS = 'def FoldMasks : Pass<"tile-fold-masks", "::mlir::func::FuncOp"> {}\n'


class RulesTest(unittest.TestCase):
    def complaints(self, rule, files):
        return list(rules.RULES[rule]({path: file if isinstance(file, File) else File(file)
                                       for path, file in files.items()}))

    def expect(self, rule, files, *parts):
        found = self.complaints(rule, files)
        self.assertEqual(len(found), len(parts), found)
        for complaint, part in zip(found, parts):
            self.assertIn(part, complaint)

    def test_top_level_is_closed(self):
        whole = {name: "" for name in rules.TOP}
        self.expect("top", {**whole, ".ci/run": ""})
        self.expect("top", {**whole, "notes.md": ""}, "notes.md")
        del whole["LICENSE"]
        self.expect("top", whole, "LICENSE")

    def test_binary_files_are_seen(self):
        with tempfile.TemporaryDirectory() as root:
            subprocess.run(["git", "init", "-q", root], check=True)
            os.mkdir(os.path.join(root, "cache"))
            with open(os.path.join(root, "cache/entry"), "wb") as stream:
                stream.write(b"\0\1")
            self.assertEqual(list(rules.read(root)), ["cache/entry"])

    def test_arrows_have_one_direction(self):
        headers = {"lowering/Passes.h": "", "dialect/dsl/Tile.h": "", "dialect/dsl/Trace.h": "", "runtime/Device.h": ""}

        def including(path, header):
            return {**headers, path: f'#include "{header}"\n'}

        self.expect("layering", including("kernels/matmul.cc", "dialect/dsl/Tile.h"))
        self.expect("layering", including("kernels/matmul.cc", "lowering/Passes.h"), "kernels/matmul.cc:1")
        self.expect("layering", including("kernels/matmul.cc", "dialect/dsl/Trace.h"), "dialect/dsl/Trace.h")
        self.expect("layering", including("lowering/cpu/LowerDot.cpp", "runtime/Device.h"), "runtime/Device.h")
        self.expect("layering", including("dialect/dsl/Tile.cpp", "lowering/Passes.h"), "lowering/Passes.h")
        self.expect("layering", including("runtime/Compile.cpp", "dialect/dsl/Trace.h"))
        self.expect("layering", including("runtime/cpu/CpuDevice.cpp", "dialect/dsl/Trace.h"), "dialect/dsl/Trace.h")
        self.expect("layering", including("models/gpt2/main.cc", "lowering/Passes.h"), "lowering/Passes.h")

    def test_compiler_headers_stay_in_the_compiler(self):
        self.expect("layering", {"lowering/cpu/LowerDot.cpp": '#include "mlir/IR/Builders.h"\n'})
        self.expect("layering", {"kernels/matmul.h": '#include "mlir/IR/Builders.h"\n'}, "mlir/IR/Builders.h")
        self.expect("layering", {"dialect/dsl/Tile.h": "#include <mlir/IR/Builders.h>\n"}, "mlir/IR/Builders.h")

    def test_includes_are_spelt_from_the_root(self):
        self.expect("layering", {"kernels/a.h": "", "kernels/b.cc": '#include "kernels/a.h"\n'})
        self.expect("layering", {"kernels/a.h": "", "kernels/b.cc": '#include "a.h"\n'}, "'a.h'")

    def test_what_the_compiler_includes_is_in_its_identity(self):
        files = {"runtime/CMakeLists.txt": "set(compiler_sources ${PROJECT_SOURCE_DIR}/dialect/dsl/Types.h)\n"
                                           "foreach(folder lowering dialect/tile)\n  foreach(kind cpp def)\n",
                 "dialect/dsl/Types.h": "", "dialect/dsl/Tile.h": "", "dialect/tile/Functions.def": ""}
        self.expect("identity", {**files, "lowering/cpu/A.cpp": '#include "dialect/dsl/Types.h"\n'
                                                                '#include "dialect/tile/Functions.def"\n'})
        self.expect("identity", {**files, "lowering/cpu/A.cpp": '#include "dialect/dsl/Tile.h"\n'}, "lowering/cpu/A.cpp:1")
        self.expect("identity", {"dialect/tile/Limits.h": ""}, "expected compiler_sources")

    def test_a_pass_has_one_name_in_four_places(self):
        good = {"lowering/Passes.td": PASS, "lowering/tile/FoldMasks.cpp": "", "test/lowering/tile/fold-masks.mlir": ""}
        self.expect("naming", good)
        self.expect("naming", {"lowering/Passes.td": PASS, "lowering/tile/FoldMasks.cpp": ""}, "fold-masks.mlir")
        self.expect("naming", {"lowering/Passes.td": PASS, "test/lowering/tile/fold-masks.mlir": ""}, "FoldMasks.cpp")
        self.expect("naming", {**good, "lowering/Passes.td": PASS.replace("fold-masks", "fold")}, "--tile-fold-masks")
        self.expect("naming", {}, "found none")

    def test_file_names_follow_their_folder(self):
        good = {"lowering/Passes.td": PASS, "lowering/tile/FoldMasks.cpp": "", "test/lowering/tile/fold-masks.mlir": ""}
        self.expect("naming", {**good, "kernels/layer_norm.cc": "", "test/dialect/round-trip.mlir": ""})
        self.expect("naming", {**good, "kernels/LayerNorm.cc": ""}, "snake_case")
        self.expect("naming", {**good, "test/dialect/round_trip.mlir": ""}, "kebab-case")
        self.expect("naming", {**good, "runtime/FileUtils.cpp": ""}, "says nothing")

    def test_files_are_short(self):
        self.expect("size", {"runtime/Tensor.cpp": "f();\n" * 600})
        self.expect("size", {"runtime/Tensor.cpp": "f();\n" * 601}, "601")

    def test_files_are_no_fragments(self):
        head = "// f.\n\n#pragma once\n\n#include <array>\n\nnamespace kiln {\n"
        self.expect("size", {"runtime/F.h": head + "void f();\n" * 7}, "runtime/F: expected at least 8 lines of code, but got 7")
        self.expect("size", {"runtime/F.h": head + "void f();\n", "runtime/F.cpp": head + "f();\n" * 7})
        self.expect("size", {"tools/kilnc/Main.cpp": head + "int main();\n", "test/dsl/inputs/f.cc": head + "void f();\n"})

    def test_lines_are_as_wide_as_the_format_says(self):
        style = {".clang-format": "BasedOnStyle: LLVM\nColumnLimit: 100\n"}
        self.expect("columns", {**style, "runtime/Tensor.cpp": "x" * 100 + "\n"})
        self.expect("columns", {**style, "runtime/Tensor.cpp": "\n" + "x" * 101 + "\n"}, "runtime/Tensor.cpp:2")
        self.expect("columns", {**style, "runtime/Tensor.cpp": 'a = R"(' + "x" * 101 + ')";\n'})
        self.expect("columns", {**style, "README.md": "x" * 101 + "\n"})
        self.expect("columns", {}, ".clang-format")

    def test_bounds_are_those_of_the_list(self):
        table = "| | sin | pow |\n|---|---|---|\n| f32 | 2.0 | 1.5 |\n| f64 | 1.0 | 2.0 |\n"
        rows = "KILN_FUNCTION(sin, SinOp, 2.0, 1.0, unit)\n", "KILN_COMPOSITE_FUNCTION_OF_TWO(pow, 1.5, 2.0, open, {1, 1})\n"
        self.expect("bounds", {"dialect/NUMERICS.md": table, "dialect/tile/Functions.def": "".join(rows)})
        self.expect("bounds", {"dialect/NUMERICS.md": table, "dialect/tile/Functions.def": rows[0]}, "expected pow")
        self.expect("bounds", {"dialect/NUMERICS.md": "", "dialect/tile/Functions.def": rows[0]}, "expected sin")
        self.expect("bounds", {"dialect/NUMERICS.md": table.replace("2.0 |\n", "2.1 |\n"),
                               "dialect/tile/Functions.def": "".join(rows)}, "bounds 1.5 and 2.0, but got 1.5 and 2.1")

    def test_words_that_must_not_be_left_behind(self):
        for text in ("// TO" "DO: later", "// FIX" "ME", "#if" " 0", "see /wor" "k/notes", "/roo" "t/.cache",
                     "https://de" "b.debian.org", 'fill="hs' 'l(215,70%,45%)"'):
            self.expect("words", {"runtime/Tensor.cpp": "\n" + text + "\n"}, "runtime/Tensor.cpp:2")
        self.expect("words", {"runtime/Tensor.cpp": "// bytes / work / group; #if KILN\n/// the root/home\n"})

    def test_scripts_can_be_run(self):
        self.expect("scripts", {"tools/setup": File("#!/usr/bin/env bash\n", True), "README.md": "# Kiln\n"})
        self.expect("scripts", {"tools/setup": File("#!/usr/bin/env bash\n", False)}, "no execute bit")
        self.expect("scripts", {"README.md": File("# Kiln\n", True)}, "no shebang")

    def test_readmes_name_what_exists(self):
        files = {"tools/train": "", "models/CMakeLists.txt": "kiln_program(gpt2 SOURCES main.cc)", "kernels/matmul.cc": ""}
        self.expect("readme", {**files, "README.md": "`tools/train`, `build/bin/gpt2`, [m](kernels/matmul.cc)"})
        self.expect("readme", {**files, "README.md": "`tools/teach`"}, "tools/teach")
        self.expect("readme", {**files, "README.md": "`build/bin/gpt3 train`"}, "build/bin/gpt3")
        self.expect("readme", {**files, "kernels/README.md": "[m](matmul.cc) [n](norm.cc)"}, "norm.cc")
        page = {"README.md": "[passes](build/reference/passes.md)"}
        self.expect("readme", {**page, "lowering/CMakeLists.txt": "kiln_passes(kiln_passes_gen Passes tile cpu)"})
        self.expect("readme", page, "build/reference/passes.md")

    def test_readmes_do_not_count_what_grows(self):
        self.expect("readme", {"README.md": "as fast as 12 products; all pass; 3 tests.\n"}, "README.md:1: counts '3 tests'")
        self.expect("readme", {"kernels/README.md": "\n319 of 319 pass"}, "kernels/README.md:2: counts '319 of 319 pass'")
        self.expect("readme", {"README.md": "2,621 tests, 40 passes and 17 kernels"}, "'2,621 tests'", "'40 passes'", "'17 kernels'")
        self.expect("readme", {"README.md": "on 82 kernels of nvcc 13, and the 82 ms of a pass"})

    def test_pages_are_short_and_have_no_former_names(self):
        self.expect("pages", {"README.md": "A line.\n" * 150, "a/b.md": "| " + "c " * 80 + "|\n\n```\n" + "d " * 99 + "\n```\n"}, "a/b.md: expected")
        self.expect("pages", {"README.md": "A line.\n" * 151}, "README.md: expected at most 150 lines, but got 151")
        self.expect("pages", {"a.md": "\n" + "word" * 36}, "a.md:2: expected at most 140 columns, but got 144")
        long = "one two three four five\n" * 8
        self.expect("pages", {"a.md": f"* {long}* {long}\n{long}"})
        self.expect("pages", {"a.md": long + "\nA `code span of words`.\n\n" + long * 2}, "a.md: expected at most 40 words in a sentence, but got 80")
        self.expect("pages", {"a.md": "| " + "cell " * 41 + "|"}, "a.md: expected at most 40 words in a cell, but got 41")
        self.expect("pages", {"a.md": "is made\nagain, and made again"}, "a.md:2: has the former name 'made again' of recomputed")
        self.expect("pages", {"kernels/a.cc": '#include "chances.h"\n// made again\nsay("made again")'}, "kernels/a.cc:3: has")

    def test_scripts_need_no_modules(self):
        self.expect("modules", {"test/a.py": "import os.path, ast\nfrom b import c\n", "test/b.py": ""})
        self.expect("modules", {"test/a.py": "import os\nif x:\n  import numpy.linalg\n"}, "test/a.py:3: imports 'numpy'")
        self.expect("modules", {"tools/a": "#!/usr/bin/env python3\nfrom yaml import load\n"}, "tools/a:2: imports 'yaml'")

    def test_kernels_are_registered(self):
        files = {"kernels/Registry.cc": "  &addKernel,\n  &geluKernel,\n", "kernels/add.cc": "const Kernel addKernel = kernel("}
        self.expect("registry", files)
        self.expect("registry", {**files, "kernels/sum.cc": "const Kernel sumKernel =\n    kernel("}, "'sumKernel'")

    def test_functions_hide_none_of_an_outer_namespace(self):
        outer = {"lowering/Uses.h": "namespace kiln::lowering {\nbool isUsed(mlir::Operation *op, int most = 3);\n}\n"}
        inner = "namespace kiln::lowering::gpu {\nstatic bool isUsed(%s) { return op; }\n}\n"
        self.expect("shadows", {**outer, "lowering/gpu/A.cpp": inner % "Operation *op, const int count"}, "lowering/gpu/A.cpp: its function 'isUsed'")
        self.expect("shadows", {**outer, "lowering/gpu/A.cpp": inner % "Operation &op, int count"})
        self.expect("shadows", {**outer, "runtime/A.cpp": "namespace kiln {\nstatic bool isUsed(Operation *op, int i) {}\n}\n"})

    def test_variables_are_written_down(self):
        table = {"runtime/README.md": "| `KILN_DUMP` | a folder |\n| `CXX` | the compiler |\n"}
        reads = {"runtime/A.cpp": 'std::getenv("CXX");\nvariable("KILN_DUMP");\n'}
        self.expect("variables", {**table, **reads})
        self.expect("variables", {**table, **reads, "runtime/B.cpp": '\nstd::get' 'env("TMPDIR")'}, "runtime/B.cpp:2")
        self.expect("variables", {**table, **reads, "tools/t": File("echo ${KILN" "_X:-}", True)}, "tools/t:1")
        self.expect("variables", table, "'CXX'", "'KILN_DUMP'")
        table["test/README.md"] = "| `KILN_T` | a folder |\n"
        self.expect("variables", {**table, **reads, "test/A.cc": 'std::get' 'env("KILN' '_T")'})
        self.expect("variables", {**table, **reads, "runtime/B.cpp": 'std::get' 'env("KILN' '_T")'}, "runtime/B.cpp:1")
        self.expect("variables", {**table, **reads}, "'KILN_T'")


if __name__ == "__main__":
    unittest.main()
