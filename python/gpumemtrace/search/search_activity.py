# SPDX-License-Identifier: Apache-2.0
"""Activity of a run's processes: whether they work on the device, use the processor, or are idle, and what they wait for if they are idle. A process
that only polls (a thread that wakes every tenth of a second) counts as idle: less than 1/IDLE_SHARE of a processor is no activity."""
from __future__ import annotations

import os
import platform
import re
import time
from typing import List, Set, Tuple

from .search_process import Process, all_processes, status_of, with_descendants
from .search_usage import read_usage

MOST_USERS = 16
LOOK = 1.0  # seconds
IDLE_SHARE = 50
BURST = 5  # ticks of processor time that count as idle
WORK = 20  # pieces of work in a second that count as work
TRIES = 50
LISTENS = "0A"  # the state of a socket, in /proc/net/tcp
SOCKETS = 1 << 16  # most descriptors looked at
TICK = 1 / os.sysconf("SC_CLK_TCK")

# The numbers of system calls on x86-64 and on aarch64, by what a program in one of them waits for.
CALLS = {
    "a lock, or another thread": ((202,), (98,)),
    "the end of short sleeps, one after another": ((230, 35), (115, 101)),
    "another process": ((61, 247), (260, 95)),
    "a connection or another process": ((271, 270, 281, 7, 23, 232), (73, 72, 22)),
    "a file, a pipe or a terminal": ((0,), (63,)),
    "a connection": ((45, 47, 43, 288), (207, 212, 202, 242)),
    "a file that another process has locked": ((73,), (32,)),
}
MACHINE = 1 if platform.machine() == "aarch64" else 0
WAITS = {call: words for words, calls in CALLS.items() for call in calls[MACHINE]}
LONG_SLEEPS = ((230, 35, 270), (115, 101, 72))[MACHINE]


class Activity:
    def __init__(self, group: int, usage: str) -> None:
        self.group, self.usage = group, usage
        self.users: List[int] = []  # processes that use the device, the latest last
        now = time.monotonic()
        self.look_at = 0.0  # time of the last look
        self.worked_at = self.moved_at = now  # of the last device work or recorded event; at which a process was last active
        self.work = self.ticks = 0  # the device's work; processor ticks at moved_at
        self.switches = 0  # how often the latest one's main thread had waited by then
        # Periods of at least a second in which the device did a fair amount of work and no descendant used the processor; when the
        # next period began, and what there was of both until then.
        self.seconds = 0
        self.second_at, self.second_work, self.below = now, 0, 0

    def uses_device(self, pid: int) -> None:
        if pid > 0 and pid not in self.users and len(self.users) < MOST_USERS:
            self.users.append(pid)
            self.below = 0

    def latest(self) -> int:
        return self.users[-1] if self.users else 0

    def look(self, events: int) -> None:
        """`events`: how many are recorded. Looks once a second."""
        now = time.monotonic()
        if now - self.look_at < LOOK:
            return
        self.look_at = now
        given = read_usage(self.usage).work
        work = given + events
        ticks, runs, below = self.ticks_now()
        self.count_second(now, given, below)
        if work != self.work:
            self.worked_at = now
        if runs or work != self.work or is_much(self.ticks, ticks, now - self.moved_at):
            self.moved_at, self.ticks = now, ticks
            self.switches = status_of(self.latest(), "voluntary_ctxt_switches")
        self.work = work

    def ours(self) -> Tuple[List[Process], Set[int]]:
        """All processes, and the ids of those of the run."""
        processes = all_processes()
        return processes, with_descendants(processes, {p.pid for p in processes if p.group == self.group})

    def ticks_now(self) -> Tuple[int, bool, int]:
        """Processor time of all our processes; whether one waits for a processor or a disk; processor time of the descendants of those that
        use the device, ended ones included."""
        processes, ours = self.ours()
        users = set(self.users)
        descend = with_descendants(processes, users, users) - users
        mine = [p for p in processes if p.pid in ours]
        below = sum(p.ticks + p.ended if p.pid in descend else p.ended if p.pid in users else 0 for p in mine)
        return sum(p.ticks for p in mine), any(p.state in "DR" for p in mine), below

    def count_second(self, now: float, work: int, below: int) -> None:
        """Counts a second of work, unless compilers run below the process. The device's work meanwhile would not be the program's usual work."""
        busy = is_much(self.below, below, now - self.second_at)
        if not busy and work - self.second_work < WORK:
            return
        self.seconds += not busy
        self.second_at, self.second_work, self.below = now, work, below

    def call_now(self) -> int:
        """Number of the system call that the main thread is in; -1: none, or it cannot be read."""
        for _ in range(TRIES):
            try:
                with open(f"/proc/{self.latest() or self.group}/syscall", encoding="ascii") as f:
                    call = f.read().split()[0]
            except (OSError, IndexError):
                return -1
            if call.isdigit():
                return int(call)
            time.sleep(0.005)  # it was just awake
        return -1

    # ---- while the program is idle ----

    def waits_for(self) -> str:
        return WAITS.get(self.call_now(), "something that cannot be seen from outside")

    def sleeps(self) -> bool:
        """For a long time, on purpose."""
        return self.call_now() in LONG_SLEEPS and status_of(self.latest(), "voluntary_ctxt_switches") <= self.switches + 1

    def listens(self) -> bool:
        """Whether the process that uses the device listens at a port, or one of its ancestors, because a server may start it."""
        processes, ours = self.ours()
        parents = {p.pid: p.parent for p in processes}
        pid = self.latest()
        while pid:
            if process_listens(pid):
                return True
            parent = parents.get(pid, 0)
            pid = parent if parent in ours else 0
        return False


def is_much(before: int, ticks: int, seconds: float) -> bool:
    """A lower total counts as activity: a process has ended, and its time is no longer included."""
    return ticks < before or (ticks - before) * TICK > BURST * TICK + seconds / IDLE_SHARE


def process_listens(pid: int) -> bool:
    inodes = set()
    try:
        with os.scandir(f"/proc/{pid}/fd") as descriptors:
            for _, entry in zip(range(SOCKETS), descriptors):
                found = re.match(r"socket:\[(\d+)\]", os.readlink(entry.path))
                if found:
                    inodes.add(found[1])
    except OSError:
        pass
    for table in ("tcp", "tcp6"):
        try:
            with open(f"/proc/{pid}/net/{table}", encoding="ascii") as f:
                if any(row[3] == LISTENS and row[9] in inodes for row in map(str.split, f) if len(row) > 9):
                    return True
        except OSError:
            pass
    return False
