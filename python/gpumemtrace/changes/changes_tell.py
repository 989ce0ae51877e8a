# SPDX-License-Identifier: Apache-2.0
"""Questions of `run --with` before it starts a program, and after its end. Answers are lines that the tool reads: "wrong SENTENCE",
"set NAME=VALUE", "made COUNT CHANGE<tab>SENTENCE<tab>change to give instead"."""
from __future__ import annotations

import os
import sys
from typing import Iterator, List

from .changes_effect import read_effects
from .changes_row import Change
from .changes_table import WrongChange, parse


def check(folder: str, texts: List[str]) -> Iterator[str]:
    """The names with their values, and what the environment of the program needs."""
    try:
        changes = [parse(text) for text in texts]
    except WrongChange as error:
        yield f"wrong {error}"
        return
    yield "set GPUMEMTRACE_WITH=" + ";".join(change.text for change in changes)
    yield "set PYTHONPATH=" + os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
    for change in changes:
        yield from (f"set {name}={value}" for name, value in change.environment().items())


def sentence(change: Change, times: int, step: int) -> str:
    """{step} in the row: how often in a step, else in the whole run."""
    a_step = step if "{step}" in change.row.done else 0
    return change.fill(change.row.done, n=a_step or times, step=" a step" if a_step else "")


def tell(folder: str, texts: List[str]) -> Iterator[str]:
    changes = [parse(text) for text in texts]
    processes, rows = read_effects(folder, len(changes))
    for change, (times, step, words, instead) in zip(changes, rows):
        if change.environment():
            yield f"made 1 {change.text}\tset {change.row.make}={change.given}\t"
        elif times:
            yield f"made {times} {change.text}\t{sentence(change, times, step)}\t"
        elif not processes:
            yield f"made 0 {change.text}\tno Python of the program imported torch with PYTHONPATH as it was set\t"
        else:
            give = f"; give {instead} if its batches have that many rows" if instead else ""
            yield f"made 0 {change.text}\t{change.fill(change.row.failed)}{'; ' + words if words else ''}{give}\t{instead}"


def main() -> None:
    _, folder, what = sys.argv
    texts = os.environ["GPUMEMTRACE_WITH"].split(";")
    for line in check(folder, texts) if what == "check" else tell(folder, texts):
        print(line)
