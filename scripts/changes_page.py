#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""changes_page.py --write: the table of changes in docs/make-it-fit.md, and the code of each, from python/gpumemtrace/changes."""
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python/gpumemtrace"))

from changes import ROWS  # noqa: E402

sys.path.remove(str(ROOT / "python/gpumemtrace"))  # a module there is called transformers

PAGE = ROOT / "docs/make-it-fit.md"
BEGIN, END = "<!-- changes -->\n", "<!-- end of changes -->\n"


def name_of(row):
    return row.name + (f"={row.value}" if row.value else "")


def arguments_of(row):
    return "<br>".join(f"{framework}: `{text}`" for framework, text in row.arguments.items())


def text():
    rows = [f"| {f'`--with {name_of(row)}`' if row.make else f'{row.name} (by hand)'} | {row.cost} | {row.slowdown:g} | {arguments_of(row)} |" for row in ROWS]
    code = [f"**{name_of(row)}**\n\n```py\n{row.how}\n```\n" for row in ROWS]
    return "\n".join(["", "| change | costs | time of a step | in frameworks |", "|---|---|---:|---|", *rows, "", "In plain PyTorch:", "", *code])


def page():
    whole = PAGE.read_text()
    return whole[:whole.index(BEGIN)] + BEGIN + text() + "\n" + whole[whole.index(END):]


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page())
    else:
        sys.stdout.write(text())
