# SPDX-License-Identifier: Apache-2.0
"""One process of a running program, by its recording: the units for search_stable. The units of a training program are its steps, and
seconds of work if it goes on to something else after them. The units of any other program are seconds of work. A program that has begun to
train, or has an optimizer, has no units before its first optimizer step."""
from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from .search_stable import NOT_YET, Stable, Unit, Wish, is_unusual, judge

ANY_BACKWARD = 10  # times as long if passes are kept for a backward pass that never came

Step = Tuple[int, float, bool, int]  # peak, seconds, whether it ended, its first event


class WatchedWish(NamedTuple):
    steps: Wish
    seconds: Wish
    room: int  # above the peak, in bytes
    last: bool  # the run ends now: backward passes count as steps if there is no optimizer


class Course(NamedTuple):
    stable: Stable = Stable()
    steps: bool = False  # units are steps
    begun: bool = False  # it trains, but no optimizer step has ended
    units: int = 0


@dataclass
class Watched:
    path: str
    open: bool = False
    facts: Dict[str, Any] = field(default_factory=dict)  # of the last look
    steps: List[Step] = field(default_factory=list)
    others: List[int] = field(default_factory=list)  # for each step that ended, the device memory outside the framework when it was first seen
    steps_at: float = 0  # when their number last changed
    seconds: List[Unit] = field(default_factory=list)  # of device work since then
    refused_second: int = 0
    refused_seq: int = 0
    peak: int = 0
    since: float = 0  # when that peak was first seen

    def take(self, facts: Dict[str, Any], others: int) -> None:
        """After each look."""
        self.facts = facts
        self.steps = facts["units"]
        if facts["refused_seq"] > self.refused_seq:
            self.refused_seq, self.refused_second = facts["refused_seq"], len(self.seconds)
        if facts["peak"] != self.peak:
            self.since = time.monotonic()
        self.peak = facts["peak"]
        ended = sum(s[2] for s in self.steps) if facts["has_steps"] else 0
        if ended == len(self.others):
            return
        for i in range(len(self.others)):
            if self.others[i]:
                break
            self.others[i] = others  # it was not known yet
        self.others += [others] * (ended - len(self.others))
        del self.others[ended:]
        self.steps_at = time.monotonic()
        self.seconds, self.refused_second = [], 0

    def second(self, others: int) -> None:
        self.seconds.append(Unit(self.peak + others, 1))

    def judge(self, wish: WatchedWish) -> Course:
        backward = wish.last and self.facts["backward"] and not self.facts["optimizer"]
        return self.by_steps(wish) if self.others or backward else self.by_seconds(wish)

    def by_seconds(self, wish: WatchedWish) -> Course:
        units, seconds = wish.seconds
        begun = not self.others and (self.facts["trains"] or self.facts["optimizer"])
        if self.facts["passes"] and not self.others:
            units *= ANY_BACKWARD
        stable = judge(self.seconds, self.refused_second, wish.room, Wish(units, seconds))
        return Course(stable._replace(says=NOT_YET) if begun else stable, False, begun, len(self.seconds))

    def by_steps(self, wish: WatchedWish) -> Course:
        pause = time.monotonic() - self.steps_at
        units, since = units_of(self.steps, self.others, self.refused_seq)
        stable = judge(units, since, wish.room, wish.steps)
        # The program is doing something else, and is left alone until its new course is stable too.
        if stable.says and not wish.last and is_unusual(pause, stable.usual):
            stable = stable._replace(says=self.by_seconds(wish).stable.says)
        return Course(stable, True, not self.others, len(units))


def units_of(steps: Sequence[Step], others: Sequence[int], before_seq: int) -> Tuple[List[Unit], int]:
    """Units of the steps that ended, and one more if the events after them raised the peak; how many began up to before_seq."""
    units: List[Unit] = []
    after = since = 0
    last = others[-1] if others else 0
    for peak, seconds, ended, first_seq in steps:
        if not ended:
            after = max(after, peak)
            continue
        units.append(Unit(peak + (others[len(units)] if len(units) < len(others) else last), seconds))
        if first_seq <= before_seq:
            since = len(units)
    if units and after > max(u.peak for u in units):
        units.append(Unit(after, units[-1].seconds))
    return units, since


def rise_of(steps: Sequence[Step]) -> int:
    """How much a unit of a whole recording raises the peak, by the same rule."""
    units, since = units_of(steps, (), 0)
    return judge(units, since, 0, Wish(1, 0)).each
