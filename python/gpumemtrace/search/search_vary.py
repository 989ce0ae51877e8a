# SPDX-License-Identifier: Apache-2.0
"""The values that a search changes from run to run: options of the program (--vary batch=1,2,4), environment variables
(--vary env:NAME=a,b), and the changes that `run --with` makes. A setting has one value of each."""
from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Dict, List, Sequence, Tuple, Union

from .._answer import USAGE, Sentence

MOST = 8
ENVIRONMENT = "env:"
WITH, AND = "with", " + "  # the name of a set of changes, and what stands between two of them

Setting = Tuple[str, ...]  # in the order of the names


@dataclass
class Vary:
    name: str  # without dashes, without "env:"
    environment: bool
    values: List[str]
    changes: bool = False  # each value is a set of changes
    step: int = 0  # if all values are whole numbers: their greatest common divisor

    def __post_init__(self) -> None:
        if self.values and all(v.isascii() and v.isdigit() and len(v) <= 12 for v in self.values):
            self.step = math.gcd(*map(int, self.values)) if len(self.values) > 1 else int(self.values[0])


@dataclass
class Varied:
    items: List[Vary] = field(default_factory=list)

    def settings(self) -> List[Setting]:
        """The last name changes fastest."""
        return list(itertools.product(*(v.values for v in self.items)))

    def counted(self) -> int:
        """Index of the first numeric name, or -1."""
        return next((i for i, v in enumerate(self.items) if v.step), -1)

    def words(self, setting: Setting) -> str:
        return ", ".join(value if v.changes else f"{v.name} {value}" for v, value in zip(self.items, setting))

    def members(self, setting: Setting) -> Dict[str, Union[int, str]]:
        return {v.name: int(value) if v.step else value for v, value in zip(self.items, setting)}

    def environment(self, setting: Setting) -> Dict[str, str]:
        return {v.name: value for v, value in zip(self.items, setting) if v.environment}

    def changes(self, setting: Setting) -> List[str]:
        """NAME=VALUE of each."""
        return [text for v, value in zip(self.items, setting) if v.changes for text in value.split(AND)]

    def command(self, setting: Setting, command: Sequence[str]) -> List[str]:
        """The program's command with those values: an existing option gets the value, else the option is appended."""
        out = list(command)
        for v, value in zip(self.items, setting):
            if not v.environment and not v.changes and not replace(out, v.name, value):
                out += new_option(out, v.name, value)
        return out


def same_but(a: Setting, b: Setting, at: int) -> bool:
    """Equal except for the value of one name."""
    return a[:at] == b[:at] and a[at + 1:] == b[at + 1:]


def parse(texts: Sequence[str]) -> Varied:
    """Of each NAME=V1,V2."""
    varied = Varied()
    for text in texts:
        if len(varied.items) == MOST:
            raise Sentence(f"--vary can be given {MOST} times at most", USAGE)
        environment = text.startswith(ENVIRONMENT)
        name, equals, values = (text[len(ENVIRONMENT):] if environment else text.lstrip("-")).partition("=")
        if not equals or not name:
            raise Sentence(f"--vary {text}: give a name and its values, such as batch=1,2,4", USAGE)
        if any(v.name == name for v in varied.items):
            raise Sentence(f"--vary {name} was given twice", USAGE)
        found = values.split(",")
        for i, value in enumerate(found):
            if not value:
                raise Sentence(f"--vary {text}: a value is empty; give NAME=V1,V2", USAGE)
            if value in found[:i]:
                raise Sentence(f"--vary {text}: {value} is named twice", USAGE)
        varied.items.append(Vary(name, environment, found))
    return varied


def one(text: str) -> Varied:
    """NAME=VALUE: a comma belongs to the value."""
    environment = text.startswith(ENVIRONMENT)
    name, _, value = (text[len(ENVIRONMENT):] if environment else text.lstrip("-")).partition("=")
    return Varied([Vary(name, environment, [value])])


def in_sets() -> Varied:
    """A varied argument whose settings are sets of changes, joined by AND."""
    return Varied([Vary(WITH, False, [], changes=True)])


def replace(command: List[str], name: str, value: str) -> bool:
    """In every place where the option stands, as the last of several counts; False: there is none. Scripts write batch-size and batch_size
    for the same option."""
    found, i = False, 1
    while i < len(command):
        word = command[i]
        dashes = len(word) - len(word.lstrip("-"))
        option, equals, _ = word[dashes:].partition("=")
        if option.replace("-", "_") == name.replace("-", "_"):
            if equals:
                command[i] = word[:dashes] + option + "=" + value
                found = True
            elif dashes and i + 1 < len(command):
                i += 1
                command[i] = value
                found = True
        i += 1
    return found


def new_option(command: Sequence[str], name: str, value: str) -> List[str]:
    """As the command writes options that have a value."""
    options = [w for w in command[1:] if w.startswith("-")]
    equals = sum("=" in w for w in options)
    apart = len(options) - equals
    plain = any("=" in w and "/" not in w for w in command[1:] if not w.startswith("-"))
    if equals > apart:
        return [f"--{name}={value}"]
    if plain and not apart:
        return [f"{name}={value}"]
    return [("-" if len(name) == 1 else "--") + name, value]
