# SPDX-License-Identifier: Apache-2.0
"""The values that changes take: each function reads the text behind "=", or None, and raises ValueError with what is expected."""
from __future__ import annotations

import re
from typing import Any, Callable, NamedTuple, Optional, Tuple

Reader = Callable[[Optional[str]], Any]


class Place(NamedTuple):
    file: str
    line: int


def nothing(text: Optional[str]) -> None:
    if text is not None:
        raise ValueError("takes no value")


def word(*words: str) -> Reader:
    def read(text: Optional[str]) -> str:
        if text not in words:
            raise ValueError(f"takes {' or '.join(words)}, not {text or 'nothing'}")
        return text
    return read


def sdpa(text: Optional[str]) -> Optional[str]:
    """A function, None for all."""
    found = re.fullmatch(r"sdpa(?:@([\w.<>]+))?", text or "")
    if not found:
        raise ValueError("takes sdpa, or sdpa@FUNCTION for one function alone")
    return found[1]


def number(least: float, most: float) -> Reader:
    def read(text: Optional[str]) -> float:
        try:
            value = float(text or "")
        except ValueError:
            value = most + 1
        if not least <= value <= most:
            raise ValueError(f"needs a number from {least:g} to {most:g}")
        return value
    return read


def class_every(text: Optional[str]) -> Tuple[str, int]:
    found = re.fullmatch(r"([A-Za-z_]\w*)(?:/(\d+))?", text or "")
    if not found or found[2] == "0":
        raise ValueError("needs the name of a class of modules, such as Block, or Block/2 for every second one")
    return found[1], int(found[2] or 1)


def parts_of_rows(text: Optional[str]) -> Tuple[int, int]:
    found = re.fullmatch(r"1/(\d+)(?:@(\d+))?", text or "")
    if not found or not 2 <= int(found[1]) <= 1024:
        raise ValueError("needs a part such as 1/2, or 1/2@16 for batches of 16 rows that the program makes itself")
    return int(found[1]), int(found[2] or 0)


def place(text: Optional[str]) -> Place:
    file, _, line = (text or "").rpartition(":")
    if not file or not line.isdigit():
        raise ValueError("needs a line of the program, such as train.py:12")
    return Place(file, int(line))


def place_or(*words: str) -> Reader:
    """A line, or one of the words, which are None."""
    def read(text: Optional[str]) -> Optional[Place]:
        if text in words:
            return None
        try:
            return place(text)
        except ValueError:
            raise ValueError(f"takes {' or '.join(words)} or a line of the program such as train.py:12, not {text}") from None
    return read


def setting(example: str) -> Reader:
    def read(text: Optional[str]) -> str:
        if not text or re.search(r"\s", text):
            raise ValueError(f"needs a setting such as {example}")
        return text
    return read
