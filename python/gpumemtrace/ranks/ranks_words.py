# SPDX-License-Identifier: Apache-2.0
"""Figures, call sites and names of classes, as the command prints them for one recording (viewer/base/human.c, viewer/recording/owner_words.c)."""
from __future__ import annotations

import os
import re
from typing import Dict, NamedTuple

from .._answer import in_units
from .ranks_columns import BYTES, COUNT, DECIMAL, FLAG, GROWTH, SECONDS

LEAST = 6  # columns below which a name says nothing
OPERATOR = re.compile(r"operator(?:\(.|[<>=\-!+*/[\]]*)|\(anonymous namespace\)")


class Place(NamedTuple):
    """A line of code."""

    function: str
    file: str
    line: int


class Words:
    """classes: in their order, each with its words. cut: long texts are shortened, as on a terminal."""

    def __init__(self, classes: Dict[str, str], cut: bool) -> None:
        self.classes, self.cut = classes, cut

    def within(self, text: str, columns: int) -> str:
        """Its beginning."""
        raw = os.fsencode(text)
        return os.fsdecode(raw[:whole(raw, columns - 2)]) + ".." if self.cut and len(raw) > columns else text

    def place(self, p: Place, columns: int = 0) -> str:
        name = brief(p.function) if p.function else "(no stack)"
        where = f"{base(p.file)}:{p.line}" if p.line else base(p.file)
        rest = f" {where}" if p.file else ""
        length = len(os.fsencode(name + rest))
        if not self.cut or not columns or length <= columns:
            return name + rest
        room = columns - (length - len(os.fsencode(name)))
        if room >= LEAST:
            return os.fsdecode(os.fsencode(name)[:room - 2]) + ".." + rest
        raw = os.fsencode(where)
        return ".." + os.fsdecode(raw[whole(raw, len(raw) - columns + 2):]) if len(raw) > columns else where


def whole(raw: bytes, n: int) -> int:
    """So many bytes, or fewer: not a part of a character."""
    while n and raw[n] & 0xC0 == 0x80:
        n -= 1
    return n


def base(path: str) -> str:
    return path.rpartition("/")[2]


def brief(name: str) -> str:
    """A C++ function without its template arguments and parameters."""
    if "::" not in name:
        return name
    kept, depth, at = "", 0, 0
    while at < len(name):
        sign = OPERATOR.match(name, at)
        text = sign[0] if sign else name[at]
        if text == "(" and not depth:
            break
        depth -= text == ">" and depth > 0
        if not depth:
            kept += text
        depth += text == "<"
        at += len(text)
    return kept or name


def change(n: int) -> str:
    return ("-" if n < 0 else "+") + in_units(abs(n)) if n else "0"


def seconds(ns: int) -> str:
    s = ns / 1e9
    if ns < 1000:
        return f"{ns} ns"
    if s < 0.001:
        return f"{s * 1e6:.0f} us"
    if s < 0.1:
        return f"{s * 1e3:.1f} ms"
    if s < 100:
        return f"{s:.2f} s"
    whole = int(s + 0.5)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    if whole < 2 * 86400:
        return f"{whole // 3600} h {whole // 60 % 60:02} min"
    return f"{whole // 86400} days {whole // 3600 % 24} h"


def figure(kind: str, n: float) -> str:
    count = int(n) if n > 0 else 0
    if kind == GROWTH:
        return change(int(n))
    if kind == FLAG:
        return "yes" if n else "no"
    if kind == DECIMAL:
        return f"{n:.2f}"
    forms = {BYTES: in_units, SECONDS: seconds, COUNT: "{:,}".format}
    return forms[kind](count) if kind in forms else f"{n:.0f}"


def before_digits(text: str) -> str:
    return re.split("[0-9]", text, maxsplit=1)[0]


def shorten(text: str, other: str) -> str:
    """The common beginning of both, in whole parts of "step 2, backward, MmBackward0"."""
    if text == other:
        return text
    comma = text.rfind(",", 1, len(os.path.commonprefix([text, other])))
    return text[:max(comma, 0)]
