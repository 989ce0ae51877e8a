# SPDX-License-Identifier: Apache-2.0
"""The largest value that fits each card, for the first numeric name. The next value to try lies between the largest known to fit and the
smallest known not to. It is where a straight line through the needs of the last two runs meets the card's memory, or the capacity that an engine
printed. After a few tries that did not close the gap it is the middle. The search ends when the two are one apart and both were run on that very card. If a value makes the
program fail for another reason (a length that does not divide), only multiples of the common divisor of the given values are tried from
then on. Cards are searched in parallel.

And the straight line through what runs needed, by the method of least squares: for each card that was run, and each setting of the other
names."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence, Tuple

from .search_cells import Cell, device_on
from .search_runs import Runs
from .search_trial import FAILED, FITS, Card, Trial
from .search_vary import Setting, same_but

BY_LINE = 4  # tries before the middle is used


@dataclass
class Largest:
    card: Card
    setting: Setting  # the one with that value, in the end
    low: int = 0  # fits (0: none)
    high: int = 0  # does not fit (0: none is known)
    low_trial: Optional[Trial] = None
    high_trial: Optional[Trial] = None
    step: int = 1  # between values that are tried
    probes: int = 0

    def narrow(self, cells: Sequence[Cell], at: int) -> None:
        """Failures first: a value above one that does not fit is ignored."""
        ours = [(int(c.setting[at]), c) for c in cells if c.card == self.card and same_but(c.setting, self.setting, at)]
        for fits in (False, True):
            for value, cell in ours:
                if cell.fits != fits or (self.high and value >= self.high):
                    continue
                if not fits:
                    self.high, self.high_trial = value, cell.trial
                elif value > self.low:
                    self.low, self.low_trial = value, cell.trial

    def take(self, trial: Trial, value: int, divisor: int, cells: Sequence[Cell], at: int) -> None:
        if trial.verdict == FAILED and value % divisor:
            self.step, self.low, self.high, self.probes = divisor, 0, 0, 0
            self.narrow(cells, at)
        elif trial.verdict == FITS:
            self.low, self.low_trial = value, trial
            self.high = 0 if self.high <= value else self.high
        else:
            self.high, self.high_trial = value, trial
            self.low = 0 if self.low >= value else self.low

    def next_value(self, runs: Runs, at: int) -> int:
        """Of the next run, or 0."""
        if self.high and self.high - self.low > self.step:
            return self.between(two_points(runs, self, at))
        if self.low and self.low_trial and self.low_trial.card != self.card:
            return self.low
        if self.high and self.high_trial and self.high_trial.card != self.card:
            return self.high
        return 0

    def between(self, points: Sequence[Tuple[int, int]]) -> int:
        low, high = self.low // self.step, self.high // self.step
        value = low + (high - low) // 2
        self.probes += 1
        if self.probes <= BY_LINE and len(points) == 2:
            (x, y), (x2, y2) = points
            each = (y2 - y) / (x2 - x)
            if each > 0:
                meets = (x + (self.card.memory - y) / each) / self.step
                value = int(min(max(meets, low + 1), high - 1))
        for trial in (self.low_trial, self.high_trial):
            room = trial.number("kv_cache_tokens") // self.step if trial else 0
            if self.probes <= BY_LINE and low <= room < high:
                value = max(room, low + 1)
        return value * self.step


def two_points(runs: Runs, one: Largest, at: int) -> List[Tuple[int, int]]:
    """Needs of two values that fit, on a card of the same generation; the latest runs."""
    points: Dict[int, int] = {}
    for t in reversed(list(runs.trials.values())):
        if t.verdict == FITS and t.card.generation() == one.card.generation() and same_but(t.setting, one.setting, at) and len(points) < 2:
            points.setdefault(int(t.setting[at]), t.number("device_bytes") - t.number("context_bytes") + one.card.context)
    return list(points.items())


def with_value(setting: Setting, at: int, value: int) -> Setting:
    return (*setting[:at], str(value), *setting[at + 1:])


def largest_of(runs: Runs, cells: Sequence[Cell]) -> List[Largest]:
    """Those of which one fits, with it."""
    at = runs.plan.varied.counted()
    if at < 0:
        return []
    every: List[Largest] = []
    for c in cells:
        if not any(x.card == c.card and same_but(x.setting, c.setting, at) for x in every):
            every.append(Largest(c.card, c.setting))
            every[-1].narrow(cells, at)
    due = every
    while due:
        found = [(x, x.next_value(runs, at)) for x in due]
        tried = [(x, value, runs.trial(x.card, with_value(x.setting, at, value))) for x, value in found if value]
        runs.run([trial for _, _, trial in tried])
        for x, value, trial in tried:
            x.take(trial, value, runs.plan.varied.items[at].step, cells, at)
        due = [x for x, _, _ in tried]
    for x in every:
        x.setting = with_value(x.setting, at, x.low) if x.low else x.setting
    return every


@dataclass
class Line:
    """need = base + each * value, fitted to the runs on one card."""
    card: Card
    setting: Setting  # values of the other names
    points: List[Tuple[int, int]]
    base: float = 0
    each: float = 0
    error: float = 0  # largest relative error of a run

    def __post_init__(self) -> None:
        n = len(self.points)
        x, y = sum(p[0] for p in self.points) / n, sum(p[1] for p in self.points) / n
        xx, xy = sum((p[0] - x) ** 2 for p in self.points), sum((p[0] - x) * (p[1] - y) for p in self.points)
        self.each = xy / xx if xx > 0 else 0
        self.base = y - self.each * x
        self.error = max(abs(self.base + self.each * p[0] - p[1]) / p[1] if p[1] else 0 for p in self.points)


def lines_of(runs: Runs) -> List[Line]:
    at = runs.plan.varied.counted()
    lines: List[Line] = []
    for t in runs.trials.values() if at >= 0 else ():
        if any(line.card == t.card and same_but(line.setting, t.setting, at) for line in lines):
            continue
        points = [(int(other.setting[at]), device_on(other, other.card)) for other in runs.trials.values()
                  if other.card == t.card and other.verdict == FITS and same_but(other.setting, t.setting, at)
                  and not other.number("kv_cache_tokens")]  # an engine takes what there is
        if len(points) > 1:
            lines.append(Line(t.card, t.setting, points))
    return lines
