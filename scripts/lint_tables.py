# SPDX-License-Identifier: Apache-2.0
"""What exists, read from the tables that the code is made from: for lint_names.py and lint_claims.py."""
import ast
import functools
import re
from pathlib import Path

import docs_reference
from json_page import ROOT, read

FOLDERS = {"scripts", "tests", "docs", "viewer", "shim", "simgpu", "format", "python", "packaging", "examples", "cupti", ".github", ".ci"}
CODE = (".c", ".h", ".def", ".py", ".sh", ".yml", ".yaml", ".cpp")
OPTION_MACROS = ("OPTION", "ALSO", "DEVICE", "TOP", "STEPS", "AT")


class Option:
    def __init__(self, name, letter, kind, argument, words=(), initial=None):
        self.name, self.letter, self.kind, self.argument, self.words, self.initial = name, letter, kind, argument, words, initial
        self.takes = kind != "SWITCH"


class Command:
    """One row COMMAND with what belongs to it. least and most: how many operands a command line has."""

    def __init__(self, name, summary):
        self.name, self.summary, self.options, self.operands = name, summary, {}, []
        for option in (Option("json", None, "SWITCH", None), Option("help", "h", "SWITCH", None), Option("no-pager", None, "SWITCH", None),
                       Option("rank", None, "TEXT", "N")):
            self.add(option)

    def add(self, option):
        self.options[f"--{option.name}"] = option
        if option.letter:
            self.options[f"-{option.letter}"] = option

    @property
    def rest(self):
        return any(kind == "REST" for _, kind in self.operands)

    @property
    def least(self):
        needed = sum(kind not in ("OPTIONAL",) for _, kind in self.operands)
        return 1 if {k for _, k in self.operands} in ({"OPTIONAL", "REST"}, {"MANY", "REST"}) else needed

    @property
    def most(self):
        return 1000 if any(kind in ("MANY", "RUN") for _, kind in self.operands) else len(self.operands)

    @property
    def synopsis(self):
        return " ".join(name for name, _ in self.operands)


def text(*paths):
    return "".join(read(p) for p in paths)


@functools.lru_cache(maxsize=None)
def formats():
    return tuple(a[0] for _, a in docs_reference.rows("viewer/export/export_formats.def", "EXPORT"))


def option_of(macro, a):
    if macro == "DEVICE":
        return Option("device", None, "NUMBER", "N")
    if macro == "TOP":
        return Option("top", None, "NUMBER", "N", initial=a[2])
    if macro == "STEPS":
        return Option("steps", None, "NUMBER", "N", initial="2")
    if macro == "AT":
        return Option("at", None, "MOMENT", "MOMENT")
    extra = ",".join(a[7:])
    words = formats() if "export_words" in extra else tuple((re.search(r'\.words = "([^"]*)"', extra) or [0, ""])[1].split())
    initial = re.search(r"\.initial = (\d+)", extra)
    return Option(docs_reference.literal(a[2]), a[3].strip("'") if a[3] != "0" else None, a[4], docs_reference.literal(a[5]), words,
                  initial and initial[1])


@functools.lru_cache(maxsize=None)
def commands():
    found = {}
    for macro, a in docs_reference.rows("viewer/ask/commands.def", "COMMAND", "OPERAND", *OPTION_MACROS):
        if macro == "COMMAND":
            found[a[0]] = Command(a[0], docs_reference.literal(a[4]))
        elif macro == "OPERAND":
            found[a[0]].operands.append((docs_reference.literal(a[2]), a[3]))
        else:
            found[a[0]].add(option_of(macro, a))
    return found


def requests():
    return set(re.findall(r"\w+", commands()["ctl"].summary.split(":")[1]))


@functools.lru_cache(maxsize=None)
def cards():
    return {docs_reference.literal(a[0]) for _, a in docs_reference.rows("simgpu/core/cards.def", "CARD")}


@functools.lru_cache(maxsize=None)
def classes():
    return {a[0] for _, a in docs_reference.rows("viewer/classes/categories.def", "CATEGORY")}


@functools.lru_cache(maxsize=None)
def settings():
    """name -> pattern of its values"""
    right = {"SWITCH": "on|off|1|0|yes|no|true|false", "NUMBER": r"\d+", "CHOICE": "python|native|all|none", "SIZE": r"\d+(\.\d+)?\s?([KMGT]i?)?B?", "TEXT": ".*"}
    return {f"GPUMEMTRACE_{a[0]}": right[kind] for kind, a in docs_reference.rows("format/settings.def", *right)}


@functools.lru_cache(maxsize=None)
def sources(*tops):
    """Text of all code below these folders, documents left out."""
    files = [p for top in tops for p in (ROOT / top).rglob("*") if p.suffix in CODE and p.is_file() and not p.name.startswith("lint_")]
    return "\n".join(p.read_text(errors="replace") for p in [ROOT / "Makefile", *files])


@functools.lru_cache(maxsize=None)
def source_names():
    return {p.name for top in FOLDERS for p in (ROOT / top).rglob("*.*")}


@functools.lru_cache(maxsize=None)
def variables():
    """Tests read settings of their own: GPUMEMTRACE_TEST_..., GPUMEMTRACE_FUZZ_...; what else they name is what they set."""
    pattern = r"(?<![A-Z_])(?:GPUMEMTRACE|SIMGPU)_[A-Z][A-Z0-9_]*"
    tests = {name for name in re.findall(pattern, sources("tests")) if name.startswith(("GPUMEMTRACE_TEST_", "GPUMEMTRACE_FUZZ_"))}
    return tests | set(re.findall(pattern, sources(*sorted(FOLDERS - {"tests"}))))


@functools.lru_cache(maxsize=None)
def members():
    """Members of JSON documents, and the names and words that stand in them as values."""
    return set(re.findall(r"\b[a-z]\w*\b", text("viewer/answers/documents.def", "viewer/model/spans.c"))) | classes()


@functools.lru_cache(maxsize=None)
def other_options():
    """Of the Python package, its pytest plugin, and scripts of the repository."""
    return set(re.findall(r"(?:add_argument|addoption)\((?:[\"']-\w[\"'], *)?[\"'](--[a-z-]+)", sources("python", "scripts", "tests")))


@functools.lru_cache(maxsize=None)
def targets():
    made = read("Makefile")
    found = {t for line in re.findall(r"^([a-z][a-z0-9 -]*):(?!=)", made, re.M) for t in line.split()}
    for kind, folder in (("", "unit"), ("corpus_", "fuzz")):
        prefix = "fuzz_" if kind else ""
        names = [p.stem.removeprefix(prefix) for p in (ROOT / "tests" / folder).glob(f"{prefix or 'test_'}*.c")]
        found |= {f"run-{kind}{n}" for n in names} | ({f"fuzz-{n}" for n in names} if kind else set())
    return found


def is_target(word):
    if re.fullmatch(r"(run|fuzz)-[A-Z]+", word):
        return True
    if word.startswith("build/"):
        name = Path(word).name
        kind = word.split("/")[1]
        return name.isupper() or bool({"programs", "unit", "data"} & {kind} and [*(ROOT / "tests").rglob(f"{name}.c")]) or \
            bool(re.search(rf"\$\(B\)/({re.escape(word[6:])}|%)", read("Makefile")) or [*(ROOT / "tests").rglob(f"{name}.c")])
    return word in targets()


def is_made(path):
    """Pages that `make docs` makes from tables."""
    return bool(re.fullmatch(r"docs/reference/(" + "|".join(docs_reference.PAGES) + r")\.(md|html)", path))


@functools.lru_cache(maxsize=None)
def python_modules():
    return {p.stem for p in (ROOT / "python/gpumemtrace").glob("*.py")} | {p.name for p in (ROOT / "python/gpumemtrace").iterdir() if p.is_dir()}


@functools.lru_cache(maxsize=None)
def python_names(module):
    """What a module of the package defines or imports."""
    names = set()
    for node in ast.parse(read(f"python/gpumemtrace/{module}.py")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {a.asname or a.name for a in node.names}
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = getattr(node, "targets", [getattr(node, "target", None)])
            names |= {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
            if "__all__" in names and isinstance(node.value, ast.List):
                names |= {e.value for e in node.value.elts}
    return names
