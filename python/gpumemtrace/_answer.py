# SPDX-License-Identifier: Apache-2.0
"""The answer on descriptor 3, which the command prints (viewer/commands/question.c): a line of JSON for each part, an object with one
member. The last line has an exit code; output of others on stdout is no part of it. And numbers as the command prints them."""
from __future__ import annotations

import json
import os
from typing import Any, Sequence, Tuple

ANSWER = 3  # the descriptor
OK, CHECK, USAGE, UNREADABLE, INTERRUPTED = 0, 1, 2, 3, 130  # exit codes
UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")

Column = Tuple[str, int, int]  # title, spaces in front, least width: below 0 = to the left


class Sentence(Exception):
    """The reason why there is no result, as the command prints it; without a text it is known."""

    def __init__(self, text: str, code: int = UNREADABLE) -> None:
        super().__init__(text)
        self.code = code


class Interrupted(Sentence):
    def __init__(self, text: str = "") -> None:
        super().__init__(text, INTERRUPTED)


class Answer:
    def __init__(self, answer: int = ANSWER) -> None:
        self.file = os.fdopen(answer, "w", encoding="utf-8", errors="surrogateescape")
        self.shown = ""

    def put(self, part: str, value: Any, as_document: bool = False) -> None:
        self.raw(part, json.dumps(value, ensure_ascii=as_document, separators=(",", ":")))

    def raw(self, part: str, text: str) -> None:
        """JSON as it is."""
        self.file.write(f'{{"{part}": {text}}}\n')
        self.file.flush()

    def say(self, part: str, text: str, number: int = 0) -> None:
        self.put(part, [number, text])

    def doing(self, text: str) -> None:
        """A line of progress; empty: there is none any more."""
        if text != self.shown:
            self.say("doing", text)
        self.shown = text

    def note(self, text: str) -> None:
        self.say("note", text)

    def title(self, text: str) -> None:
        self.say("title", text)

    def line(self, text: str = "") -> None:
        self.say("line", text)

    def sentence(self, text: str, indent: int = 2) -> None:
        """Its second and further lines stand that far to the right, the first two columns less."""
        self.say("sentence", text, indent)

    def item(self, number: int, text: str) -> None:
        self.say("item", text, number)

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
        self.put("table", {"columns": columns, "rows": rows})

    def document(self, value: Any) -> None:
        self.put("document", value, as_document=True)

    def end(self, code: int = OK, lines: Sequence[str] = (), document: str = "") -> None:
        """The lines of text, or the document (JSON), are printed only if all of the answer came."""
        whole = f',"document":{document}' if document else ""
        self.file.write(f'{{"end":{{"code":{code},"lines":{json.dumps(lines)}{whole}}}}}\n')
        self.file.flush()

    def fail(self, sentence: Sentence) -> None:
        if str(sentence):
            self.say("error", str(sentence), sentence.code)
        else:
            self.end(sentence.code)


def in_units(n: int, digits: int = 1) -> str:
    """1.5 GiB"""
    if n < 1024:
        return f"{n} B"
    value, unit = n / 1024, 0
    while value >= 1023.95 and unit < len(UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.{digits}f} {UNITS[unit]}"


def apart(n: int, other: int) -> str:
    """With as many digits as it takes to differ from another figure of the sentence."""
    for digits in (1, 2, 3):
        if n == other or in_units(n, digits) != in_units(other, digits):
            return in_units(n, digits)
    return f"{n:,} B"


def many(n: int, one: str) -> str:
    """1 block, 12,345 blocks"""
    return f"{n:,} {one}" + ("" if n == 1 else "es" if one.endswith("s") else "s")


def decimal(x: float) -> float:
    """With the digits that the command prints of other figures."""
    x = float(f"{x:.10g}")
    return int(x) if x.is_integer() else x
