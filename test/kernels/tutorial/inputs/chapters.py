"""Tests the tutorial: its pages, the programs that they show, and the output that they print.

`chapters.py MODE ROOT BUILD FOLDER [I/N]` takes every chapter of kernels/tutorial, or part I of N of them: a page NN_name.md,
its kernels NN_name.cc and, in most chapters, NN_name.py, which compares their results with plain double precision. MODE is:

* form      each page has the parts of a chapter, shows text of these files, and is named in the index
* commands  each ```sh line runs as it stands, and prints the ``` block that follows
* devices   each `kilnc … --run` line and each NN_name.py runs on the CPU, on the reference backend and on a simulated GPU

In a block of output, `…` stands for any text of a line, a line `…` for any lines, and a number with a unit of time or
speed for any number, so that a faster compiler leaves the pages alone. Commands run in FOLDER/kernels/tutorial, which has
copies of the files; FOLDER/build is the real one.
"""

import os
import re
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../readme/inputs"))
import commands  # noqa: E402

DEVICES = ("cpu", "cpu:generic", "simulator:sm_90a")
MOST_LINES = 120
PARTS = ("## The program", "## Run it", "## Check it", "## A number", "## In Triton", "## Exercise", "## Next")
# Parts whose code is not in the chapter's files.
OTHER_CODE = ("## In Triton", "## Exercise")
MEASURED = re.compile(r"\d+(?:\\\.\d+)?(?=\\ (?:ms|us|s|GB/s|TFLOP/s|cycles|times\\ as\\ fast)(?:\W|$))")


def read(path):
    with open(path, encoding="utf-8") as stream:
        return stream.read()


def names_of(tutorial):
    """The chapters' names, in order."""
    names = sorted(name[:-3] for name in os.listdir(tutorial) if re.fullmatch(r"\d\d_\w+\.md", name))
    if not names:
        sys.exit(f"{tutorial}: expected chapters, but found none")
    return names


def blocks(text):
    """The code blocks of a page: the heading above each, its language and its text."""
    heading = ""
    for title, language, block in re.findall(r"^(## [^\n]*)$|^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        if title:
            heading = title
        else:
            yield heading, language, block


def shown(block, text):
    """Whether each part of a block, between lines `…`, is a part of a text."""
    return all(part.strip("\n") in text for part in re.split(r"^\s*…$", block, flags=re.M))


def form(tutorial, name):
    """Complaints about the form of a chapter."""
    page = read(f"{tutorial}/{name}.md")
    lines = page.count("\n")
    if lines > MOST_LINES:
        yield f"expected at most {MOST_LINES} lines, but got {lines}"
    if "You will learn" not in page:
        yield "expected 'You will learn'"
    found = re.findall(r"^## .*$", page, re.M)
    missing = [part for part in PARTS if part not in found]
    if missing:
        yield f"expected the headings {', '.join(missing)}"
    if f"{name}.md" not in read(f"{tutorial}/README.md"):
        yield "expected its name in the index, README.md"
    files = {"cpp": f"{tutorial}/{name}.cc", "py": f"{tutorial}/{name}.py", "cmake": f"{tutorial}/CMakeLists.txt"}
    programs = 0
    for heading, language, block in blocks(page):
        if language in files and heading not in OTHER_CODE:
            if not os.path.exists(files[language]) or not shown(block, read(files[language])):
                yield f"{heading}: expected text of {files[language]}, but got:\n{block}"
            programs += language == "cpp"
    if not programs:
        yield "expected a C++ block that shows its program"


def pattern_of(block):
    """The regular expression of the output that a block shows."""
    lines = []
    for line in block.splitlines():
        if line.strip() == "…":
            lines.append(r"(?:.*\n)*?")
        else:
            text = MEASURED.sub(r"[0-9.]+", re.escape(line.rstrip()))
            lines.append(text.replace("…", ".*") + r"[ \t]*\n")
    return "".join(lines)


def run_page(tutorial, name, folder, environment):
    """Runs the commands of a page and compares what they print; returns their number."""
    page = read(f"{tutorial}/{name}.md")
    printed, left = "", [command for command in commands.commands(page) if not commands.NOT_RUN.search(command)]
    total = len(left)
    for _, language, block in blocks(page):
        if language == "sh":
            printed = ""
            for command in commands.commands(f"```sh\n{block}```\n"):
                if command in left:
                    left.remove(command)
                    printed += commands.run(command, folder, environment)
        elif language == "" and not re.fullmatch(pattern_of(block), printed):
            sys.exit(f"{name}.md: expected this output:\n{block}but got:\n{printed}")
    for command in left:  # inline code
        commands.run(command, folder, environment)
    return total


def on_devices(tutorial, name, folder, environment):
    """Runs the launches of a page and the chapter's comparison on each device; returns the number of runs."""
    page = read(f"{tutorial}/{name}.md")
    runs = [command for command in commands.commands(page) if re.match(r"kilnc .*--run\b", command)
            and not re.search(r"--repeat|--device", command)]
    runs = [f"{command} --device={{}}" for command in runs]
    if os.path.exists(f"{tutorial}/{name}.py"):
        runs.append(f"python3 {name}.py {{}}")
    if not runs:
        sys.exit(f"{name}: expected a command with --run, or {name}.py")
    for device in DEVICES:
        for command in runs:
            printed = commands.run(command.format(device), folder, environment)
            if "warning: " in printed:
                sys.exit(f"{name}: expected no warning of '{command}', but got:\n{printed}")
    return len(runs) * len(DEVICES)


def main():
    mode, root, build, folder, *part = sys.argv[1:]
    tutorial = os.path.join(root, "kernels/tutorial")
    index, parts = map(int, part[0].split("/")) if part else (1, 1)
    names = names_of(tutorial)[index - 1::parts]
    if mode == "form":
        complaints = [f"{name}.md: {complaint}" for name in names for complaint in form(tutorial, name)]
        sys.exit("\n".join(complaints) if complaints else 0)
    commands.prepare(root, build, folder)
    place = os.path.join(folder, "kernels/tutorial")
    shutil.copytree(tutorial, place)
    environment = commands.environment_of(build)
    environment.update(PYTHONPATH=os.path.join(root, "tools/python"), LD_LIBRARY_PATH=os.path.join(build, "lib"),
                       PYTHONDONTWRITEBYTECODE="1")
    if mode == "commands":
        total = run_page(tutorial, "README", folder, environment) if index == 1 else 0
        total += sum(run_page(tutorial, name, place, environment) for name in names)
    else:
        total = sum(on_devices(tutorial, name, place, environment) for name in names)
    print(f"{total} commands ran")


if __name__ == "__main__":
    main()
