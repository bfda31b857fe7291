"""Complaints about an installed copy: `installed.py ROOT PREFIX`.

Its headers are those of the tree ROOT but for the spelling of includes, and its pages are the tree's, with links that lead
to something.
"""

import os
import re
import subprocess
import sys


def files(folder, pattern):
    for path, _, names in os.walk(folder):
        for name in names:
            if re.search(pattern, name):
                yield os.path.relpath(os.path.join(path, name), folder)


def read(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as stream:
        return stream.read()


def main():
    root, prefix = sys.argv[1:]
    headers, pages = os.path.join(prefix, "include/kiln"), os.path.join(prefix, "share/doc/kiln")
    complaints = []
    for header in files(headers, r"\.(h|def)$"):
        place = os.path.join("tools/libkiln", header) if header == "kiln.h" else header  # C's, which is not in a folder
        if re.sub(r"#include <kiln/(.*)>", r'#include "\1"', read(headers, header)) != read(root, place):
            complaints.append(f"{header}: differs from the tree's")
    wanted = subprocess.run(["git", "-C", root, "ls-files", "*.md"], check=True, capture_output=True, text=True).stdout.split()
    found = set(files(pages, r"\.md$"))
    complaints += [f"{page}: is not installed" for page in wanted if page not in found]
    for page in files(pages, r"\.md$"):
        text = re.sub(r"```.*?```", "", read(pages, page), flags=re.S)  # links, not calls such as k[grid](x)
        for link in re.findall(r"\]\(([^)#: ]+)(?:#[^)]*)?\)", text):
            if not os.path.exists(os.path.join(pages, os.path.dirname(page), link)):
                complaints.append(f"{page}: leads to '{link}', which is not there")
    if "../../include/kiln/dialect/dsl/Tile.h" not in read(pages, "README.md"):
        complaints.append("README.md: expected a link to Tile.h")
    print("\n".join(complaints))
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
