"""Builds the reference site: pages in Markdown, which Sphinx converts to HTML.

`pages.py SOURCE BUILD OUT` writes OUT/pages and OUT/site. The site has the repository's pages, at their own paths; the
public headers; the pages that the build generates from TableGen; the programs' `--help`; the environment variables; and
the source files that pages link to. Links lead to pages of the site. CONTENTS is the navigation, in order. A warning of
Sphinx, such as a broken link, is an error.
"""

import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import headers  # noqa: E402

LANGUAGE = [f"dialect/dsl/{name}.h" for name in ("Tile", "Functions", "MathFunctions", "Scaled", "Sorts")]
OTHER = {"dialect/dsl/Kernel.h": "Kernels and configs", "dialect/dsl/Plan.h": "Plans", "dialect/dsl/Types.h": "Types and errors"}
RUNTIME = [f"runtime/{name}.h" for name in
           ("Device", "Tensor", "Compile", "Executable", "Findings", "Meters", "Npy", "SideStream", "Streams")]
CPP_HEADERS = LANGUAGE + [*OTHER] + RUNTIME
C_HEADER = "tools/libkiln/kiln.h"
# Titles for sections without one; sections with the same title, also of several headers, share a page.
UNTITLED = {"Functions.h": "Arithmetic", "MathFunctions.h": "Math functions", "Scaled.h": "Matrix product", "Sorts.h": "Sorting"}
PROGRAMS = ["kilnc", "kiln-opt", "kiln-sim", "kiln-bench", "gpt2", "tokens", "translate", "bytelm"]
GENERATED = {"operations": "Operations of tile", "simt": "Operations of simt", "passes": "Passes"}
LEXERS = {"h": "cpp", "cc": "cpp"}  # by a file's extension, or by the language of a page's code block
# Pages that list the pages of a pattern.
INDICES = {"language/index": ("Functions by group", "language/*"), "kernels/index": ("Headers of operators", "kernels/*.h"),
           "runtime/index": ("Headers of the runtime", "runtime/*.h"), "programs/index": ("Programs and flags", "programs/*")}
# Parts of the navigation: pages by name; a pattern with '*' has the pages of a folder that no part names.
CONTENTS = [
    ("Tutorial", ["kernels/tutorial/README", "kernels/tutorial/*"]),
    ("Language", ["dialect/README", "language/index", "dialect/dsl/*.h", "dialect/SEMANTICS", "dialect/NUMERICS", "dialect/*"]),
    ("Built-in operators", ["kernels/README", "kernels/list", "kernels/index", "kernels/*"]),
    ("Runtime", ["runtime/README", "runtime/index", "runtime/cuda/README", C_HEADER, "tools/python/README", "runtime/environment",
                 "runtime/*", "runtime/*/README"]),
    ("Command line", ["tools/README", "programs/index", "tools/kilnc/README", "tools/kilnc/TUNING", "tools/*", "tools/*/*"]),
    ("Training", ["models/README", "models/tokens/README", "models/translate/README", "models/bytelm/README", "models/DESIGN",
                  "models/*", "models/*/README"]),
    ("Compiler", ["lowering/README", "lowering/cpu/README", "lowering/gpu/README", "dialect/simt/layout/README",
                  "build/reference/*", "lowering/*", "lowering/*/*"]),
    ("Simulator", ["runtime/simulator/README"]),
    ("Performance", ["tools/kiln-bench/README", "models/RESULTS"]),
    ("Glossary", ["dialect/GLOSSARY"]),
    ("Contributing", ["test/README", "test/*", "test/*/README", "sources/index"]),
]


LOCATION = "The last parameter of many functions, `Loc loc = here()`, is the caller's line. These pages leave it out."


class Site:
    """The pages of the site, which make() writes."""

    def __init__(self, source, build):
        self.source, self.build = source, build
        self.pages = {}  # text by path
        self.copied, self.linked = set(), set()  # pictures and source files that pages link to
        listed = subprocess.run(["git", "-C", source, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True)
        self.files = sorted(path for path in listed.stdout.split() if os.path.exists(os.path.join(source, path)))

        self.functions = {domain: {headers.signature(item.code).split("(")[0].split()[-1].lstrip("*&")
                                   for path in paths for section in headers.sections(self.read(path), self.read)
                                   for item in section.items if headers.is_function(item.code)}
                          for domain, paths in {"cpp": CPP_HEADERS + self.operators(), "c": [C_HEADER]}.items()}

    def operators(self):
        """The headers of built-in operators: those with a plan."""
        return [path for path in self.files
                if re.match(r"kernels/\w+\.h$", path) and re.search(r"^Plan plan", self.read(path), re.M)]

    def read(self, path):
        with open(os.path.join(self.source, path), encoding="utf-8") as file:
            return file.read()

    def link(self, page, target):
        """The site's link for a link of the page, whose target is relative to it; None if the site has no such page."""
        path, _, anchor = target.partition("#")
        if not path or re.match(r"\w+:", target):
            return target
        path = os.path.normpath(os.path.join(os.path.dirname(page), path))
        if f"{path}/README.md" in self.files:
            path += "/README.md"
        if path == "README.md":
            path = "index.md"
        elif re.match(r"build/reference/\w+\.md", path) or path in self.files and path.endswith(".md"):
            pass
        elif path in self.files and path.endswith((".svg", ".png")):
            self.copied.add(path)
        elif path in self.files:
            self.linked.add(path)
            path = f"sources/{path}.md"
        else:
            return None
        start = os.path.dirname("index.md" if page == "README.md" else page)
        return os.path.relpath(path, start or ".") + (f"#{anchor}" if anchor else "")

    def prose(self, page, text):
        """A page's text with links to pages of the site. Code is unchanged."""
        def led(found):
            if found[1] is None:
                return found[0]
            target = self.link(page, found[3])
            return f"{found[1]}({target})" if target else found[2]
        parts = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
        for i in range(0, len(parts), 2):
            # Matches code, which is unchanged, or a link, whose text may contain code.
            parts[i] = re.sub(r"(?<!\[)`[^`\n]+`(?!\])|(!?\[((?:`[^`]*`|[^\[\]`])*)\])\(([^)\s]+)\)", led, parts[i])
        return re.sub(r"^```(\w+)$", lambda found: headers.fence(LEXERS.get(found[1], found[1])), "".join(parts), flags=re.M)

    def naming(self, page, domain):
        """A function that returns the link of a name in a comment, for a page."""
        def linked(name):
            if name.endswith("()"):
                return f"{{{domain}:func}}`{name[:-2]}`" if name[:-2] in self.functions[domain] else None
            target = self.link("README.md", name)
            return f"[`{name}`]({os.path.relpath(target, os.path.dirname(page))})" if target else None
        return linked

    def header(self, page, title, path, domain="cpp"):
        """Adds the page of a header."""
        text = self.read(path)
        linked = self.naming(page, domain)
        parts = [f"# {title}\n", headers.prose(headers.introduction(text), linked) + "\n", self.origin(page, path)]
        for section in headers.sections(text, self.read):
            parts.append(self.section(page, section, domain, f"## {section.title}\n" if section.title else ""))
        self.pages[page] = "\n".join(parts)

    def section(self, page, section, domain, heading):
        example = headers.listing(section.example) if section.example else ""
        return "\n".join([heading, example, headers.markdown(section.items, domain, self.naming(page, domain))])

    def origin(self, page, path):
        return f"Declared in [`{path}`]({os.path.relpath(self.link('README.md', path), os.path.dirname(page))}).\n"

    def language(self):
        """Adds a page for each group of the language's functions."""
        groups = {}
        for path in LANGUAGE:
            for section in headers.sections(self.read(path), self.read):
                title = re.split(":", section.title)[0] or UNTITLED.get(os.path.basename(path), "")
                if section.items:
                    groups.setdefault(title, []).append((path, section))
        for title, sections in groups.items():
            page = f"language/{title.lower().replace(' ', '-')}.md"
            parts, before = [f"# {title}\n"], None
            for path, section in sections:
                parts.append(self.section(page, section, "cpp", self.origin(page, path) if path != before else ""))
                before = path
            self.pages[page] = "\n".join(parts)

    def program(self, program):
        """Adds the page of a program: its flags and those of its subcommands, from their `--help`."""
        def helped(*words):
            shown = subprocess.run([os.path.join(self.build, "bin", program), *words, "--help"], capture_output=True, text=True, check=True)
            return shown.stdout
        page = f"programs/{program}.md"
        text = helped()
        if program == "kiln-opt":  # LLVM's format
            self.pages[page] = f"# {program}\n\nIts [passes](../build/reference/passes.md) are flags of it.\n\n```text\n{text}```\n"
            return
        parts = [f"# {program}\n", options(program, text)]
        commands = text.partition("\nSubcommands:\n")[2]
        for command in re.findall(r"^  ([\w-]+) ", commands, re.M):
            parts += [f"## {program} {command}\n", options(f"{program} {command}", helped(command))]
        self.pages[page] = "\n".join(parts)

    def environment(self):
        table = re.findall(r"^\| `([A-Z_]+)` \| (.*) \|$", self.read("runtime/README.md"), re.M)
        entries = [f":::{{envvar}} {name}\n{self.prose('runtime/environment.md', about)}\n:::\n" for name, about in table]
        self.pages["runtime/environment.md"] = "# Environment variables\n\nDefaults are in parentheses.\n\n" + "\n".join(entries)

    def generated(self, name, title):
        """Adds a page generated from TableGen, with one level of headings: the operations or passes."""
        with open(f"{self.build}/reference/{name}.md", encoding="utf-8") as file:
            text = re.sub(r"<!--.*?-->\n", "", file.read())
        text = re.sub(r"^### (`[^`]*`).*", r"## \1", text, flags=re.M)
        text = re.sub(r"^####+ (.*?):?$", r"**\1**", text, flags=re.M)
        self.pages[f"build/reference/{name}.md"] = self.prose(f"build/reference/{name}.md", f"# {title}\n\n{text}")

    def kernels(self):
        listed = subprocess.run([f"{self.build}/bin/kilnc", "--list"], capture_output=True, text=True, check=True).stdout
        parts = ["# List of kernels\n", "Each kernel's arguments and config, as `kilnc --list` prints them.\n"]
        for name, lines in re.findall(r"^(\w+)\n((?:  .*\n)+)", listed, re.M):
            parts.append(f"## {name}\n\n```text\n{lines}```\n")
        self.pages["kernels/list.md"] = "\n".join(parts)

    def sources(self):
        """Adds the source files that pages link to."""
        for path in sorted(self.linked):
            ending = path.rpartition(".")[2]
            fence = headers.fence(LEXERS.get(ending, ending), "`" * 6)
            self.pages[f"sources/{path}.md"] = f"---\norphan: true\n---\n# {path}\n\n{fence}\n{self.read(path)}``````\n"
        listed = "".join(f"- [{path}]({path}.md)\n" for path in sorted(self.linked))
        self.pages["sources/index.md"] = f"# Source files\n\nThe files that pages of this site link to.\n\n{listed}"

    def matching(self, pattern):
        expression = re.escape(pattern).replace(r"\*", r"[\w-]+")
        return [page[:-3] for page in self.pages if re.fullmatch(expression, page[:-3])]

    def indices(self):
        for page, (title, pattern) in INDICES.items():
            entries = [f"/{entry}" for entry in self.matching(pattern) if entry not in INDICES]
            about = ""
            if page == "language/index":
                linked = self.naming(f"{page}.md", "cpp")
                about = headers.prose(headers.introduction(self.read(LANGUAGE[0])), linked) + f"\n\n{LOCATION}\n"
            self.pages[f"{page}.md"] = f"# {title}\n\n{about}{toctree(entries)}"

    def contents(self):
        """The trees of the navigation. Sphinx warns of a page that is in no tree."""
        named, trees = {pattern for _, patterns in CONTENTS for pattern in patterns}, []
        for caption, patterns in CONTENTS:
            pages = [page for pattern in patterns for page in self.matching(pattern) if page == pattern or page not in named]
            named.update(pages)
            trees += [toctree(pages, caption)] if pages else []
        return "".join(trees)

    def make(self):
        for path in self.files:
            if path.endswith(".md"):
                self.pages["index.md" if path == "README.md" else path] = self.prose(path, self.read(path))
        self.language()
        for path, title in OTHER.items():
            self.header(f"{path}.md", title, path)
        for path in self.operators() + RUNTIME:
            self.header(f"{path}.md", os.path.basename(path), path)
        self.header(f"{C_HEADER}.md", "The C API", C_HEADER, "c")
        self.environment()
        self.kernels()
        for name, title in GENERATED.items():
            self.generated(name, title)
        for program in PROGRAMS:
            self.program(program)
        self.indices()
        self.sources()
        self.pages["index.md"] += "\n" + self.contents()
        return self


def toctree(entries, caption=None):
    """A list of pages for the navigation. With a caption it is hidden on the page itself."""
    return "\n".join(["", "```{toctree}", f":caption: {caption}\n:hidden:\n" if caption else ":maxdepth: 1\n", *entries, "```", ""])


def options(program, text):
    """The `--help` of a program, as CLI11 prints it, as Sphinx entries."""
    introduction, _, rest = text.partition("Usage: ")
    usage, _, rest = rest.partition("\n")
    parts = [f"{headers.prose(introduction.strip())}\n", f"```text\n{usage}\n```\n", f"```{{program}} {program}\n```\n"]
    flags = rest.partition("\nSubcommands:\n")[0]
    for line in re.sub(r"\n {20,}", "  ", flags).splitlines():
        found = re.match(r"  (\S.*?)(?:  +(.*))?$", line)
        if found:
            name = re.sub(r"^(-\w),", r"\1, ", re.sub(r" (Excludes|REQUIRED|REQUIRES).*", "", found[1]))
            parts.append(f":::{{option}} {name}\n{headers.prose(found[2] or '')}\n:::\n")
        elif line.strip():
            parts.append(f"**{line[:-1]}**\n" if line.endswith(":") else f"{headers.prose(line)}\n")
    return "\n".join(parts)


def main():
    source, build, out = sys.argv[1:]
    site = Site(source, build).make()
    for path in site.copied:
        site.pages[path] = site.read(path)
    shutil.rmtree(f"{out}/pages", ignore_errors=True)
    shutil.rmtree(f"{out}/site", ignore_errors=True)
    for path, text in site.pages.items():
        os.makedirs(os.path.dirname(f"{out}/pages/{path}"), exist_ok=True)
        with open(f"{out}/pages/{path}", "w", encoding="utf-8") as file:
            file.write(text)
    settings = os.path.dirname(os.path.abspath(__file__))
    subprocess.run(["sphinx-build", "-q", "-W", "--keep-going", "-j", "auto", "-c", settings, "-d", f"{out}/doctrees",
                    f"{out}/pages", f"{out}/site"], check=True)


if __name__ == "__main__":
    main()
