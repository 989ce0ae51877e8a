# SPDX-License-Identifier: Apache-2.0
"""Ends a running program when its peak is stable, or rises steadily (search_stable). If several processes train, each of them has to get
there. The peak of the others must be older than everything before it. With --to-end nothing is ended.

If no process does anything for QUIET, the program hangs, unless a process sleeps on purpose or listens at a port and so may wait for
requests. A process that uses the processor but not the device is preparing something. It may do so for BUSY, or for the time given."""
from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import Any, Dict, List, Tuple

from .search_activity import Activity
from .._answer import many
from .search_facts import Facts
from .search_stable import NOT_YET, RISES, STABLE, Wish
from .search_trial import Trial
from .search_usage import read_usage
from .search_watched import Course, Watched, WatchedWish

RECORDINGS = 16
SAMPLE = 1.0  # seconds
OLD = 3.0  # seconds, more than an older count is old
QUIET, BUSY = int(os.environ.get("GPUMEMTRACE_TEST_QUIET", 20)), 600  # seconds


@dataclass
class End:
    """How a run ended."""
    early: bool = False  # it was ended early
    stable: str = NOT_YET  # if so: whether its peak is stable,
    course: Course = field(default_factory=Course)  # based on this
    hangs: str = ""  # why
    idle: str = ""  # why; the peak is stable
    late: str = ""  # why time ran out
    partly: bool = False  # if so: a whole step was recorded, which the figures describe
    code: int = 0
    resident: int = 0  # bytes of the machine's memory


@dataclass
class Judgement:
    training: int = 0
    trained: int = 0
    rising: int = 0
    others: int = 0
    quiet: int = 0
    old: int = 0
    begun: bool = False  # one has begun to train, and no step has ended
    slow: Course = field(default_factory=Course)  # of the process farthest from an answer

    def add(self, course: Course, is_old: bool) -> None:
        stable = course.stable
        self.begun |= course.begun
        self.rising += stable.says == RISES
        if course.steps:
            self.training += 1
            self.trained += bool(stable.says)
        else:
            self.others += 1
            self.quiet += bool(stable.says)
            self.old += is_old
        if self.training + self.others == 1 or stable.each > self.slow.stable.each or (
                not self.slow.stable.each and is_slower(course, self.slow)):
            self.slow = course

    def says(self, ranks: int) -> str:
        if self.training:
            everything = self.trained == self.training >= ranks and self.old == self.others
        else:
            everything = bool(self.others) and self.quiet == self.others and not self.begun
        return NOT_YET if not everything else RISES if self.rising else STABLE


def is_slower(a: Course, b: Course) -> bool:
    return a.steps if a.steps != b.steps else a.units < b.units


class Watch:
    def __init__(self, trial: Trial, facts: Facts, group: int) -> None:
        self.trial, self.plan, self.facts = trial, trial.plan, facts
        self.items: List[Watched] = []
        self.start = time.monotonic()
        self.activity = Activity(group, trial.path(".usage"))
        # Peak use of a device by its own count, now and a second or two ago; the time of that count; the part outside frameworks.
        self.device = self.device_before = self.others = 0
        self.sample_at = 0.0
        self.seconds = 0  # of work until then
        self.new_at = 0.0  # when a recording was found last

    # ---- recordings ----

    def read(self) -> List[Tuple[Watched, Dict[str, Any]]]:
        known = {item.path: item for item in self.items}
        read = []
        for path in self.trial.recordings():
            if path not in known and len(known) >= RECORDINGS:
                continue
            facts = self.facts.ask("look", path)
            if facts is None:
                continue
            if path not in known:
                known[path] = Watched(path)
                self.items.append(known[path])
                self.new_at = time.monotonic()
            known[path].open = True
            known[path].facts = facts
            read.append((known[path], facts))
        return read

    def sample_device(self) -> None:
        """Reads the device's own count, once a second."""
        now = time.monotonic()
        if now - self.sample_at >= SAMPLE:
            self.sample_at = now
            self.device_before, self.device = self.device, read_usage(self.activity.usage).peak

    def find_others(self) -> None:
        """Lower bound of device memory outside the frameworks. It uses an older device count, because recordings lag behind, and only once
        all recordings of that time have been read."""
        if self.items and time.monotonic() - self.new_at >= OLD:
            reserved = max((item.facts["reserved"] for item in self.items if item.open), default=0)
            self.others = max(self.others, self.device_before - reserved)

    def read_on(self) -> None:
        self.sample_device()
        read = self.read()
        for _, facts in read:
            self.activity.uses_device(facts["pid"])
        self.activity.look(sum(facts["events"] for _, facts in read))
        self.find_others()
        for item, facts in read:
            item.take(facts, self.others)
        for item in self.items:
            for _ in range(self.activity.seconds - self.seconds):
                item.second(self.others)
        self.seconds = self.activity.seconds

    # ---- the decision ----

    def wish(self, item: Watched, last: bool) -> WatchedWish:
        """last: the run ends now, however short it was."""
        look = self.plan.look or QUIET
        steps = Wish(self.plan.steps, 0 if last else self.plan.look)
        seconds = Wish(QUIET if last else look, 0 if last else look)
        return WatchedWish(steps, seconds, max(self.trial.card.memory - item.peak - self.others, 0), last)

    def judge(self, last: bool) -> Judgement:
        j, now = Judgement(), time.monotonic()
        for item in self.items:
            # For a process that does not train, beside processes that do.
            j.add(item.judge(self.wish(item, last)), now - item.since >= item.since - self.start)
        return j

    def says(self, j: Judgement) -> str:
        return j.says(self.plan.world.runs())

    def waits_for(self, j: Judgement) -> str:
        """no training step has ended"""
        ranks = self.plan.world.runs()
        if not self.items:
            return "it has not used the device yet"
        if j.training and j.training < ranks:
            return f"{j.training} of {ranks} ranks have begun to train"
        if j.training:
            return f"{many(j.slow.units, 'training step')}, and the peak last rose in step {j.slow.stable.risen}"
        if j.begun:
            return "it has begun to train, and no step of an optimizer has ended"
        return f"no training step, and {many(j.slow.units, 'second')} of work on the device"

    # ---- its end ----

    def look(self, why: End) -> bool:
        """Whether the program should be ended now; then also why."""
        self.read_on()
        j, a = self.judge(False), self.activity
        self.doing = f"{self.trial.card.name}, {int(time.monotonic() - self.start)} s: {self.waits_for(j)}"
        if self.says(j) and not self.plan.to_end:
            return self.end_by(j, self.says(j), why)
        if self.plan.seconds and time.monotonic() - self.start >= self.plan.seconds:
            return self.is_late(why)
        if a.look_at - a.moved_at >= QUIET:
            return self.is_still(why)
        if self.plan.patient or a.look_at - a.worked_at < BUSY:
            return False
        why.hangs = (f"for {BUSY // 60} minutes it used the processor and did nothing on the device; if it prepares its data, give it more "
                     "time (fit --max-time).")
        return True

    def end_by(self, j: Judgement, says: str, why: End) -> bool:
        why.course, why.stable = j.slow, says
        return True

    def is_late(self, why: End) -> bool:
        """The time limit is reached. After one whole step behind the first the figures describe a step."""
        j = self.judge(True)
        self.end_by(j, self.says(j), why)
        what, after = self.waits_for(j), f"fter {self.plan.seconds} s (--max-time) "
        why.partly = bool(why.stable) or (j.slow.steps and j.slow.units > 1 and j.training >= self.plan.world.runs())
        if why.stable:
            why.late = f"A{after}it was ended: {what}."
        elif why.partly:
            why.late = f"A{after}it was ended before its peak was stable: {what}. The figures are a lower bound."
        else:
            why.late = f"a{after}its peak was not stable: {what}; give it more time, or less work in a step."
        return True

    def is_still(self, why: End) -> bool:
        """No process did anything for QUIET. A program that waits is left alone for as long as it took to get there."""
        a, j = self.activity, self.judge(True)
        still, sleeps = a.look_at - a.moved_at, a.sleeps()
        if not sleeps and (not self.items or self.plan.world.size or not a.listens()):
            steps = f" after {j.slow.units} steps" if j.training else ""
            why.hangs = (f"for {int(time.monotonic() - a.moved_at)} s{steps} it did nothing on the device and used no processor time; its "
                         f"main thread waits for {a.waits_for()}.")
            return True
        if (not self.items or j.begun or (j.training and self.says(j) != STABLE) or self.plan.to_end or still < self.plan.look or
                still < a.moved_at - self.start):
            return False
        why.idle = ("It sleeps, and does nothing more: what it does later is not in the figures." if sleeps else
                    "It listens at a port and does nothing: if it waits for requests, what these take is not in the figures.")
        return self.end_by(j, STABLE, why)
