"""Checks a page of `kilnc --report`: report/check.py PAGE WHAT ARGUMENT…, with WHAT one of the functions below."""

import html.parser
import json
import re
import sys


class Data(html.parser.HTMLParser):
    """The text of the <script id="data">, as a browser finds it, and what would be fetched from elsewhere."""

    def __init__(self):
        super().__init__()
        self.inside, self.text, self.fetched = False, "", []

    def handle_starttag(self, tag, attributes):
        self.inside = tag == "script" and ("id", "data") in attributes
        self.fetched += [value for name, value in attributes if name in ("src", "href")]

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, text):
        self.text += text if self.inside else ""


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read().removesuffix("\n").split("\n")


def number_of(data, path, part):
    """The place, [file, line], of the one line that has a part."""
    file = next(i for i, each in enumerate(data["files"]) if each["name"] == path)
    found = [i + 1 for i, line in enumerate(data["files"][file]["lines"]) if part in line]
    assert len(found) == 1, found
    return [file, found[0]]


def source(data, path):
    """Each line of the source is there."""
    assert [each["lines"] for each in data["files"] if each["name"] == path] == [lines_of(path)], data["files"]


def stages(data, names):
    """These stages are there, and each has lines."""
    assert [stage["name"] for stage in data["stages"]] == names.split(","), [stage["name"] for stage in data["stages"]]
    assert all(len(stage["lines"]) == len(stage["sources"]) > 1 for stage in data["stages"])


def text(data, name, path):
    """A stage's text is that of a file."""
    assert next(stage["lines"] for stage in data["stages"] if stage["name"] == name) == lines_of(path)


def becomes(data, path, part, names):
    """The line that has a part has lines in each of these stages."""
    place = number_of(data, path, part)
    for stage in data["stages"]:
        assert stage["name"] not in names.split(",") or place in stage["sources"], (stage["name"], place)


def explained(data, path, part, pattern):
    """One of the explanations of the line that has a part matches, and its layout is drawn: an element for each cell."""
    place = number_of(data, path, part)
    found = [each for each in data["explanation"]["lines"] if each["at"] == place and re.search(pattern, each["text"])]
    assert found, data["explanation"]
    layout = data["layouts"][found[0]["layout"]]
    threads = 32 * layout["warps"]
    assert len(layout["holders"]) == layout["rows"] * layout["columns"]
    assert len(set(layout["holders"])) == len(layout["holders"])  # every element has its own place
    assert all(0 <= each < threads * layout["stored"] for each in layout["holders"])


def says(data, path, part, pattern):
    """One of the explanations of the line that has a part matches."""
    place = number_of(data, path, part)
    assert any(re.search(pattern, each["text"]) for each in data["explanation"]["lines"] if each["at"] == place), data[
        "explanation"
    ]


def sectors(data, path, part, expected):
    """The instructions of the line that has a part moved so many sectors."""
    place = number_of(data, path, part)
    found = sum(each["sectors"] for each in data["launch"]["instructions"] if each["at"] == place)
    assert found == int(expected), found


def prints(data, pattern):
    """For FileCheck: what the launch came to."""
    print(json.dumps(data[pattern], indent=1))


parser = Data()
with open(sys.argv[1], encoding="utf-8") as page:
    parser.feed(page.read())
assert not parser.fetched, parser.fetched
globals()[sys.argv[2]](json.loads(parser.text), *sys.argv[3:])
