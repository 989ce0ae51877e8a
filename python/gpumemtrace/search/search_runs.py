# SPDX-License-Identifier: Apache-2.0
"""The runs of a search. Results of an earlier search in the folder are reused, the other runs are started, as many at once as cores and
memory allow. An interrupt ends them all; their results so far stay."""
from __future__ import annotations

import contextlib
import errno
import mmap
import os
import shutil
import signal
import tempfile
import time
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from .._answer import Answer, Interrupted, Sentence
from .search_process import fork
from .search_run import STOPPED, run
from .search_trial import FAILED, Card, Plan, Trial, new_trial
from .search_vary import Setting

AT_ONCE = 64
NEEDS = 2 << 30  # memory of the machine for a run, before one was measured
REST = 0.02  # seconds
AGAIN = 1.0  # seconds between two requests to end
DOING = 256  # bytes that say what a run waits for
SILENT = float(os.environ.get("GPUMEMTRACE_TEST_SILENT", 10))  # seconds between two lines where there is no terminal to show progress
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupt:
    came = False

    def note(self, *_: object) -> None:
        self.came = True


interrupt = Interrupt()


def listen() -> None:
    for one in SIGNALS:
        signal.signal(one, interrupt.note)


class Lines:
    """What is going on, where no terminal shows it: in a pipe or a file a line once it takes long, then for each run that ends, or from time
    to time."""

    def __init__(self, answer: Answer) -> None:
        self.answer, self.begin = answer, time.monotonic()
        self.last, self.wanted = self.begin, not os.isatty(2)

    def ended(self, text: str) -> None:
        if self.wanted and time.monotonic() - self.begin >= SILENT:
            self.answer.note(text)
            self.last = time.monotonic()

    def doing(self, text: str) -> None:
        if time.monotonic() - self.last >= SILENT:
            self.ended(text)


class Running(NamedTuple):
    trial: Trial
    pid: int
    doing: mmap.mmap


def available() -> int:
    with contextlib.suppress(OSError, ValueError), open("/proc/meminfo", encoding="ascii") as f:
        return next((int(row.split()[1]) << 10 for row in f if row.startswith("MemAvailable:")), 0)
    return 0


class Runs:
    def __init__(self, plan: Plan, answer: Answer, jobs: int = 0, enter: Callable[[], None] = lambda: None) -> None:
        self.plan, self.answer, self.jobs = plan, answer, jobs  # jobs 0: limited by cores and memory
        self.enter = enter  # changes to the folder of the run
        self.trials: Dict[Tuple[Card, Setting], Trial] = {}
        self.ran = self.kept = 0  # runs now, and results of an earlier search
        self.lines, self.counted = Lines(answer), ""  # counted: which of the runs of a search the next one is

    def trial(self, card: Card, setting: Setting) -> Trial:
        key = card, setting
        if key not in self.trials:
            self.trials[key] = new_trial(self.plan, card, setting)
        return self.trials[key]

    def most_at_once(self) -> int:
        ranks, cores = self.plan.world.runs(), os.sysconf("SC_NPROCESSORS_ONLN")
        return max(1, min(self.jobs or cores // max(ranks, 1), AT_ONCE))

    def may_start(self, running: int) -> bool:
        """The first run may always start; another one only if memory is available for it."""
        if not running:
            return True
        if running >= self.most_at_once():
            return False
        needs = max((t.number("resident_bytes") for t in self.trials.values()), default=0) * 5 // 4 or NEEDS
        return available() > needs * max(self.plan.world.runs(), 1)

    def is_an_answer(self, trial: Trial) -> bool:
        """A failed run is repeated, because what it lacked may be there now. So is one that timed out, if it gets more time."""
        limit = trial.number("limit_seconds")
        return trial.verdict != FAILED and (not limit or self.plan.seconds <= limit)

    def run(self, trials: Sequence[Trial]) -> None:
        """Those without result."""
        if interrupt.came:
            raise Interrupted
        due: List[Trial] = []
        for trial in trials:
            if trial.result or any(t is trial for t in due):
                continue
            if trial.read() and self.is_an_answer(trial):
                self.kept += 1
            else:
                due.append(trial)
        self.plan.threads = 1 if self.most_at_once() > 1 else 0
        running: List[Running] = []
        try:
            self.run_all(due, running)
        except BaseException:
            end_all(running)
            raise
        finally:
            self.answer.doing("")

    def run_all(self, due: List[Trial], running: List[Running]) -> None:
        count, due = len(due), list(due)
        while running or due:
            while due and self.may_start(len(running)):
                running.append(start(due.pop(0), self.enter))
            if interrupt.came:
                break
            if running and running[0].doing[0]:
                done = self.counted or f"runs {count - len(due) - len(running)} of {count}, {len(running)} running"
                doing = f"{done}; {read_doing(running[0].doing)}"
                self.answer.doing(doing)
                self.lines.doing(doing)
            ended = wait_for_one(running)
            if ended:
                running.remove(ended)
                if not interrupt.came:
                    self.finish(ended.trial)
                    words = self.plan.varied.words(ended.trial.setting)
                    self.lines.ended(f"{self.counted or f'run {count - len(due) - len(running)} of {count}'}, {ended.trial.card.name}{f' with {words}' if words else ''}: "
                                     f"{ended.trial.verdict}")
        if interrupt.came:
            raise Interrupted

    def finish(self, trial: Trial) -> None:
        self.ran += 1
        if not trial.read():
            raise Sentence(f"{trial.path('.json')} could not be written: is there room left?")


def start(trial: Trial, enter: Callable[[], None]) -> Running:
    doing = mmap.mmap(-1, DOING)

    def say(text: str) -> None:
        doing[:] = text.encode("utf-8", "replace")[:DOING - 1].ljust(DOING, b"\0")

    def work() -> int:
        enter()
        return run(trial, say)
    try:
        return Running(trial, fork(work), doing)
    except OSError as error:
        raise Sentence(f"no process can be started: {error.strerror}") from None


def read_doing(doing: mmap.mmap) -> str:
    return doing[:].split(b"\0")[0].decode("utf-8", "replace")


def wait_for_one(running: Sequence[Running]) -> Optional[Running]:
    """One that has ended, or None. A run that was ended from outside leaves no result. That counts as an interrupt, because a signal to the
    whole group reaches the runs first."""
    pid, status = os.waitpid(-1, os.WNOHANG)
    if not pid:
        time.sleep(REST)
    elif os.WIFEXITED(status) and os.WEXITSTATUS(status) == STOPPED:
        interrupt.note()
    return next((r for r in running if r.pid == pid), None)


def end_all(running: Sequence[Running]) -> None:
    """Asked again and again, as one that has just been started does not listen yet."""
    left = {r.pid for r in running}
    while left:
        for pid in left:
            os.kill(pid, signal.SIGTERM)
        for _ in range(int(AGAIN / REST)):
            time.sleep(REST)
            left -= {pid for pid in left if os.waitpid(pid, os.WNOHANG)[0]}
            if not left:
                break


@contextlib.contextmanager
def folder_of(given: str, word: str, environment: Dict[str, str]) -> Iterator[str]:
    """The folder of a search: the one that the user named, or a new one whose name has that word, which is removed."""
    if given:
        make_folder(given)
        yield given
        return
    place = environment.get("TMPDIR") or "/tmp"
    try:
        path = tempfile.mkdtemp(prefix=f"gpumemtrace-{word}-", dir=place)
    except OSError as error:
        raise Sentence(f"{place}/gpumemtrace-{word}-XXXXXX cannot be made: {error.strerror}") from None
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def make_folder(path: str) -> None:
    if os.path.exists(path) and not os.path.isdir(path):
        raise Sentence(f"{path} is no folder")
    try:
        os.mkdir(path, 0o777)
    except FileExistsError:
        pass
    except OSError as error:
        raise Sentence(f"{path} cannot be made: {error.strerror}") from None
    if not os.access(path, os.W_OK | os.X_OK):
        read_only = os.statvfs(path).f_flag & os.ST_RDONLY
        raise Sentence(f"{path}: nothing can be written to this folder: {os.strerror(errno.EROFS if read_only else errno.EACCES)}")
