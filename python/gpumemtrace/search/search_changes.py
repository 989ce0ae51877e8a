# SPDX-License-Identifier: Apache-2.0
"""Changes that `gpumemtrace run --with` makes from outside (python/gpumemtrace/changes): which of them a suggestion of `advise` or `oom` asks
for, what a set of them costs and how it is written, and what became of the runs with it."""
from __future__ import annotations

import json
import math
import re
import subprocess
from typing import Any, Dict, Iterable, List, Mapping, Sequence, Tuple

from .._answer import Answer, Sentence
from ..changes.changes_find import for_finding
from ..changes.changes_row import Change
from ..changes.changes_table import WrongChange, parse
from .search_trial import FITS, REFUSED, Plan, Trial

# No findings: as `advise --together` takes them.
BY_CLASS = {"frozen=bf16": "frozen", "optimizer=in_backward": "in_backward"}
PART = re.compile(r"(.*=1/)(\d+)(@\d+)?")  # of a batch


def ask(plan: Plan, *arguments: str) -> Dict[str, Any]:
    """The document of a command of the tool."""
    done = subprocess.run([plan.tool, *arguments, "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise Sentence(done.stderr.decode(errors="replace").strip().partition(": ")[2], done.returncode)
    return dict(json.loads(done.stdout))


def changes_for(suggestion: Mapping[str, Any]) -> List[Change]:
    """Each makes it in its own way; none: it can only be made by hand."""
    found = []
    for text in for_finding(suggestion):
        try:
            found.append(parse(text))
        except WrongChange:  # its place has characters that no value can have
            continue
    return found


def parse_all(texts: Iterable[str]) -> List[Change]:
    return [parse(text) for text in texts]


def part_of(text: str) -> Tuple[str, int, str]:
    """A change that halves something: what stands before the number of parts, that number, and what stands behind."""
    part = PART.fullmatch(text)
    return (part[1], int(part[2]), part[3] or "") if part else (text, 1, "")


def slowdown(changes: Sequence[Change]) -> float:
    """Estimated, of a step: a factor; of parts, for each halving."""
    return float(math.prod(change.row.slowdown ** math.log2(max(part_of(change.text)[1], 2)) for change in changes))


def costs(changes: Sequence[Change]) -> str:
    factor = slowdown(changes)
    return "as fast" if factor < 1.005 else f"{100 * factor - 100:.0f} % slower"


def costs_of(changes: Sequence[Change]) -> str:
    """In words."""
    return "; ".join(dict.fromkeys(change.fill(change.row.cost) for change in changes if change.row.cost != "nothing")) or "nothing"


def code_of(changes: Sequence[Change]) -> List[str]:
    """Code to write: in plain PyTorch, and the arguments of frameworks."""
    return [text for change in changes for text in (change.how, *(f"{name}: {given}" for name, given in change.arguments.items()))]


def print_lines(code: Sequence[str], answer: Answer) -> None:
    for line in (line for text in code for line in text.split("\n")):
        answer.line(f"      {line}")


def print_code(changes: Sequence[Change], answer: Answer) -> None:
    print_lines(code_of(changes), answer)


def ends(trial: Trial) -> str:
    """How the run with the changes ended."""
    if trial.verdict == FITS:
        return "yes"
    if trial.verdict == REFUSED:
        step, phase = trial.oom("step"), trial.oom("phase")
        where = ", ".join(filter(None, (f"step {step}" if step else "", phase)))
        return f"no: out of memory{f' ({where})' if where else ''}{', before it was made' if trial.missed() else ''}"
    return "the change could not be made" if trial.missed() else f"no: {trial.verdict}"
