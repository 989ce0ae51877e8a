# SPDX-License-Identifier: Apache-2.0
"""What viewer/answers/documents.def says of the commands' JSON: the reference page docs/json.md, and whether a document
is as described. Usage: scripts/json_page.py >docs/json.md"""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WHOLE = {"NUMBER", "COUNT", "BYTES", "NS", "DURATION", "ADDRESS"}
OR_NULL = {"COUNT_OR_NULL", "BYTES_OR_NULL", "NS_OR_NULL"}
SIGNED = {"SIGNED", "CHANGE", "WALL"}
ENTRY = re.compile(r'^(TABLE|MEMBER|MAYBE|OWNER)\((.*")\)*,?$', re.M)
INTRO = """\
# JSON of the commands

Every command takes `--json` and prints one object, or one object a line where that is said. Of several recordings (a
folder, the ranks of a run) `ranks` has one object for each, with `rank`, `file` and these members, and beside it
stand `totals`, `median` and `stray`. The members stand in this order, always; a member with a condition is absent
where the condition does not hold. Members may be added in later versions; none of these goes or changes its meaning.

Numbers are whole unless a fraction is named, up to 64 bits without a sign. Bytes of device memory are as the allocator
has them. Nanoseconds are those of `dump` (`CLOCK_MONOTONIC` of the recorded process); a timestamp since 1970 is named
so. Text of the program that is not UTF-8 has each such byte as a lone surrogate, U+DC00 and the byte, which Python's
`surrogateescape` turns back. `x[]` is a list: its rows are objects with the members below it; `x.*` has an object by name.

The classes are {classes}.

This page is made from [documents.def](../viewer/answers/documents.def) by `scripts/json_page.py`.
"""
EXPORT = """\
## The table of blocks

`export --to jsonl` writes an object a line with all of these members, `null` where there is none; CSV and Arrow have the
same columns.

| member | type | unit | meaning |
|---|---|---|---|"""

EVENTS = """
## The table of events

`export --to arrow --table events` writes a row an event, null where its kind has no such member.

| column | type | unit | meaning |
|---|---|---|---|"""


def read(path):
    return (ROOT / path).read_text()


class Member:
    def __init__(self, name, kind, part=None, when="", meaning=""):
        self.name, self.kind, self.part, self.when, self.meaning = name, kind, part, when, meaning


def of_tries():
    """Members of changes that are made and run, by their tables."""
    found = tables()
    return {(table, m.name) for table in found for m in found[table][1] if "--try" in m.when or table == "fit_set"}


def arguments(text):
    return [a.strip() for a in re.findall(r'"(?:[^"\\]|\\.)*"|[^,"]+', text) if a.strip()]


def tables():
    """name -> (meaning, members), as they stand in the file."""
    found = {}
    for kind, text in ENTRY.findall(read("viewer/answers/documents.def").split("clang-format off", 1)[1]):
        table, *rest = [a.strip('"') if a.startswith('"') else a for a in arguments(text)]
        if kind == "TABLE":
            found[table] = (rest[0], [])
            continue
        members = found[table][1]
        if kind == "OWNER":
            members += [Member("function", "TEXT", meaning=f"function of the line {rest[0]}; empty if not known"),
                        Member("file", "TEXT", meaning="its file; empty if not known"),
                        Member("line", "NUMBER", meaning="its number, 0 if not known")]
            continue
        name, type, *words = rest
        part = re.fullmatch(r"(\w+)\((\w+)\)", type)
        when, meaning = ("", words[0]) if kind == "MEMBER" else words
        members.append(Member(name, part[1] if part else type, part and part[2], when, meaning))
    return found


def types():
    return {name: (json, unit) for name, json, unit in
            re.findall(r'^TYPE\((\w+), "([^"]*)", "([^"]*)"\)', read("viewer/answers/member_types.def"), re.M)}


def classes():
    return re.findall(r"^CATEGORY\((\w+),", read("viewer/classes/categories.def"), re.M)


def documents(found):
    """The tables that are a whole document."""
    parts = {m.part for _, members in found.values() for m in members}
    return [name for name in found if found[name][1] and name not in parts and name != "fact"]


def rows(found, kinds, table, prefix=""):
    meaning, members = found[table]
    for m in members:
        json, unit = kinds[m.kind]
        name = prefix + ("*" if m.kind in ("FIGURES", "WHOLE") else m.name)
        yield f"| `{name}` | {json} | {unit} | {f'*{m.when}:* ' if m.when else ''}{m.meaning} |"
        if m.part:
            inside = {"LIST": f"{name}[].", "PART": f"{name}.", "MAP": f"{name}.*."}[m.kind]
            below = rows(found, kinds, m.part, inside)
            if m.kind == "MAP":
                next(below)
            yield from below


def page():
    found, kinds = tables(), types()
    names = classes()
    lines = [INTRO.format(classes=", ".join(f"`{n}`" for n in names[:-1]) + f" and `{names[-1]}`")]
    command = None
    for table in documents(found):
        if table.split("_")[0] != command:
            command = table.split("_")[0]
            lines.append(f"## {command}\n")
        lines.append(f"{found[table][0]}\n\n| member | type | unit | meaning |\n|---|---|---|---|")
        lines += [*rows(found, kinds, table), ""]
    lines.append(EXPORT)
    for name, kind, unit, meaning in re.findall(r'^COLUMN\((\w+), (\w+), "([^"]*)", "([^"]*)"\)',
                                                read("viewer/export/export_columns.def"), re.M):
        lines.append(f"| `{name}` | {'number' if kind == 'NUMBER' else 'string'} | {unit} | {meaning} |")
    lines.append(EVENTS)
    for name, kind, unit, meaning in re.findall(r'^EVENT_COLUMN\((\w+), \w+, (\w+), \w+, "([^"]*)", "([^"]*)"\)',
                                                read("viewer/export/export_event_columns.def"), re.M):
        lines.append(f"| `{name}` | {kind.lower().replace('text', 'utf8')} | {unit} | {meaning} |")
    return "\n".join(lines).rstrip("\n") + "\n"


def wrong(found, table, document, seen, path="", skip=0):
    """What is not as described, in words; notes in seen what was there."""
    members = found[table][1][skip:]
    if not isinstance(document, dict):
        return [f"{path}: no object"]
    known = [m.name for m in members]
    open_ended = any(m.kind in ("FIGURES", "WHOLE") for m in members)
    bad = [f"{path}{name} is not described in {table}" for name in document if name not in known and not open_ended]
    if not bad and not open_ended and list(document) != [n for n in known if n in document]:
        bad.append(f"{path or table}: the members stand in another order")
    for m in members:
        if m.name in document:
            seen.add((table, m.name))
            bad += wrong_value(found, m, document[m.name], seen, f"{path}{m.name}")
        elif not m.when and m.kind not in ("FIGURES", "WHOLE"):
            bad.append(f"{path}{m.name} is missing")
    return bad


def wrong_value(found, m, value, seen, path):
    whole = isinstance(value, int) and not isinstance(value, bool)
    texts = isinstance(value, dict) and all(isinstance(v, str) for v in value.values())
    if m.kind == "LIST" and isinstance(value, list):
        return [w for i, row in enumerate(value) for w in wrong(found, m.part, row, seen, f"{path}[{i}].")]
    if m.kind == "MAP" and isinstance(value, dict):
        seen.update((m.part, found[m.part][1][0].name) for _ in value)
        return [w for name, row in value.items() for w in wrong(found, m.part, row, seen, f"{path}.{name}.", 1)]
    if m.kind == "PART":
        return wrong(found, m.part, value, seen, f"{path}.")
    good = (m.kind in OR_NULL and value is None or m.kind in WHOLE | OR_NULL and whole and 0 <= value < 1 << 64 or m.kind in SIGNED and whole or
            m.kind == "DECIMAL" and (whole or isinstance(value, float)) or m.kind == "FLAG" and isinstance(value, bool) or
            m.kind in ("TEXT", "RAW") and isinstance(value, str) or m.kind == "CLASS" and value in classes() or
            m.kind == "CLASSES" and isinstance(value, dict) and set(value) <= set(classes()) or
            m.kind == "WORDS" and isinstance(value, list) and all(isinstance(v, str) for v in value) or
            m.kind == "NUMBERS" and isinstance(value, list) and all(isinstance(v, int) for v in value) or
            m.kind == "FACTS" and texts)
    return [] if good else [f"{path}: {str(value)[:60]} is no {m.kind}"]


def check(found, command, document, seen=None):
    """[] if the document is one of that command's; else what is wrong with the one that comes nearest."""
    names = [t for t in documents(found) if t == command or t.startswith(command + "_")]
    best = None
    for name in names:
        noted = set()
        bad = wrong(found, name, document, noted)
        if not bad:
            if seen is not None:
                seen |= noted
            return []
        best = bad if best is None or len(bad) < len(best) else best
    return best if names else [f"no document {command} is described"]


if __name__ == "__main__":
    print(page(), end="")
