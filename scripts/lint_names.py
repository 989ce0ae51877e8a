# SPDX-License-Identifier: Apache-2.0
"""Documents name only what exists: commands, options and their values, settings, cards, make targets, files, Python names.
Prints `page:line: what is wrong` and fails. Usage: scripts/lint_names.py [PAGE...] (default: every document)

Looked at are the blocks of code of a page and the code in its sentences. Nothing is run: what exists is read from the
tables that the code is made from (lint_tables.py)."""
import ast
import re
import shlex
import sys
from pathlib import Path

import lint_tables as tables
from lint_tables import ROOT

FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", re.M | re.S)
INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
PLACEHOLDER = re.compile(r"[A-Z][A-Z0-9_]*(?:[.,=|:/%-][A-Z0-9_.%]*)*|\.\.\.|.*\$.*|%.*")
SIZE = re.compile(r"\d+(\.\d+)?\s?([KMGT]i?)?B?")
MOMENT = re.compile(r"peak|end|oom|\d+(\.\d+)?s?|mark:.+")
SYNTAX = re.compile(r"^(GOOD|FILE|COMMAND)\b|[|\[]|^\.\.\.$")  # a synopsis, not a command line
SETTING = re.compile(r"(?<![\w/])((?:GPUMEMTRACE|SIMGPU)_[A-Z][A-Z0-9_]*)(?:=(\"[^\"]*\"|'[^']*'|[^\s`\"'),;]+))?")
CARD = re.compile(r"(?<![\w-])(?:rtx|[abhlv]|gh|gb)[a-z]*\d+[a-z0-9]*-\d+g(?![\w-])")
FOREIGN = {"--memray", "--fail-on-increase", "--native", "--disable-gil", "--packages"}  # options of other tools
SHELL = ("sh", "example", "console", "")


def pieces(text):
    """Line, language (None: code in a sentence) and text of each piece of code."""
    for m in FENCE.finditer(text):
        yield text.count("\n", 0, m.start()) + 2, m[2], m[3]
    rest = FENCE.sub(lambda m: "\n" * m[0].count("\n"), text)
    for m in INLINE.finditer(rest):
        yield rest.count("\n", 0, m.start()) + 1, None, m[1].replace("\\|", "|")


def lines_of_shell(line, language, text):
    """Line and text of the commands of a block: after `$ ` where it shows output, else each line of a script."""
    shown = re.search(r"^\$ ", text, re.M)
    for i, row in enumerate(re.sub(r"\\\n", lambda m: "  ", text).split("\n")):
        if shown:
            row = row[2:] if row.startswith("$ ") else ""
        elif language == "":
            row = row if re.match(r"(gpumemtrace|make|LD_PRELOAD=\S+) ", row) else ""
        if row.strip() and not row.lstrip().startswith("#"):
            yield line + i, row


def words_of(command):
    """The simple commands of a line, each as its words."""
    command = re.sub(r"\s#\s.*|\s+#$", "", command)
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars="|&;<>")
        lexer.whitespace_split, lexer.commenters = True, ""
        found = list(lexer)
    except ValueError:
        found = command.split()
    simple = [[]]
    for word in found:
        if set(word) <= set("|&;"):
            simple.append([])
        elif not set(word) <= set("<>"):
            simple[-1].append(word)
    return [w for w in simple if w]


def value_fault(option, value):
    """Why the value is none of the option, or None."""
    kind = option.kind
    if not value or PLACEHOLDER.fullmatch(value):
        return None
    if option.name in ("sim", "cards", "card"):
        bad = [c for c in value.split(",") if c not in tables.cards() | {"all"} and not re.fullmatch(r"[\w-]+=\S+|\d+|[A-Z]+", c)]
        return f"no card {bad[0]}" if bad else None
    if kind == "WORD" or option.name == "to":
        return None if value in option.words else f"--{option.name} has no {value}: {' '.join(option.words)}"
    if kind == "CLASS":
        return None if value in tables.classes() | {*option.words} else f"no class {value}"
    if option.name == "max-class":
        return None if value.partition("=")[0] in tables.classes() else f"no class {value.partition('=')[0]}"
    right = {"NUMBER": r"\d+", "FIGURE": r"\d+(\.\d+)?", "SIZE": SIZE, "LIMIT": rf"\d+(\.\d+)?\s?%|{SIZE.pattern}", "MOMENT": MOMENT}.get(kind)
    return None if right is None or re.fullmatch(right, value) else f"--{option.name} takes no {value}"


def take_options(command, words, faults):
    """Checks options and their values; the words that are left are operands."""
    operands, words = [], list(words)
    while words:
        word = words.pop(0)
        if not re.match(r"--?[a-z]", word):
            operands.append(word)
            continue
        name, has, value = word.partition("=")
        option = command.options.get(name)
        if option is None:
            faults.append(f"gpumemtrace {command.name} has no {name}")
            continue
        if option.takes:
            value = value if has else words.pop(0) if words else ""
        fault = value_fault(option, value)
        if fault:
            faults.append(f"gpumemtrace {command.name}: {fault}")
    return operands


def tool_faults(words, whole):
    """words: those behind `gpumemtrace`. whole: a command line that could be run, so its operands count."""
    faults = []
    if not words or words[0] in ("--help", "--version", "--completions", "help", "COMMAND") or PLACEHOLDER.fullmatch(words[0]):
        return faults
    name, words = words[0], words[1:]
    command = tables.commands().get(name)
    if command is None:
        return [f"gpumemtrace has no command {name}"] if re.fullmatch(r"[a-z][a-z_-]*", name) else []
    program = words[words.index("--") + 1:] if "--" in words else []
    if not program and command.name == "run":  # what begins with no option is the program
        words = words[:next((i for i, w in enumerate(words) if re.search(r"\.py$|^python|^torchrun", w)), len(words))]
        program = ["..."]
    operands = take_options(command, words[:words.index("--")] if "--" in words else words, faults)
    if whole and "--help" not in words and "--schema" not in words and not (command.least <= len(operands) + bool(command.rest and program) <= command.most):
        faults.append(f"gpumemtrace {name} takes {command.synopsis}, not {len(operands)} of these: {' '.join(operands)}")
    if name == "ctl" and len(operands) > 1 and operands[1] not in tables.requests() and not PLACEHOLDER.fullmatch(operands[1]):
        faults.append(f"gpumemtrace ctl has no request {operands[1]}")
    return faults


def make_faults(words):
    for word in words:
        name, is_variable, _ = word.partition("=")
        if is_variable and not re.search(rf"\b{re.escape(name)}\b", tables.text("Makefile", "scripts/setup.sh")):
            yield f"the Makefile knows no {name}"
        elif not is_variable and re.match(r"[a-z]", word) and not tables.is_target(word):
            yield f"make has no target {word}"


def path_faults(page, word):
    """A word that begins with a folder of the repository, or of the page's own, is a path."""
    word = re.sub(r"^\./|[:.,]+$|:\d+$|#.*$", "", word)
    first = word.partition("/")[0]
    here = (ROOT / page).parent
    if first in (".", "..") or "/" not in word or re.search(r"[<>$%=~]|\.\.\.|://", word) or not re.fullmatch(r"[\w.][\w.*/{},+-]*", word):
        return
    if first not in tables.FOLDERS and not (here != ROOT and here.joinpath(first).is_dir() and "/" in word.rstrip("/")):
        return
    pattern = re.sub(r"(?<![a-z])[A-Z]{2,}(?![A-Za-z])", "*", word).rstrip("/")
    pattern = re.sub(r"\{[^}]*\}", "*", pattern)
    for root in (ROOT, here, ROOT / "docs"):
        for tail in ("", ".*"):
            if (root / pattern).exists() or next(iter(root.glob(pattern + tail)), None):
                return
    if not tables.is_made(word):
        yield f"no file {word}"


def name_faults(word):
    """A source by its name alone, an environment of setup.sh."""
    if re.fullmatch(r"[a-z]\w*\.(c|h|def|js|cpp)", word) and word not in tables.source_names():
        yield f"no source {word}"
    for name in re.findall(r"^\.venv-[a-z]+", word):
        if not re.search(rf"{re.escape(name)}\b", tables.text("scripts/setup.sh")):
            yield f"scripts/setup.sh makes no {name}"


def script_faults(words):
    """Options and words of the repository's own scripts."""
    script = next((w for w in words if re.fullmatch(r"(\./)?(scripts|tests|packaging)/[\w/.-]+\.(py|sh)", w) and (ROOT / w).is_file()), None)
    if script is None or "pytest" in words:
        return
    source, rest = (ROOT / script).read_text(), words[words.index(script) + 1:]
    for word in rest:
        name = word.partition("=")[0]
        if re.match(r"--[a-z]", word) and not re.search(rf"[\"'\s(]{re.escape(name)}\b", source):
            yield f"{script} has no {name}"
    if script.endswith("scripts/setup.sh"):
        usage = re.search(r"# Usage: scripts/setup.sh((?:.*\n# +\[)?.*)", source)[1]
        yield from (f"{script} has no part {w}" for w in rest if re.fullmatch(r"[a-z]\w*", w) and f"[{w}]" not in usage)


def pytest_faults(words):
    """Tests that -k and a path choose: the words of -k stand in the file."""
    files = [w for w in words if w.startswith("tests/") and (ROOT / w).is_file()]
    if "-k" in words[:-1] and files:
        chosen = words[words.index("-k") + 1]
        names = " ".join((ROOT / f).read_text() for f in files).lower()
        yield from (f"{' '.join(files)} has no test {w}" for w in re.findall(r"\w+", chosen) if w not in ("or", "and", "not") and w.lower() not in names)


def command_faults(page, words, whole):
    while words and re.match(r"[A-Z_][A-Z0-9_]*=", words[0]):
        words = words[1:]
    if not words:
        return
    if Path(words[0]).name == "gpumemtrace":
        yield from tool_faults(words[1:], whole)
    elif words[0] == "make":
        yield from make_faults(words[1:])
    elif words[:3] == ["python", "-m", "gpumemtrace"] or (len(words) > 2 and words[1] == "-m" and words[2].startswith("gpumemtrace.")):
        source = ROOT / "python" / f"{words[2].replace('.', '/')}.py"
        if source.exists():
            yield from (f"{words[2]} has no {w}" for w in words[3:] if w.startswith("--") and f'"{w}"' not in source.read_text())
    yield from script_faults(words)
    yield from pytest_faults(words)


def short_command_faults(page, text):
    """Code in a sentence: `report --steps` without the tool's name, an option alone, or parts of a command line."""
    words = text.split()
    command = tables.commands().get(words[0])
    if command and len(words) > 1 and any(re.match(r"--?[a-z]", w) for w in words[1:]) and not SYNTAX.search(text):
        yield from tool_faults(words, whole=False)
    if re.fullmatch(r"--[a-z][a-z-]*(=\S*| .*)?", text):
        name, own = re.match(r"--[a-z-]+", text)[0], re.search(r"gpumemtrace-(\w+)\.1\.md$", str(page))
        holders = [c for c in tables.commands().values() if name in c.options]
        if not holders and name not in tables.other_options() | FOREIGN:
            yield f"no command has {name}"
        elif own and re.match(r"--[a-z-]+ \S+$", text) and tables.commands()[own[1]] in holders:
            yield from tool_faults([own[1], *words], whole=False)
        elif holders and len(words) > 1:
            faults = [tool_faults([c.name, *words], whole=False) for c in holders]
            yield from min(faults, key=len)


def setting_faults(text):
    for m in SETTING.finditer(text):
        name, value = m[1], (m[2] or "").strip("\"'")
        if m.end() < len(text) and text[m.end(1):m.end(1) + 1] == "*":
            continue
        row = tables.settings().get(name)
        if row is None and name not in tables.variables():
            yield f"nothing reads {name}"
        elif row and value and not PLACEHOLDER.fullmatch(value) and not re.fullmatch(row, value):
            yield f"{name} takes no {value}"


def python_faults(text):
    """Names of the package: gpumemtrace.x, gpumemtrace.x.Y."""
    for m in re.finditer(r"(?<![\w/.-])gpumemtrace((?:\.[A-Za-z_]\w*)+)", text):
        names = m[1][1:].split(".")
        if names[-1] in ("gmt", "so", "md", "html", "snapshot.pickle") or names[0].isupper():
            continue
        known = tables.python_names("__init__")
        if names[0] in tables.python_modules():
            known, names = tables.python_names(names[0]) | {""}, names[1:] or [""]
        if names[0] not in known:
            yield f"the Python package has no gpumemtrace{m[1]}"
    for m in re.finditer(r"gpumemtrace\[(\w+)\]", text):
        if f"Provides-Extra: {m[1]}\n" not in tables.text("packaging/wheel.py"):
            yield f"the wheel has no extra {m[1]}"


def piece_faults(page, line, language, text):
    """(line, what is wrong)"""
    commands = []
    if language in SHELL:
        commands = [(n, w, True) for n, row in lines_of_shell(line, language, text) for w in words_of(row)]
    elif language in ("yaml", "python"):
        commands = [(line + i, w, False) for i, row in enumerate(text.split("\n"))
                    for m in [re.search(r"(?:run: |^\s*|# )(gpumemtrace [a-z].*)", row)] if m for w in words_of(m[1])]
    elif language is None:
        commands = [(line, w, False) for w in words_of(text)] if not SYNTAX.search(text) else []
        yield from ((line, f) for f in short_command_faults(page, text) if text.strip())
    for n, words, whole in commands:
        yield from ((n, f) for f in command_faults(page, words, whole))
        yield from ((n, f) for word in words for part in re.split(r"[\s'\"()]+", word) for f in (*path_faults(page, part), *name_faults(part)))
    for i, row in enumerate(text.split("\n")):
        yield from ((line + i, f) for f in (*setting_faults(row), *python_faults(row)))
    if language == "python":
        try:
            ast.parse(text)
        except SyntaxError as error:
            yield line, f"no Python: {error.msg}"


def text_faults(page, text):
    """What may stand anywhere: cards, pages of the manual, links."""
    plain = FENCE.sub(lambda m: "\n" * m[0].count("\n"), text)
    for i, row in enumerate(text.split("\n"), 1):
        yield from ((i, f"no card {c}") for c in CARD.findall(row) if c not in tables.cards())
        for name in re.findall(r"\bgpumemtrace-([a-z]+)(?=\*{0,2}\(1\))", row):
            if name not in tables.commands():
                yield i, f"no page gpumemtrace-{name}(1)"
    for i, row in enumerate(plain.split("\n"), 1):
        for target in re.findall(r"\]\(([^)#\s]+)", INLINE.sub("", row)):
            if "://" not in target and not (ROOT / page).parent.joinpath(target).exists():
                yield i, f"the link to {target} leads to no file"


def import_faults(text):
    """A module of the package that a block of Python uses and no block of the page imports."""
    blocks = [(line, body) for line, language, body in pieces(text) if language == "python"]
    whole = "\n".join(body for _, body in blocks)
    for line, body in blocks:
        for module in sorted(set(re.findall(r"(?<!import )\bgpumemtrace\.([a-z_]+)\.", body)) & tables.python_modules()):
            if not re.search(rf"import gpumemtrace\.{module}\b|from gpumemtrace import .*\b{module}\b", whole):
                yield line, f"gpumemtrace.{module} is used and not imported"


def member_faults(page, text):
    """Members of JSON that a page of the manual names."""
    section = re.search(r"^## JSON\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if section and str(page).startswith("docs/man/"):
        first = text.count("\n", 0, section.start(1)) + 1
        for i, row in enumerate(section[1].split("\n")):
            yield from ((first + i, f"no document has a member {n}") for n in re.findall(r"\*([a-z]+_[a-z_]+)\*", row) if n not in tables.members())


def check(page, text):
    """All faults of a page, as sentences."""
    found = [f for piece in pieces(text) for f in piece_faults(page, *piece)]
    found += [*text_faults(page, text), *import_faults(text), *member_faults(page, text)]
    return [f"{page}:{line}: {fault}" for line, fault in sorted(dict.fromkeys(found))]


def pages():
    globs = ("*.md", "docs/**/*.md", "viewer/*.md", "simgpu/*.md", "shim/*.md", "format/*.md", "examples/**/*.md", "python/*.md",
             "packaging/*.md", "tests/**/README.md")
    return sorted({p.relative_to(ROOT) for g in globs for p in ROOT.glob(g)} - {Path("CHANGELOG.md")})


def main():
    faults = [f for page in ([Path(p) for p in sys.argv[1:]] or pages()) for f in check(page, (ROOT / page).read_text())]
    print("\n".join(faults), end="\n" * bool(faults))
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
