# SPDX-License-Identifier: Apache-2.0
"""Starts the program as `gpumemtrace run --sim` does, in its own process group, and checks periodically whether its peak is stable. Then it
ends the program: SIGTERM, and after two seconds SIGKILL, also for processes in other groups (launchers start such). Runs in a process of
its own; the recording survives either signal."""
from __future__ import annotations

import contextlib
import os
import resource
import signal
import time
from typing import Callable, Dict, List, Optional

from .._answer import UNREADABLE
from .search_facts import Facts
from .search_measure import measure
from .search_process import PR_SET_CHILD_SUBREAPER, all_processes, become, end_descendants, fork, prctl, with_descendants
from .search_trial import Trial
from .search_watch import End, Watch
from .search_world import StandIn, launcher_of, rank_environment

LOOK = 0.1  # seconds
REST = 0.02
LEAVE = 2.0  # between the two signals
SAY = 60.0  # at most, for `run` to say what the changes did, on a busy machine
STOPPED = 128 + signal.SIGTERM

Doing = Callable[[str], None]


class Group:
    """The processes of one run, all in the first one's group."""

    def __init__(self) -> None:
        self.first = 0
        self.left: List[int] = []
        self.count = 0
        self.code = 0  # the first that was not 0
        self.stand_in: Optional[StandIn] = None
        self.stopped = False

    def stop(self, *_: object) -> None:
        """Ends the first process at once, and all its descendants after the current check."""
        self.stopped = True
        if not self.first:
            os._exit(STOPPED)
        self.send(signal.SIGKILL)

    def reap(self) -> None:
        while self.left:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            if pid in self.left:
                self.left.remove(pid)
                self.code = self.code or (128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))

    def wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while self.left and not self.stopped and time.monotonic() < end:
            time.sleep(0.005)
            self.reap()

    def end(self) -> None:
        """`run` ends behind the program, because it starts Python then, which says what the changes did."""
        program = with_descendants(all_processes(), set(self.left)) - set(self.left)
        self.send(signal.SIGTERM)
        self.wait(LEAVE)
        for pid in program & with_descendants(all_processes(), set(self.left)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.wait(SAY)
        self.send(signal.SIGKILL)
        while self.left:
            time.sleep(0.005)
            self.reap()

    def send(self, how: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.first, how)


def clear_files(trial: Trial) -> None:
    """An earlier search's recordings and their page stay until this run has its own."""
    trial.keep_old()
    for path in (trial.path(".log"), trial.path(".usage"), trial.path(".json")):
        with contextlib.suppress(OSError):
            os.unlink(path)
    make_file(trial.path(".usage"))


def make_file(path: str) -> None:
    with contextlib.suppress(OSError), open(path, "wb"):
        pass


def environment_of(trial: Trial) -> Dict[str, str]:
    plan = trial.plan
    environment = {**plan.environment, "SIMGPU_USAGE": trial.path(".usage")}
    if plan.threads:
        environment.setdefault("OMP_NUM_THREADS", str(plan.threads))
    return {**environment, **plan.varied.environment(trial.setting)}


def copies_of(trial: Trial) -> int:
    """How many times the command is started here."""
    world = trial.plan.world
    return len(world.ranks) or (world.size if world.size and not launcher_of(trial.plan.command) else 1)


def start(group: Group, trial: Trial) -> bool:
    plan, copies = trial.plan, copies_of(trial)
    world, port, messages = plan.world, 20000 + os.getpid() % 30000, trial.path(".messages")
    changes = [word for text in plan.varied.changes(trial.setting) for word in ("--with", text)]
    changes += ["--json"] if changes else []  # for measure
    argv = [plan.tool, "run", "--sim", f"{trial.card.name},{world.devices()}", "-o", trial.path(".gmt"), *changes, "--",
            *plan.varied.command(trial.setting, plan.command)]
    log = os.open(trial.path(".log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    if world.ranks:
        group.stand_in = StandIn(plan.stand_in, world, log)
        if not group.stand_in.works:
            return False
        make_file(messages)
    for i in range(copies):
        environment = environment_of(trial)
        if world.ranks and group.stand_in:
            environment.update(world.environment(i, group.stand_in.ports[i], messages))
        elif copies > 1:
            environment.update(rank_environment(i, copies, copies, port))
        pid = fork(lambda: become(argv, environment, (nothing, log, log), group.first))
        with contextlib.suppress(OSError):
            os.setpgid(pid, group.first or pid)
        group.first = group.first or pid
        group.left.append(pid)
        group.count += 1
    os.close(log)
    os.close(nothing)
    return True


def follow(group: Group, trial: Trial, facts: Facts, doing: Doing) -> End:
    """A check that took long is followed by a longer pause."""
    end, watch = End(), Watch(trial, facts, group.first)
    pause, ends = LOOK, False
    after = time.monotonic() + LOOK
    while not ends and group.left and not group.stopped:
        time.sleep(REST)
        group.reap()
        if group.left and time.monotonic() >= after:
            begin = time.monotonic()
            ends = watch.look(end)
            doing(watch.doing)
            pause = max(4 * (time.monotonic() - begin), LOOK)
            after = time.monotonic() + pause
        if group.code and group.left and group.count > 1:
            break  # the remaining ranks would wait for the failed one
    group.reap()  # it may have ended by itself during the check
    if not group.left:
        return End()
    end.early = ends
    return end


def run(trial: Trial, doing: Doing) -> int:
    """Called in a process of its own. Leaves the result in the folder and returns an exit code."""
    group = Group()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGTERM, group.stop)
    signal.signal(signal.SIGHUP, group.stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    clear_files(trial)
    started = start(group, trial)
    facts = Facts(trial.plan.tool)
    end = follow(group, trial, facts, doing) if started else End()
    living = [path for path in trial.recordings() if facts.ask("written", path) is not None]
    facts.close()
    if group.first:
        group.end()
    if group.stand_in:
        group.stand_in.end()
    end_descendants()
    with contextlib.suppress(OSError):
        os.unlink(trial.path(".messages"))
    if group.stopped:
        os._exit(STOPPED)
    end.code = group.code if started else 126
    end.resident = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    group.first = 0  # from here on a signal ends this process
    facts = Facts(trial.plan.tool)
    for path in living:
        facts.ask("complete", path)
    try:
        measure(trial, facts, end)
    except OSError:
        return UNREADABLE
    finally:
        facts.close()
    return 0
