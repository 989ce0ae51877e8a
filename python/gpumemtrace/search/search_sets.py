# SPDX-License-Identifier: Apache-2.0
"""Sets of changes with which a program fits a card (`fit --make-it-fit`). The cheapest by the estimated slow-down is run first, on a card with
room for it, so that each run says what the program needs then, and what further changes would save (`advise` on its recording). A set is
run only if the prediction allows it: the peak of a run with a part of the set, with the other changes in the lives of its blocks. As in the
rest of `fit`, the card itself is run where that result is close."""
from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import Any, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .._answer import Answer
from .search_cells import Cell, device_on
from .search_changes import BY_CLASS, ask, changes_for, code_of, costs_of, parse_all, part_of, slowdown
from .search_runs import Runs
from .search_trial import FAILED, FITS, REFUSED, UNSTABLE, Card, Trial
from .search_vary import AND, in_sets

WANTED = 3  # sets that fit, for a card
CHANGES, LARGEST = 12, 4  # most that are combined, in one set
PARTS = 8  # the smallest
NEAR = 6  # so many of these parts a prediction may be off
LITTLE = 200  # of the need: a change that saves less is left out
ALLOCATOR, WORKSPACES = "allocator=", "cublas_workspace="
APART = {"optimizer", "batch"}, {"optimizer", "state_on_cpu"}, {"state", "state_on_cpu"}  # a sum of gradients, and a step of its own, need all at once
AT_ONCE = 24  # sets, the cheapest first, whose peaks are computed together

Names = FrozenSet[str]


class Peak(NamedTuple):
    """Bytes of the framework's blocks."""
    least: int
    most: int


@dataclass
class Set:
    """A set of changes that was run."""
    texts: List[str]
    cell: Cell  # its figures for the card
    needs: int  # of the card; 0: it ran out of memory there, or failed
    predicted: Peak
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
                "predicted_peak_bytes": self.predicted.least, "predicted_most_bytes": self.predicted.most,
                "slowdown": round(slowdown(changes), 3), "cost": costs_of(changes),
                "code": code_of(changes), "measured": self.cell.measured, "run_on": t.card.name,
                **({"error": t.failure()} if t.verdict == FAILED else {})}


@dataclass
class Known:
    """A run, of the program with a set of changes or with none."""
    trial: Optional[Trial]  # None: it did not end, and what is saved is that of the request that failed
    peak: int  # of the framework's blocks
    others: int  # what else the card must have, at least
    needs: int
    saves: Dict[str, int]  # change -> what it would save of the peak, at most
    numbers: Dict[str, str] = field(default_factory=dict)  # change -> the finding's, as `advise --together` takes it
    computed: Dict[str, Peak] = field(default_factory=dict)  # what was asked of `advise --together`
    replayed: Dict[str, int] = field(default_factory=dict)  # setting of the allocator -> by how much blocks are larger with it, as `replay` says

    def compute(self, sets: Sequence[str]) -> None:
        due = [text for text in dict.fromkeys(sets) if text and text not in self.computed]
        if due and self.trial:
            self.computed.update((row["changes"], Peak(row["peak_bytes"], row["at_most_bytes"])) for row in advice(self.trial, due)["sets"])

    def replay(self, texts: Sequence[str]) -> None:
        for text in (text for text in texts if text.startswith(ALLOCATOR) and text not in self.replayed and self.trial):
            found = ask(self.trial.plan, "replay", recording_of(self.trial), "--alloc-conf", text[len(ALLOCATOR):])
            self.replayed[text] = found["settings"][0]["peak_bytes"] - self.peak

    def words(self, texts: Sequence[str]) -> str:
        """How `advise --together` takes them: those that it finds in this run."""
        found = (BY_CLASS[text] if text in BY_CLASS else f"{part_of(text)[0]}{part_of(text)[1]}" if part_of(text)[1] > 1 else self.numbers.get(text)
                 for text in texts)
        return "+".join(sorted(word for word in found if word))


def recording_of(trial: Trial) -> str:
    return f"{trial.plan.folder}/{trial.text('recording')}"


def advice(trial: Trial, sets: Sequence[str]) -> Dict[str, Any]:
    return ask(trial.plan, "advise", recording_of(trial), *(word for text in sets for word in ("--together", text)))


def others_of(trial: Trial, card: Card) -> int:
    return max(device_on(trial, card) - trial.number("peak_reserved_bytes"), 0)


def known_of(trial: Trial, cell: Cell, more: Sequence[Mapping[str, Any]]) -> Known:
    """more: what `oom` suggests."""
    parts = [str(2 ** i) for i in range(1, PARTS.bit_length())]
    found = advice(trial, [*BY_CLASS.values(), *(f"batch=1/{n}" for n in parts)])
    known = Known(trial, found["peak_bytes"], min(others_of(trial, cell.card), others_of(cell.trial, cell.card)), device_on(trial, cell.card), {})
    known.computed = {row["changes"]: Peak(row["peak_bytes"], row["at_most_bytes"]) for row in found["sets"]}
    for i, suggestion in enumerate((*found["findings"], *more)):
        less = 0 if "reserved" == suggestion.get("of") or suggestion.get("name") == "allocator" else int(suggestion["saves_bytes"])
        for change in changes_for(suggestion):
            known.saves.setdefault(change.text, less)
            if i < len(found["findings"]):
                known.numbers.setdefault(change.text, str(i + 1))
    for before, least, behind in map(part_of, list(known.saves)):
        for n in parts:
            if 1 < least <= int(n):
                known.saves[f"{before}{n}{behind}"] = known.peak - known.computed[f"batch=1/{n}"].least
    for change, word in BY_CLASS.items():
        if known.peak - known.computed[word].least > known.peak // LITTLE:
            known.saves[change] = known.peak - known.computed[word].least
    return known


def further(names: Names, ran: Names) -> Optional[List[str]]:
    """The changes that the first set has more than the other, which was run; None: it lacks some of that. Half of a half is a quarter."""
    parts = {(before, behind): n for before, n, behind in map(part_of, names) if n > 1}
    missing = []
    for before, n, behind in map(part_of, ran - names):
        if n == 1 or parts.get((before, behind), 0) % n or not parts.get((before, behind)):
            return None
        missing.append(f"{before}{parts.pop((before, behind)) // n}{behind}")
    whole = {(before, behind) for before, _, behind in map(part_of, missing)}
    return missing + [text for text in names - ran if part_of(text)[::2] not in whole]


@dataclass
class Learnt:
    """What runs say of changes, for the searches of all cards."""
    useless: List[str] = field(default_factory=list)
    broken: List[Names] = field(default_factory=list)  # the program fails with them
    rows: Dict[str, str] = field(default_factory=dict)  # "@16" for batches that the program makes itself


@dataclass
class Search:
    """For one card that the program does not fit."""
    runs: Runs
    cell: Cell  # of the program as it is
    most: int  # runs
    learnt: Learnt = field(default_factory=Learnt)
    sets: List[Set] = field(default_factory=list)
    known: Dict[Names, Known] = field(default_factory=dict)
    untried: int = 0  # sets that the prediction allows, and for which no run was left
    without: int = 0  # suggestions that no hook makes

    def begin(self) -> None:
        remedies = self.cell.trial.oom("remedies") or []
        self.without = sum(not changes_for(r) for r in remedies)
        if self.cell.roomy:
            self.known[frozenset()] = known_of(self.cell.roomy, self.cell, remedies)
        else:  # what it needs is not known
            self.known[frozenset()] = Known(None, 0, 0, 0, {c.text: r["saves_bytes"] for r in remedies for c in changes_for(r)})
        self.rename()

    def candidates(self) -> List[str]:
        """The changes that save most. A setting of the allocator saves no allocated bytes. `oom` names a place by its file alone, `advise` with the folder."""
        most: Dict[str, int] = {}
        for known in self.known.values():
            for text, less in known.saves.items():
                most[text] = max(most.get(text, 0), less)
        named = {f"{t.partition('=')[0]}={t.rpartition('/')[2]}" for t in most if "/" in t}
        return sorted((t for t in most if t not in self.learnt.useless and t not in named), key=lambda t: -most[t])[:CHANGES]

    def nearest(self, names: Names) -> Tuple[Known, List[str]]:
        """The run with most of these changes, and the others."""
        found = ((ran, known, further(names, ran)) for ran, known in self.known.items())
        _, known, rest = max(((ran, known, rest) for ran, known, rest in found if rest is not None), key=lambda x: (len(x[0]), -len(x[2])))
        return known, rest

    def predict(self, names: Names) -> Peak:
        """Computed, once its run was asked. What `advise` finds no more in that run saves nothing, but it leaves out workspaces that are a small part of the peak."""
        known, rest = self.nearest(names)
        left_out = [text for text in rest if text.startswith(WORKSPACES) and text not in known.numbers]
        words = known.words(rest)
        peak = known.computed.get(words) if words else Peak(known.peak, known.peak)
        peak = peak or Peak(known.peak - sum(self.saves(known, text) for text in rest if self.is_computed(text) and text not in left_out), known.peak)
        unknown = sum(max(k.saves.get(text, 0) for k in self.known.values()) for text in rest if not self.is_computed(text) or text in left_out)
        larger = sum(known.replayed.get(text, 0) for text in rest)  # with other changes perhaps by as much, or not at all
        return Peak(max(peak.least - unknown + (min(larger, 0) if words else larger), 0), peak.most + (max(larger, 0) if words else larger))

    def is_computed(self, text: str) -> bool:
        """Else only `oom` suggests it."""
        return part_of(text)[1] > 1 or text in BY_CLASS or any(text in known.numbers for known in self.known.values())

    def saves(self, known: Known, text: str) -> int:
        if text in known.saves or not part_of(text)[1] > 1:
            return known.saves.get(text, 0)
        return known.peak - known.computed.get(f"{part_of(text)[0]}{part_of(text)[1]}", Peak(0, 0)).least

    def compute(self, every: Sequence[Sequence[str]]) -> None:
        asked: Dict[int, List[str]] = {}
        runs = {id(known): known for known in self.known.values()}
        for texts in every:
            known, rest = self.nearest(frozenset(texts))
            asked.setdefault(id(known), []).append(known.words(rest))
            known.replay(rest)
        for key, words in asked.items():
            runs[key].compute(words)

    def is_meant(self, texts: Sequence[str]) -> bool:
        names, of = frozenset(texts), [text.partition("=")[0] for text in texts]
        if len(set(of)) < len(of) or any(pair <= set(of) for pair in APART) or any(broken <= names for broken in self.learnt.broken):
            return False
        return not any(self.excludes(s, names) for s in self.sets)

    def allowed(self, texts: Sequence[str]) -> bool:
        predicted = self.predict(frozenset(texts)).least
        return predicted - predicted // LITTLE * NEAR + self.known[frozenset()].others <= self.cell.card.memory

    def closest_unrun(self) -> Tuple[Sequence[str], int]:
        """Of all sets the one that takes least by prediction, with the bytes of the device that it takes."""
        candidates, others = self.candidates(), self.known[frozenset()].others
        every = [texts for n in range(1, LARGEST + 1) for texts in itertools.combinations(candidates, n) if self.is_meant(texts)]
        return min(((texts, self.predict(frozenset(texts)).least + others) for texts in every), key=lambda x: x[1])

    def excludes(self, ran: Set, names: Names) -> bool:
        """It is that one, or has more changes, or smaller parts, than one that fits or fails."""
        if ran.fits:
            return {part_of(text)[0] for text in names} >= {part_of(text)[0] for text in ran.texts}
        return names == frozenset(ran.texts) or ran.verdict in (FAILED, UNSTABLE) and names >= frozenset(ran.texts)

    def due(self) -> List[Sequence[str]]:
        """The cheapest first; of those the one that leaves most room."""
        candidates = self.candidates()
        every = [texts for n in range(1, LARGEST + 1) for texts in itertools.combinations(candidates, n) if self.is_meant(texts) and self.allowed(texts)]
        every.sort(key=lambda texts: (slowdown(parse_all(texts)), len(texts)))
        for i in range(0, len(every), AT_ONCE):
            some = every[i:i + AT_ONCE]
            self.compute(some)
            some = sorted(filter(self.allowed, some), key=lambda texts: (slowdown(parse_all(texts)), len(texts), sum(self.predict(frozenset(texts)))))
            if some:
                return [*some, *every[i + AT_ONCE:]]
        return []

    def run(self, texts: Sequence[str]) -> None:
        predicted, card = self.predict(frozenset(texts)), self.cell.card
        place = self.cell.roomy.card if self.cell.roomy else card
        trial = self.runs.trial(place, (AND.join(texts),))
        self.runs.counted = f"set {len(self.sets) + 1}, run {self.runs.ran + 1} of at most {self.most}"
        self.runs.run([trial])
        cell, needs = Cell(card, trial.setting, trial), 0
        if trial.verdict == FITS:
            known = self.known[frozenset(texts)] = known_of(trial, self.cell, ())
            self.rename()
            needs = known.needs
            if not cell.follows() and known.peak + known.others <= card.memory and self.runs.ran < self.most:  # close: PyTorch may give its cache back, and run
                cell.trial = self.runs.trial(card, trial.setting)
                self.runs.counted = f"set {len(self.sets) + 1}, run {self.runs.ran + 1} of at most {self.most}"
                self.runs.run([cell.trial])
            if len(texts) == 1:
                self.judge(texts[0], known)
        elif trial.verdict == FAILED and trial.missed():
            self.learn(trial)
        elif trial.text("late"):  # smaller parts make even fewer steps
            self.learnt.useless += [text for known in self.known.values() for text in known.saves for ran in texts
                             if part_of(text)[::2] == part_of(ran)[::2] and part_of(text)[1] >= part_of(ran)[1] > 1]
        elif trial.verdict == FAILED:
            self.learnt.broken.append(frozenset(texts))
            if len(texts) == 1:
                self.forget({part_of(texts[0])[::2]: part_of(texts[0])[1]})
        self.sets.append(Set(list(texts), cell, needs, predicted, cell.fits and cell.follows()))

    def judge(self, text: str, known: Known) -> None:
        """A change that did little alone is in no set."""
        plain = self.known[frozenset()]
        little = plain.needs // LITTLE
        if plain.needs - known.needs < little and plain.peak - known.peak < little:
            self.learnt.useless.append(text)

    def learn(self, trial: Trial) -> None:
        """A change that could not be made is in no other set, or in the way that its sentence says."""
        instead = trial.instead()
        if trial.number("steps") or not trial.number("exit_code"):
            self.forget({part_of(text)[::2]: part_of(text)[1] for text in trial.missed() if text not in instead})
        self.learnt.rows.update((part_of(text)[0], part_of(better)[2]) for text, better in instead.items())
        self.rename()

    def forget(self, found: Mapping[Tuple[str, str], int]) -> None:
        """What does nothing, or fails, does so in smaller parts too."""
        self.learnt.useless += [text for known in self.known.values() for text in known.saves if part_of(text)[1] >= found.get(part_of(text)[::2], PARTS + 1)]

    def rename(self) -> None:
        for known in self.known.values():
            for text in list(known.saves):
                before, _, behind = part_of(text)
                if before in self.learnt.rows and not behind:
                    known.saves[text + self.learnt.rows[before]] = known.saves.pop(text)

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
    found, learnt = [], Learnt()
    for cell in cells:
        if cell.verdict == REFUSED:
            plan = replace(runs.plan, varied=in_sets())
            found.append(Search(Runs(plan, answer, runs.jobs), cell, most, learnt))
            found[-1].search()
    return found
