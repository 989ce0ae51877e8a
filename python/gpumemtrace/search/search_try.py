# SPDX-License-Identifier: Apache-2.0
"""`advise FILE --try` and `oom FILE --try`: each suggestion is made from outside, and the program run with it on the card of the recording."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence

from .._answer import OK, Answer, Column, Sentence, in_units, many
from ..changes.changes_find import by_hand
from ..changes.changes_row import Change
from .search_cards import find_cards
from .search_changes import ask, changes_for, code_of, costs, costs_of, ends, parse_all, print_code, print_lines
from .search_runs import Runs, folder_of
from .search_trial import FAILED, FITS, LOOK, STEPS, Card, Plan, Trial
from .search_vary import AND, in_sets

COLUMNS: List[Column] = [("", 2, 2), ("change", 1, -16), ("peak with it", 2, 12), ("saves", 2, 9), ("enough for", 2, -12), ("measured", 2, 9),
                         ("runs to its end", 2, -15)]
DEFAULT = "h100-80g"
OF_ONE = {"advise": ("saves", "enough for"), "oom": ("peak with it",)}  # columns that it leaves out


@dataclass
class Suggestion:
    said: Dict[str, Any]  # as `advise` or `oom` has it
    changes: List[Change]
    saves: int  # as it was computed
    trial: Optional[Trial] = None

    @property
    def reserved(self) -> bool:
        return self.said.get("of") == "reserved"

    def measured(self) -> int:
        return self.trial.number("peak_reserved_bytes" if self.reserved else "peak_bytes") if self.trial else 0

    @property
    def name(self) -> str:
        return AND.join(change.text for change in self.changes) or str(self.said.get("kind") or self.said["name"])

    def note(self, document: Mapping[str, Any]) -> None:
        """The measurement, among the members of the document."""
        before = document.get("peak_reserved_bytes" if self.reserved else "peak_bytes")
        self.said["changes"] = [change.text for change in self.changes]
        self.said["code"] = code_of(self.changes) or by_hand(self.said)
        if not self.trial or self.trial.missed():
            return
        self.said.update(measured_peak_bytes=self.measured(), ends=self.trial.verdict == FITS)
        if self.trial.verdict == FITS:
            self.said["how_known"] = "run"
            if before:
                saves = max(before - self.measured(), 0)
                self.said.update(saves_bytes=saves, least_bytes=saves, exact=True)
            if "at_most" in self.said:
                self.said["at_most"] = False


def card_of(plan: Plan, path: str, device: int, library: str) -> Card:
    """The simulated card of the recording; of a real one, one with its memory, and its generation if there is such a card."""
    meta = ask(plan, "info", path)["meta"]
    if meta.get("env.SIMGPU_CARD"):
        return find_cards(library, meta["env.SIMGPU_CARD"], "SIMGPU_CARD")[0]
    memory, capability = (meta.get(f"device.{device}.{member}") for member in ("total_bytes", "compute_capability"))
    if not memory:
        raise Sentence(f"{path} does not say which card it is of: name one (--card NAME)")
    alike = [card for card in find_cards(library, "all", "--card") if f"{card.major}.{card.minor}" == capability]
    name = min(alike, key=lambda card: abs(card.memory - int(memory))).name if alike else "card"
    return find_cards(library, f"{name}={memory}", "--card")[0]


def suggestions_of(document: Mapping[str, Any], of: str, top: int) -> List[Suggestion]:
    """Suggestions with the changes that make them. If several changes make one, the first is tried."""
    said = document["findings" if of == "advise" else "remedies"]
    return [Suggestion(x, changes_for(x)[:1], x["saves_bytes"]) for x in said[:top or None]]


def run_all(plan: Plan, card: Card, found: Sequence[Suggestion], answer: Answer) -> None:
    plan.varied = in_sets()
    runs, due = Runs(plan, answer), [x for x in found if x.changes]
    while due:
        for x in due:
            x.trial = runs.trial(card, (AND.join(change.text for change in x.changes),))
        runs.run([x.trial for x in due if x.trial])
        due = [x for x in due if x.trial and x.trial.instead()]
        for x in due:
            better = x.trial.instead() if x.trial else {}
            x.changes = parse_all(better.get(change.text, change.text) for change in x.changes)


def print_all(found: Sequence[Suggestion], card: Card, of: str, answer: Answer) -> None:
    answer.title(f"{sum(x.trial is not None for x in found)} of {many(len(found), 'suggestion')} made from outside and run on {card.name} "
                 f"({in_units(card.memory)})")
    answer.line()
    kept = [i for i, column in enumerate(COLUMNS) if column[0] not in OF_ONE[of]]
    rows = [row_of(i, x) for i, x in enumerate(found)]
    answer.table([COLUMNS[i] for i in kept], [[row[i] for i in kept] for row in rows])
    for i, x in enumerate(found):
        answer.line()
        explain(i + 1, x, answer)


def row_of(i: int, x: Suggestion) -> List[str]:
    made = x.trial and not x.trial.missed()
    return [str(i + 1), x.name, in_units(x.said.get("peak_bytes", 0)), in_units(x.saves),
            "this request" if x.said.get("enough") else "", in_units(x.measured()) if made else "",
            ends(x.trial) if x.trial else "not made from outside"]


def explain(number: int, x: Suggestion, answer: Answer) -> None:
    if not x.trial:
        code = by_hand(x.said)
        answer.item(number, f"{x.said['what']}. This change cannot be made from outside: write it in the program{':' if code else '.'}")
        print_lines(code, answer)
        return
    missed = f" It could not be made: {x.trial.not_made()}." if x.trial.missed() else ""
    answer.item(number, f"{x.said['what']}.{missed} Cost: {costs_of(x.changes)} ({costs(x.changes)}, estimated). "
                "To write it:")
    print_code(x.changes, answer)


def record(plan: Plan, card: Card, folder: str, answer: Answer) -> str:
    """A run of the program as it is."""
    plan.folder, runs = folder, Runs(plan, answer)
    trial = runs.trial(card, ())
    runs.run([trial])
    if trial.verdict == FAILED or not trial.text("recording"):
        raise trial.failure_sentence()
    return f"{folder}/{trial.text('recording')}"


def try_suggestions(plan: Plan, request: Mapping[str, Any], answer: Answer) -> int:
    of, files, which, library = request["of"], request["files"], int(request["which"]), request["device"]
    plan.steps, plan.look = request["steps"] or STEPS, 0 if request["steps"] else LOOK
    named = request["cards"] or ("" if files else DEFAULT)
    card = find_cards(library, named, "--card")[0] if named else None
    with folder_of("", "try", plan.environment) as folder:
        files = files or [record(plan, card or find_cards(library, DEFAULT, "--card")[0], folder, answer)]
        chosen = {"advise": ["--device", str(which)] if which >= 0 else [], "oom": ["--nth", str(which)] if which else []}[of]
        document = ask(plan, of, *files, *chosen)
        card = card or card_of(plan, document.get("recording", files[0]), document["device"], library)
        found = suggestions_of(document, of, request["top"])
        plan.folder = folder
        run_all(plan, card, found, answer)
    for x in found:
        x.note(document)
    answer.document({**document, "tried_on": card.name})
    print_all(found, card, of, answer)
    return OK
