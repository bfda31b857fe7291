"""Pages of headers: the comments and declarations of a C or C++ header as Markdown for Sphinx.

`sections(text, read)` splits a header at its lines `// --- Title ---`. A Section has a title, the example below it, and
items: declarations, each with the comment above it. `markdown(items, domain)` writes items as directives of Sphinx's
domain `cpp` or `c`, so that each function is in the index. Private members, the namespace `detail`, deleted functions
and the bodies of functions are left out.
"""

import re
from typing import NamedTuple


class Item(NamedTuple):
    about: str  # lines of prose, without comment marks
    code: str  # the declaration, without the body of a function


class Section(NamedTuple):
    title: str  # empty before the first section
    example: str
    items: list


def expanded(text, read):
    """The text with each `#include "FILE.def"` replaced by the file's entries, expanded by the macros above it."""
    macros, lines = {}, []
    for line in re.sub(r"\\\n", " ", text).splitlines():
        define = re.match(r"#define (\w+)\(([^)]*)\)(.*)", line)
        include = re.match(r'#include "(.*\.def)"', line)
        if define:
            macros[define[1]] = ([name.strip() for name in define[2].split(",")], define[3].strip())
        elif include:
            about = []
            for entry in read(include[1]).splitlines():
                call = re.match(r"(KILN_\w+)\((.*)\)", entry)
                if entry.startswith("///"):
                    about.append(entry)
                elif call and macros.get(call[1], ("", ""))[1]:
                    names, body = macros[call[1]]
                    values = dict(zip(names, (value.strip() for value in call[2].split(","))))
                    lines += about + [re.sub(r"\w+", lambda word: values.get(word[0], word[0]), body)]
                    about = []
                else:
                    about = []
        else:
            lines.append(line)
    return "\n".join(lines)


def depth(line):
    """The number of opening minus closing brackets in a line, outside comments, strings and characters."""
    code = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])\'|//.*|/\*.*?\*/', "", line)
    return sum(code.count(bracket) for bracket in "({[") - sum(code.count(bracket) for bracket in ")}]")


def statement(lines, start):
    """The line after the declaration, or the namespace, that begins at line `start`."""
    level = 0
    for end in range(start, len(lines)):
        level += depth(lines[end])
        code = re.sub(r"\s*(//.*|/\*.*\*/)$", "", lines[end])
        if level <= 0 and code.endswith((";", "}")):
            return end + 1
    return len(lines)


OPENING = re.compile(r"\A(/\*.*?\*/|(//[^\n]*\n)+)", re.S)


def introduction(text):
    """The text of the comment at the beginning of a header."""
    opening = OPENING.match(text)[0]
    return "\n".join(re.sub(r"^(/\*| ?\*/|//| \*) ?|\s*\*/$", "", line) for line in opening.splitlines())


TEMPLATE = re.compile(r"template <.*?>\s*(requires[^\n]*\n\s*)?")
# Forward declarations, deleted functions, declarations for the compiler only, errors, and definitions of class members.
KEPT_OUT = re.compile(r"(class|struct) \w+;|friend |KILN_MISTAKE|static_assert|extern \"C\"|(virtual )?~|\w+ &operator=\(|"
                      r"[^{]*(= delete;|\boperator\[\]|^\w+::~?\w+\()|(?!class|struct).*static_assert\(sizeof", re.S)


def sections(text, read=None):
    text = re.sub(r" : public \w+Mistakes\b", "", OPENING.sub("", text, count=1))
    text = re.sub(r"/\* (---.*?---) \*/", r"// \1", expanded(text, read))
    lines, found, about, is_private, i = text.splitlines(), [Section("", "", [])], [], False, 0
    while i < len(lines):
        line, start = lines[i].strip(), i
        i += 1
        title = re.match(r"// --- (.*?) -+$", line)
        if title:
            example = []
            while i < len(lines) and lines[i].startswith("//     "):
                example.append(lines[i][7:])
                i += 1
            found.append(Section(title[1], "\n".join(example), []))
        elif line.startswith("///"):
            about.append(line[4:])
        elif line.startswith("/*"):
            while not lines[i - 1].rstrip().endswith("*/"):
                i += 1
            about = [re.sub(r"^\s*(/\*| \*) ?|\s*\*/$", "", part) for part in lines[start:i]]
        elif re.match(r"(public|private|protected):", line):
            is_private, about = line != "public:", []
        elif not line or re.match(r"//|#|namespace kiln \{|extern \"C\" \{|\}", line):
            about = []
        else:
            i = statement(lines, start)
            code = "\n".join(lines[start:i])
            if not (is_private or line.startswith("namespace") or KEPT_OUT.match(TEMPLATE.sub("", code.strip(), count=1))):
                found[-1].items.append(Item("\n".join(about), code))
            about = []
    return found


def signature(code):
    """A function's declaration in one line, without its body, a constructor's initialisers, and the parameter `loc`."""
    line = " ".join(re.sub(r"//.*", "", code).split())
    level = 0
    for at, letter in enumerate(line):
        level += letter in "(" and 1 or letter in ")" and -1 or 0
        if level == 0 and letter == "{" and line[:at].rstrip().endswith((")", "const", "noexcept", "override")):
            line = line[:at]
            break
        if level == 0 and line[at:at + 3] == " : ":
            line = line[:at]
            break
    line = re.sub(r"(, )?Loc loc = here\(\)(?=\))", "", line)
    return re.sub(r"\b(static )?inline |\[\[.*?\]\] ?|( = 0)?;?\s*$", "", line).strip()


# The names in comments that become links: paths of files, and functions.
NAMES = r"(?<![\w/<\"(.])(?:dialect|lowering|runtime|kernels|tools|models)/[\w/]+\.(?:md|h|def|td|cc)\b|(?<![\w:.])\w+\(\)"


def prose(text, linked=lambda name: None):
    """A comment's text as Markdown: Markdown's special characters are escaped, except for lists, code and blank lines.
    `linked` returns the link of a name that matches NAMES, if there is one."""
    def plain(part):
        if part.startswith("`"):
            return part
        return re.fullmatch(NAMES, part) and linked(part) or re.sub(r"(\*\w+\*)|([<*_\[\]$])", lambda mark: mark[1] or "\\" + mark[2], part)
    lines = [line if line.startswith("    ") else "".join(plain(part) for part in re.split(f"(`[^`]*`|{NAMES})", line))
             for line in text.splitlines()]
    lines = [re.sub(r"^  (\S+)  +(.*)", r"- \1: \2", line) for line in lines]
    for at in range(1, len(lines)):  # a list needs blank lines around it
        if lines[at - 1] and lines[at].startswith("- ") != lines[at - 1].lstrip().startswith("- ") and not lines[at].startswith("  "):
            lines[at] = "\n" + lines[at]
    # Indented lines are formulas or code.
    return re.sub(r"^(?:    .*\n|\n(?=    ))+", lambda block: listing(block[0]) if re.search(r"[;{]$", block[0], re.M) else block[0],
                  "\n".join(lines) + "\n", flags=re.M).rstrip("\n")


def fence(language, marks="```"):
    """The line that begins a code block. Incomplete code, such as with `…` in it, is highlighted, too."""
    if language not in ("cpp", "c", "sh", "py", "cmake", "json"):
        return f"{marks}text"
    return f"{marks}{{code-block}} {language}\n:force:\n"


def listing(code):
    lines = code.strip("\n").splitlines()
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return fence("cpp") + "\n" + "\n".join(line[margin:] for line in lines) + "\n```\n"


def body(code):
    return code[code.index("{") + 1:code.rindex("}")]


def directive(kind, name, content, level):
    fence = ":" * level
    return f"{fence}{{{kind}}} {name}\n{content}\n{fence}\n"


def is_function(code):
    plain = re.sub(r"//.*|/\*.*?\*/| = .*", "", code)
    return "(" in plain and not re.match(r"\s*(typedef|struct|class|enum|union|using|std::function)\b", plain)


def members(code, domain, linked):
    """The members of a class: its functions as entries, all others as code."""
    access = "private:" if re.match(r"(template <.*?>\s*)?class", code) else "public:"
    text = body(code)
    items = sections(f"\n{access}\n{text}")[0].items
    functions = [item for item in items if is_function(item.code)]
    if access == "private:":
        data = "\n".join("".join(f"  /// {line}\n" for line in item.about.splitlines()) + item.code
                         for item in items if item not in functions)
    else:
        for item in functions:
            about = "".join(rf" *///? ?{re.escape(line)}\n" for line in item.about.splitlines())
            text = re.sub(about + re.escape(item.code), "", text, count=1)
        data = re.sub(r"\n\s*\n+", "\n", text).strip("\n")
    entries = [entry(item, domain, linked, 6) for item in functions]
    return "\n".join(([listing(data)] if data.strip() else []) + entries)


def entry(item, domain, linked, level=7):
    """A declaration as a directive."""
    code, note = item.code.strip(), re.search(r"/\* (.*?) \*/$", item.code)
    about = prose(item.about or (note[1] if note else ""), linked)
    head = " ".join(re.sub(r"//.*", "", code).split("{")[0].split())
    kind = re.match(r"(template <.*> )?(?:typedef )?(enum class|enum|struct|class|union) (.*)", head)
    if kind and "{" in code:
        noun = kind[2].replace("enum class", "enum-class")
        name = re.sub(r"\s*:\s*\w+$", "", kind[3]) if noun.startswith("enum") else kind[3]
        inner = listing(body(code)) if noun.startswith("enum") else members(code, domain, linked)
        return directive(f"{domain}:{noun}", (kind[1] or "") + name, f"{about}\n\n{inner}", level)
    concept = re.match(r"(template <.*?>) concept (\w+) = (.*);", head)
    if concept:
        return directive(f"{domain}:concept", f"{concept[1]} {concept[2]}", f"{about}\n\n{listing(concept[3])}", level)
    if re.match(r"using \w+ =", code):
        return directive(f"{domain}:type", signature(code)[6:], about, level)
    if code.startswith("typedef"):
        return directive(f"{domain}:type", re.match(r".*?(\w+);", code)[1], about, level)
    if is_function(code):
        return directive(f"{domain}:function", signature(re.sub(r"/\*.*?\*/", "", code)), about, level)
    externs = re.match(r"extern (const \w+) ([\w, ]+);", " ".join(code.split()))
    if externs:
        return "\n".join(directive(f"{domain}:var", f"{externs[1]} {name.strip()}", about, level) for name in externs[2].split(","))
    return f"{about}\n\n{listing(code)}"


def markdown(items, domain="cpp", linked=lambda name: None):
    entries = [entry(item, domain, linked) for item in items]
    return "\n".join(entries).replace("```\n\n\n\n" + fence("cpp") + "\n", "")  # joins code blocks of constants without comments
