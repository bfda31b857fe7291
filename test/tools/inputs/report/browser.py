"""browser.py CHROMIUM PAGE SOURCE: opens a page of `kilnc --report`, and compares what it shows with the source."""

import html.parser
import pathlib
import subprocess
import sys
import tempfile


class Shown(html.parser.HTMLParser):
    """The texts of the cells with class "text", one for each line of a source, and how many stages are open."""

    def __init__(self):
        super().__init__()
        self.inside, self.lines, self.stages = False, [], 0

    def handle_starttag(self, tag, attributes):
        kinds = (dict(attributes).get("class") or "").split()
        self.stages += "stage" in kinds
        if tag == "td":
            self.inside = "text" in kinds
            self.lines += [""] if self.inside else []

    def handle_endtag(self, tag):
        self.inside = self.inside and tag != "td"

    def handle_data(self, text):
        if self.inside:
            self.lines[-1] += text


chromium, page, source = sys.argv[1:]
with tempfile.TemporaryDirectory() as profile:
    done = subprocess.run(
        [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", f"--user-data-dir={profile}",
         "--dump-dom", pathlib.Path(page).absolute().as_uri()],
        check=True, timeout=300, capture_output=True, encoding="utf-8")
complaints = [line for line in done.stderr.split("\n") if "CONSOLE" in line]
assert not complaints, complaints
shown = Shown()
shown.feed(done.stdout)
wanted = pathlib.Path(source).read_text(encoding="utf-8").removesuffix("\n").split("\n")
assert shown.lines == wanted, shown.lines
assert shown.stages == 2, shown.stages
