# SPDX-License-Identifier: Apache-2.0
"""Sets of changes with which a program fits a card (`fit --make-it-fit`). The cheapest by the estimated slow-down is run first, on a card with
room for it, so that each run says what the program needs then, and what further changes would save (`advise` on its recording). A set is
run only if the prediction allows it: what the program needed with a part of the set, less what the other changes save. As in the
rest of `fit`, the card itself is run where that result is close."""
from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import Any, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .._answer import Answer
from .search_cells import Cell, device_on
from .search_changes import ask, changes_for, code_of, parse_all, part_of, slowdown, with_rows
from .search_runs import Runs
from .search_trial import FAILED, FITS, REFUSED, UNSTABLE, Card, Trial
from .search_vary import AND, in_sets

WANTED = 3  # sets that fit, for a card
CHANGES, LARGEST = 12, 4  # most that are combined, in one set
PARTS = 8  # the smallest
WITH_BATCH = ("inputs", "activations", "forward_temporaries", "backward_temporaries", "kv_cache")  # classes that grow with it
NEAR = 6  # so many of these parts a prediction may be off
LITTLE = 200  # of the need: a change that saves less is left out

Names = FrozenSet[str]


@dataclass
class Set:
    """A set of changes that was run."""
    texts: List[str]
    cell: Cell  # its figures for the card
    needs: int  # of the card; 0: it ran out of memory there, or failed
    predicted: int  # peak of the framework's blocks, at least
    fits: bool

    @property
    def verdict(self) -> str:
        verdict = self.cell.verdict
        return REFUSED if verdict == FITS and not self.fits else verdict

    def document(self) -> Dict[str, Any]:
        t, card, changes = self.cell.trial, self.cell.card, parse_all(self.texts)
        return {"card": card.name, "changes": self.texts, "fits": self.fits, "verdict": self.verdict, "capacity_bytes": card.memory,
                "peak_bytes": t.number("peak_bytes"), "peak_reserved_bytes": t.number("peak_reserved_bytes"),
                "device_bytes": device_on(t, card), "margin_bytes": card.memory - (device_on(t, card) if self.fits else self.needs or device_on(t, card)),
                "predicted_peak_bytes": self.predicted, "slowdown": round(slowdown(changes), 3), "cost": "; ".join(c.row.cost for c in changes),
                "code": code_of(changes), "measured": self.cell.measured, "run_on": t.card.name,
                **({"error": t.failure()} if t.verdict == FAILED else {})}


class Known(NamedTuple):
    """A run, of the program with a set of changes or with none."""
    peak: int  # of the framework's blocks
    others: int  # what else the card must have, at least
    needs: int
    saves: Dict[str, int]  # change -> what it would save of the peak, at most


def others_of(trial: Trial, card: Card) -> int:
    return max(device_on(trial, card) - trial.number("peak_reserved_bytes"), 0)


def moments_of(timeline: Mapping[str, Any]) -> List[Tuple[int, int, int]]:
    """For each piece of the run: its peak, the bytes of it that grow with the batch, and those of gradients."""
    classes = [(b["max"]["bytes"], b["categories_at_max"]) for b in timeline["buckets"]]
    return [(total, sum(of.get(name, 0) for name in WITH_BATCH), of.get("gradients", 0)) for total, of in classes]


def known_of(trial: Trial, cell: Cell, more: Sequence[Mapping[str, Any]]) -> Known:
    """more: what `oom` suggests. Of a part of a batch the saving follows from the classes in the course of the run: all parts but the first
    have the gradients of those before."""
    others = min(others_of(trial, cell.card), others_of(cell.trial, cell.card))
    saves: Dict[str, int] = {}
    path = f"{trial.plan.folder}/{trial.text('recording')}"
    found = ask(trial.plan, "advise", path).get("findings", [])
    for suggestion in (*found, *more):
        less = 0 if "reserved" == suggestion.get("of") or suggestion.get("name") == "allocator" else int(suggestion["saves_bytes"])
        for change in changes_for(suggestion):
            saves.setdefault(change.text, less)
    moments = moments_of(ask(trial.plan, "timeline", path))
    peak = max((total for total, _, _ in moments), default=0)
    held = max((gradients for _, _, gradients in moments), default=0)
    for before, least, behind in map(part_of, list(saves)):
        for parts in (2 ** i for i in range(1, PARTS.bit_length()) if 1 < least <= 2 ** i):
            saves[f"{before}{parts}{behind}"] = max(peak - max((total - grows + grows // parts + held - gradients for total, grows, gradients in moments),
                                                               default=0), 0)
    return Known(trial.number("peak_bytes"), others, device_on(trial, cell.card), saves)


@dataclass
class Search:
    """For one card that the program does not fit."""
    runs: Runs
    cell: Cell  # of the program as it is
    most: int  # runs
    sets: List[Set] = field(default_factory=list)
    known: Dict[Names, Known] = field(default_factory=dict)
    useless: List[str] = field(default_factory=list)
    untried: int = 0  # sets that the prediction allows, and for which no run was left
    without: int = 0  # suggestions that no hook makes

    def begin(self) -> None:
        remedies = self.cell.trial.oom("remedies") or []
        self.without = sum(not changes_for(r) for r in remedies)
        if self.cell.roomy:
            self.known[frozenset()] = known_of(self.cell.roomy, self.cell, remedies)
        else:  # what it needs is not known
            self.known[frozenset()] = Known(0, 0, 0, {c.text: r["saves_bytes"] for r in remedies for c in changes_for(r)})

    def candidates(self) -> List[str]:
        """The changes that save most. A setting of the allocator saves no allocated bytes."""
        most: Dict[str, int] = {}
        for known in self.known.values():
            for text, less in known.saves.items():
                most[text] = max(most.get(text, 0), less)
        return sorted((t for t in most if t not in self.useless), key=lambda t: -most[t])[:CHANGES]

    def saves(self, names: Names, text: str) -> int:
        """The most that one more change saves, in the program with these changes."""
        known = self.known[names].saves
        if text in known:
            return known[text]
        if not names or text in self.known[frozenset()].saves and part_of(text)[1] == 1:
            return 0  # `advise` does not find it any more
        return max(k.saves.get(text, 0) for k in self.known.values())

    def predict(self, names: Names) -> int:
        """The peak, at least."""
        return max(max(known.peak - sum(self.saves(subset, text) for text in names - subset), 0)
                   for subset, known in self.known.items() if subset <= names)

    def allowed(self, texts: Sequence[str]) -> bool:
        names, of = frozenset(texts), [text.partition("=")[0] for text in texts]
        if len(set(of)) < len(of) or any(self.excludes(s, names) for s in self.sets):
            return False
        predicted = self.predict(names)
        return predicted - predicted // LITTLE * NEAR + self.known[frozenset()].others <= self.cell.card.memory

    def excludes(self, ran: Set, names: Names) -> bool:
        """It is that one, or has more changes, or smaller parts, than one that fits or fails."""
        if ran.fits:
            return {part_of(text)[0] for text in names} >= {part_of(text)[0] for text in ran.texts}
        return names == frozenset(ran.texts) or ran.verdict in (FAILED, UNSTABLE) and names >= frozenset(ran.texts)

    def due(self) -> List[Sequence[str]]:
        """The cheapest first; of those the one that leaves most room."""
        every = [texts for n in range(1, LARGEST + 1) for texts in itertools.combinations(self.candidates(), n) if self.allowed(texts)]
        return sorted(every, key=lambda texts: (slowdown(parse_all(texts)), len(texts), self.predict(frozenset(texts))))

    def run(self, texts: Sequence[str]) -> None:
        predicted, card = self.predict(frozenset(texts)), self.cell.card
        place = self.cell.roomy.card if self.cell.roomy else card
        trial = self.runs.trial(place, (AND.join(texts),))
        self.runs.run([trial])
        cell, needs = Cell(card, trial.setting, trial), 0
        if trial.verdict == FITS:
            known = self.known[frozenset(texts)] = known_of(trial, self.cell, ())
            needs = known.needs
            if not cell.follows() and known.peak + known.others <= card.memory and self.runs.ran < self.most:  # close: PyTorch may give its cache back, and run
                cell.trial = self.runs.trial(card, trial.setting)
                self.runs.run([cell.trial])
            if len(texts) == 1:
                self.judge(texts[0], known)
        elif trial.verdict == FAILED and trial.missed():
            self.learn(trial)
        self.sets.append(Set(list(texts), cell, needs, predicted, cell.fits and cell.follows()))

    def judge(self, text: str, known: Known) -> None:
        """A change that did little alone is in no set."""
        plain = self.known[frozenset()]
        little = plain.needs // LITTLE
        if plain.needs - known.needs < little and plain.peak - known.peak < little:
            self.useless.append(text)

    def learn(self, trial: Trial) -> None:
        """A change that could not be made is in no other set, or in the way that its sentence says."""
        instead = with_rows(trial)
        if trial.number("steps") and not instead:
            self.useless += trial.missed()
        rows = {part_of(text)[0]: part_of(better)[2] for text, better in instead.items()}
        for known in self.known.values():
            for text in list(known.saves):
                before, _, behind = part_of(text)
                if before in rows and not behind:
                    known.saves[text + rows[before]] = known.saves.pop(text)

    def search(self) -> None:
        self.begin()
        while sum(s.fits for s in self.sets) < WANTED:
            due = self.due()
            if due and self.runs.ran >= self.most:
                self.untried = len(due)
            if not due or self.runs.ran >= self.most:
                return
            self.run(due[0])

    def in_order(self) -> List[Set]:
        return sorted(self.sets, key=lambda s: (not s.fits, slowdown(parse_all(s.texts)) if s.fits else 0))

    def closest(self) -> Optional[Set]:
        return min((s for s in self.sets if not s.fits and s.needs), key=lambda s: s.needs, default=None)


def searches_of(runs: Runs, cells: Sequence[Cell], most: int, answer: Answer) -> List[Search]:
    """For each card that the program does not fit."""
    found = []
    for cell in cells:
        if cell.verdict == REFUSED:
            plan = replace(runs.plan, varied=in_sets())
            found.append(Search(Runs(plan, answer, runs.jobs), cell, most))
            found[-1].search()
    return found
