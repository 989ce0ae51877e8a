# SPDX-License-Identifier: Apache-2.0
"""The rows of a query as an aligned table, JSON or CSV."""
from __future__ import annotations

import json
import re
from typing import Any, Callable, Dict, List, Sequence, Tuple, Union

from .._answer import Answer, in_units

Columns = Sequence[Tuple[str, str]]  # names and types
WIDEST, LEAST = 60, 12  # columns of the terminal for a cell; that a text keeps where the table is too wide
GAP = 2  # between columns
# Characters that the command shows as \x1b or \u202e (viewer/base/emit_json.c), by the length of what it shows.
ESCAPED = (("[\0-\x1f\x7f]", 4), ("[\x80-\x9f]", 8), ("[\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]", 6),
           ("[\U000e0000-\U000e007f]", 10))


def plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def width_of(text: str) -> int:
    return len(text) + sum((length - 1) * len(re.findall(characters, text)) for characters, length in ESCAPED)


def is_number(kind: str) -> bool:
    return kind.startswith("DECIMAL(") or re.search("INT|DECIMAL|DOUBLE|FLOAT|REAL", kind) is not None and not re.search(r"[\[(]", kind)


def cut_to(text: str, width: int) -> str:
    """The beginning of a text that is too wide, with two points."""
    if width_of(text) <= width:
        return text
    kept = text[:width - 2]
    while width_of(kept) > width - 2:
        kept = kept[:-1]
    return kept + ".."


def fit(widths: List[int], can_be_cut: Sequence[bool], screen: int) -> int:
    """Takes from the widest texts what a terminal lacks; figures stay whole. How many columns it shows then."""
    def needed(count: int) -> int:
        return sum(widths[:count]) + GAP * (count - 1)

    while needed(len(widths)) > screen:
        widest = max((i for i, text in enumerate(can_be_cut) if text and widths[i] > LEAST), key=lambda i: widths[i], default=-1)
        if widest < 0:
            break
        widths[widest] -= 1
    return max((count for count in range(1, len(widths) + 1) if needed(count) <= screen), default=1)


class Text:
    """Rows are printed once all are known, because the widest cell gives the width of a column. screen: columns of the terminal; 0: there is
    none, and everything is printed in full."""

    def __init__(self, answer: Answer, columns: Columns, screen: int) -> None:
        self.answer, self.screen = answer, screen
        self.right = [is_number(kind) for _, kind in columns]
        self.sizes = [right and re.search("(^|_)bytes$", name) is not None for right, (name, _) in zip(self.right, columns)]
        self.lines: List[List[str]] = [[name for name, _ in columns]]

    def shown(self, value: Any, is_size: bool) -> str:
        if value is None:
            return "-"
        if is_size:
            n = int(float(value)) if isinstance(value, str) else int(value)
            return ("-" if n < 0 else "") + in_units(abs(n))
        text = plain(value)
        return cut_to(text, WIDEST) if self.screen else text

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        self.lines += [[self.shown(value, is_size) for value, is_size in zip(row, self.sizes)] for row in rows]

    def end(self) -> None:
        widths, names = [max(map(width_of, column)) for column in zip(*self.lines)], self.lines[0]
        count = fit(widths, [not right for right in self.right], self.screen) if self.screen else len(widths)
        lines = []
        for line in self.lines if names else ():
            cells = [cut_to(cell, width) for cell, width in zip(line, widths[:count])]
            lines.append((" " * GAP).join(" " * (width - width_of(cell)) + cell if right else cell + " " * (width - width_of(cell))
                                          for cell, width, right in zip(cells, widths, self.right)))
        if count < len(names):
            lines += ["", cut_to(f"{len(names) - count} more columns (name fewer, or use --csv): {', '.join(names[count:])}", self.screen)]
        self.answer.end(lines=lines + ["(no rows)"] if len(self.lines) == 1 else lines)


class Json:
    def __init__(self, answer: Answer, columns: Columns, _: int) -> None:
        self.answer, self.columns, self.rows = answer, columns, []  # type: Answer, Columns, List[str]
        self.names = [json.dumps(name, ensure_ascii=False) for name, _ in columns]

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        """Two columns may have one name."""
        self.rows += ["{" + ", ".join(f"{name}: {json.dumps(value)}" for name, value in zip(self.names, row)) + "}" for row in rows]

    def end(self) -> None:
        columns = [{"name": name, "type": kind} for name, kind in self.columns]
        text = json.dumps(columns, ensure_ascii=False, separators=(",", ":"))
        self.answer.end(document=f'{{"columns":{text},"rows":[{",".join(self.rows)}]}}')


class Csv:
    """Rows are printed at once. An apostrophe in front of a formula makes it a text; a cell that begins with one gets another."""

    def __init__(self, answer: Answer, columns: Columns, _: int) -> None:
        self.answer, self.columns = answer, columns
        self.add([[name for name, _ in columns]])

    @staticmethod
    def cell(value: Any) -> str:
        text = "" if value is None else plain(value)
        mark = "'" if isinstance(value, str) and text[:1] in tuple("=+-@'\t\r") else ""
        return '"' + mark + text.replace('"', '""') + '"' if re.search('[,"\r\n]', text) else mark + text

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        self.answer.say("raw", "".join(",".join(map(self.cell, row)) + "\n" for row in rows))

    def end(self) -> None:
        self.answer.end()


Form = Union[Text, Json, Csv]
FORMS: Dict[str, Callable[[Answer, Columns, int], Form]] = {"text": Text, "json": Json, "csv": Csv}
