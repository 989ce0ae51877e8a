# SPDX-License-Identifier: Apache-2.0
"""A row of the table of changes, and a change as a user names it."""
from __future__ import annotations

import re
from typing import Any, Dict, NamedTuple, Tuple

from .changes_values import Reader


class Row(NamedTuple):
    name: str
    value: str  # how the manual shows it, "" = there is none
    read: Reader
    default: str  # the value if there is none in NAME
    make: str  # module:function that makes it; a variable of the environment that is set to the value; "": it has to be written in the program
    kinds: Tuple[str, ...]  # findings of advise and remedies of oom that it makes
    slowdown: float  # of a step of a usual training, as a factor
    cost: str
    done: str  # {n}: how often it took effect; with {step} behind it: in a step
    failed: str  # nothing matched
    how: str  # in plain PyTorch
    arguments: Dict[str, str]  # framework -> its own name of the change
    equal: str = "rounding"  # values of the program: "exact", "rounding", "precision" (fewer bits), "other"


class Change(NamedTuple):
    text: str  # NAME=VALUE
    row: Row
    value: Any

    @property
    def given(self) -> str:
        """The value as text."""
        return self.text.partition("=")[2]

    def fill(self, text: str, **more: object) -> str:
        """A text of the row: {value}, {class} for its part before a slash, {part} for that before @; N of a part 1/N, K of CLASS/K."""
        number = re.match(r"1/(\d+)", self.given) if "1/N" in self.row.value else re.match(r"\w+/?(\d*)", self.given) if "/K" in self.row.value else None
        text = re.sub(r"\b[NK]\b", number[1] or "1", text) if number else text
        for name, found in {"value": self.given, "class": self.given.split("/")[0], "part": self.given.split("@")[0], **more}.items():
            text = text.replace("{" + name + "}", str(found))
        return text

    @property
    def how(self) -> str:
        return self.fill(self.row.how)

    @property
    def arguments(self) -> Dict[str, str]:
        return {framework: self.fill(text) for framework, text in self.row.arguments.items()}

    def environment(self) -> Dict[str, str]:
        return {} if ":" in self.row.make else {self.row.make: self.given}
