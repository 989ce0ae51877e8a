# SPDX-License-Identifier: Apache-2.0
"""The documents that the Python package reads, as classes, made from viewer/answers/documents.def.
Usage: scripts/python_documents.py >python/gpumemtrace/_documents.py"""
import keyword

import json_page

READ = ("info", "stack", "report", "live", "why", "peak", "steps", "leaks", "account", "modules", "timeline", "top", "oom",
        "diff", "check", "advise")
PYTHON = {"FLAG": "bool", "DECIMAL": "float", "TEXT": "str", "RAW": "str", "CLASS": "str", "CLASSES": "Mapping[str, int]",
          "WORDS": "Tuple[str, ...]", "FACTS": "Mapping[str, str]"}
HEAD = '''# SPDX-License-Identifier: Apache-2.0
# Made from viewer/answers/documents.def by scripts/python_documents.py: change that one.
"""What the tool's commands answer: one class for each object of their JSON (docs/json.md), with the same members.
Bytes are bytes of device memory as the allocator has them, times are nanoseconds of the recorded program's
``CLOCK_MONOTONIC``. A member whose name is a word of Python has ``_`` behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Mapping, Optional, Tuple

from ._rows import Row, Table
'''


def class_name(table):
    return "".join(part.capitalize() for part in table.split("_"))


def python_type(m):
    name = m.part and class_name(m.part)
    plain = {"LIST": f"Table[{name}]", "PART": name, "MAP": f"Mapping[str, {name}]"}.get(m.kind) or PYTHON.get(m.kind, "int")
    plain = f"Optional[{plain}]" if m.kind in json_page.OR_NULL and not m.when else plain
    return f"Optional[{plain}] = None" if m.when else plain


def attribute(name):
    return name + "_" if keyword.iskeyword(name) else name


def members_of(found, table):
    """Those with a condition stand last: they have a default."""
    members = found[table][1]
    return [m for m in members if not m.when] + [m for m in members if m.when]


def says(kinds, m):
    unit = kinds[m.kind][1]
    return f"{attribute(m.name)}: {f'{m.when}: ' if m.when else ''}{m.meaning}" + (f" ({unit})" if unit else "")


def class_of(found, kinds, table):
    name, members = class_name(table), members_of(found, table)
    lines = ["", "", "@dataclass(frozen=True)", f"class {name}(Row):", f'    """{found[table][0]}', ""]
    lines += [f"    {says(kinds, m)}" for m in members] + ['    """', ""]
    lines += [f"    {attribute(m.name)}: {python_type(m)}" for m in members]
    lines += [f'    _types: ClassVar[str] = "{" ".join(m.kind for m in members)}"']
    return lines


def needed(found, names):
    """Parts before what holds them."""
    done = []

    def take(table):
        for m in found[table][1]:
            if m.part:
                take(m.part)
        if table not in done:
            done.append(table)

    for name in names:
        take(name)
    return done


def module():
    found, kinds = json_page.tables(), json_page.types()
    lines = [HEAD.rstrip("\n")]
    for table in needed(found, READ):
        lines += class_of(found, kinds, table)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(module(), end="")
