"""Checks a reference site: `site.py SITE SOURCE KILNC`.

Every link and anchor within the site resolves, and no page loads anything from elsewhere. Every function of the language and
of kiln.h, every operation of `tile` and every flag of kilnc has an anchor, which the search finds. Prints each fault, then how
many there are.
"""

import glob
import html
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from urllib.parse import unquote


class Page(HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.loaded = set(), [], []
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if "id" in found:
            self.anchors.add(found["id"])
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        for name in ("src", "href"):
            if found.get(name) and tag in ("script", "link", "img", "iframe"):
                self.loaded.append(found[name])


def faults(site, source, kilnc):
    paths = glob.glob(f"{site}/**/*.html", recursive=True)
    pages = {os.path.normpath(path): Page(path) for path in paths}
    for path, page in pages.items():
        name = os.path.relpath(path, site)
        for link in page.loaded + page.links:
            if re.match(r"[a-z]+:", link) or link.startswith("//"):
                if link in page.loaded:
                    yield f"{name}: loads '{link}'"
                continue
            target, _, anchor = link.partition("#")
            file = os.path.normpath(os.path.join(os.path.dirname(path), unquote(target.split("?")[0]))) if target else path
            if not os.path.isfile(file):
                yield f"{name}: links to '{link}', which is not on the site"
            elif anchor and file in pages and unquote(anchor) not in pages[file].anchors:
                yield f"{name}: links to '{link}', where there is no such anchor"

    with open(f"{site}/searchindex.js", encoding="utf-8") as file:
        index = json.loads(re.fullmatch(r"Search\.setIndex\((.*)\)", file.read().strip(), re.S)[1])
    kinds = {name: int(number) for number, name in index["objtypes"].items()}

    def found(prefix, kind):
        """The names of a kind that the search finds at an anchor that is there."""
        for number, of_kind, _, anchor, name in index["objects"][prefix]:
            page = pages[os.path.normpath(f"{site}/{index['docnames'][number]}.html")]
            if of_kind == kinds[kind] and anchor in page.anchors:
                yield html.unescape(name)

    def missing(wanted, found, kind):
        if not wanted:
            yield f"expected to read the name of a {kind}, but found none"
        for name in sorted(wanted - set(found)):
            yield f"expected the search to find the {kind} '{name}', but it does not"

    def read(path):
        with open(path, encoding="utf-8") as file:
            return file.read()

    result = r"(?:Tile &?|Loop |void |std::array<Tile, \d> )"
    for name in ("Tile", "Functions", "Scaled", "Sorts"):
        header = re.sub(r"^.*= delete;$", "", read(f"{source}/dialect/dsl/{name}.h"), flags=re.M)
        functions = set(re.findall(rf"^{result}(operator[^\s(]+|\w+)\(", header, re.M))
        yield from missing(functions, found("", "cpp:function"), "function")
        if name == "Tile":
            yield from missing(set(re.findall(r"^(?:class|struct) (\w+) .*\{$", header, re.M)), found("", "cpp:class"), "class")
    functions = set(re.findall(r"^(?:\w+ )+\*?(kiln_\w+)\(", read(f"{source}/tools/libkiln/kiln.h"), re.M))
    yield from missing(functions, found("", "c:function"), "function in C")

    operations = set()
    for path in glob.glob(f"{source}/dialect/tile/*Ops.td"):
        operations.update("tile." + name for name in re.findall(r'^def Tile_\w+Op : \w+<"([a-z_]+)"', read(path), re.M))
    yield from missing(operations, index["alltitles"], "operation")

    told = subprocess.run([kilnc, "--help"], capture_output=True, text=True, check=True).stdout
    flags = set(re.findall(r"^  (?:-\w,)?(--?[\w-]+)", told, re.M))
    yield from missing(flags, found("kilnc", "std:cmdoption"), "flag")


def main():
    count = 0
    for count, fault in enumerate(faults(*sys.argv[1:]), 1):
        print(fault)
    print(f"faults: {count}")
    sys.exit(count > 0)


if __name__ == "__main__":
    main()
