# SPDX-License-Identifier: Apache-2.0
"""Processes: those that a run starts, and all their descendants as /proc shows them, in whatever group or session they are now."""
from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
import traceback
from typing import AbstractSet, Callable, Dict, List, NamedTuple, NoReturn, Optional, Sequence, Set

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
ROUNDS = 50

prctl = ctypes.CDLL(None).prctl


class Process(NamedTuple):
    pid: int
    parent: int
    group: int
    state: str
    ticks: int  # of the processor
    ended: int  # of its ended children


def read_process(pid: int) -> Optional[Process]:
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            words = f.read().rpartition(b")")[2].split()
        user, system, child_user, child_system = map(int, words[11:15])
        return Process(pid, int(words[1]), int(words[2]), words[0].decode(), user + system, child_user + child_system)
    except (OSError, ValueError, IndexError):
        return None


def all_processes() -> List[Process]:
    return [p for p in (read_process(int(name)) for name in os.listdir("/proc") if name.isdigit()) if p]


def with_descendants(processes: Sequence[Process], first: AbstractSet[int], without: AbstractSet[int] = frozenset()) -> Set[int]:
    """Ids of these and of all below them; `without`: those are left out, with what is below them alone."""
    children: Dict[int, List[int]] = {}
    for p in processes:
        children.setdefault(p.parent, []).append(p.pid)
    found, due = set(first), list(first)
    while due:
        for pid in children.get(due.pop(), ()):
            if pid not in found and pid not in without:
                found.add(pid)
                due.append(pid)
    return found


def status_of(pid: int, row: str) -> int:
    """A number of /proc/PID/status; 0: there is none."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
            return next((int(line.split()[1]) for line in f if line.startswith(row + ":")), 0)
    except (OSError, ValueError):
        return 0


def end_descendants() -> None:
    """Ends all descendants of this process. Repeats until no process is left, because one may start another during a round."""
    for _ in range(ROUNDS):
        processes = all_processes()
        ours = with_descendants(processes, {p.pid for p in processes if p.parent == os.getpid()})
        for pid in ours:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        reap_all()
        if not ours:
            return
        time.sleep(0.005)


def reap_all() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def fork(child: Callable[[], int], ends_by: int = signal.SIGTERM) -> int:
    """Starts a process of this program, which ends with this one; returns its id. What it returns is its exit code."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    code = 126
    try:
        prctl(PR_SET_PDEATHSIG, int(ends_by))
        if os.getppid() == parent:
            code = child()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def become(argv: Sequence[str], environment: Dict[str, str], streams: Sequence[int], group: Optional[int] = None) -> NoReturn:
    """Replaces this process, which was forked. streams: its standard input, output and errors."""
    if group is not None:
        with contextlib.suppress(OSError):
            os.setpgid(0, group)
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(one, signal.SIG_DFL)
    moved = [os.dup(fd) for fd in streams]
    for fd, source in enumerate(moved):
        os.dup2(source, fd)
    os.closerange(3, 256)
    os.execvpe(argv[0], list(argv), environment)
