# SPDX-License-Identifier: Apache-2.0
"""One run of the program on one simulated card with one setting. Its result is kept as NAME.json in the folder of the search, with the
recording NAME.gmt, the output NAME.log and the page NAME.html. A later search reuses it."""
from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from .._answer import UNREADABLE, Sentence
from .search_vary import Setting, Varied
from .search_world import World

SECONDS = 3600  # of a run
LOOK = 60  # seconds of steps to observe
STEPS = 2  # or so many, if that takes longer
NAME = 150  # most characters of a name
SCRIPT, RESULT = 1 << 20, 64 << 20  # most bytes that are read

FITS, REFUSED, UNSTABLE, FAILED = "fits", "does not fit", "not stable", "failed"

SHARED_LIMIT = "out of resource: shared memory"  # Triton's words of a kernel that the card cannot run


@dataclass(frozen=True)
class Card:
    name: str  # as SIMGPU_CARD has it
    memory: int
    context: int
    major: int
    minor: int
    code: int
    processors: int

    def generation(self) -> Sequence[int]:
        """Equal of two cards for which PyTorch makes the same decisions by compute capability."""
        return self.major, self.minor, self.code


@dataclass
class Plan:
    """Settings shared by all runs of a search."""
    tool: str
    version: str
    environment: Dict[str, str]
    command: List[str]
    folder: str = ""
    varied: Varied = field(default_factory=Varied)
    pages: bool = False  # each run gets its page
    steps: int = STEPS  # that must follow the last rise of the peak,
    look: int = 0  # and seconds of them; 0: the duration of `steps`
    to_end: bool = False  # or the whole run
    seconds: int = SECONDS  # time limit of a run
    patient: bool = False  # data preparation may then take as long
    world: World = field(default_factory=World)
    stand_in: str = ""  # the program that simulates the ranks of the world that do not run
    threads: int = 0  # for each run, where the program does not set its own


@dataclass
class Trial:
    plan: Plan
    card: Card
    setting: Setting
    name: str  # of its files
    fingerprint: str
    result: Dict[str, Any] = field(default_factory=dict)  # contents of NAME.json
    old: Dict[str, Tuple[int, ...]] = field(default_factory=dict)  # recordings of an earlier search, which this run has not replaced

    def path(self, ending: str) -> str:
        return f"{self.plan.folder}/{self.name}{ending}"

    @property
    def verdict(self) -> str:
        return self.text("verdict")

    def number(self, member: str) -> int:
        value = self.result.get(member, 0)
        return int(value) if isinstance(value, (int, float)) else 0

    def text(self, member: str) -> str:
        value = self.result.get(member, "")
        return value if isinstance(value, str) else ""

    def oom(self, member: str) -> Any:
        oom = self.result.get("oom")
        return oom.get(member) if isinstance(oom, dict) else None

    def texts(self, member: str) -> Dict[str, str]:
        found = self.result.get(member)
        return found if isinstance(found, dict) else {}

    def missed(self) -> Dict[str, str]:
        """Changes that could not be made, and why."""
        return self.texts("not_made")

    def instead(self) -> Dict[str, str]:
        """Those of them that need another value (the rows of a batch that no loader made), and the change with it."""
        return self.texts("instead")

    def not_made(self) -> str:
        return "; ".join(f"{text}: {why}" for text, why in self.missed().items())

    def read(self) -> bool:
        """The result of an earlier search; False if there is none, or it is of another command."""
        document = read_result(self.path(".json"))
        self.result = document if document.get("fingerprint") == self.fingerprint else {}
        return bool(self.result)

    def files(self) -> List[str]:
        """NAME.gmt, and NAME.4711.gmt of further processes."""
        ours = re.compile(re.escape(self.name) + r"(\.[0-9]+)?\.gmt", re.S)
        with contextlib.suppress(OSError):
            return [f"{self.plan.folder}/{name}" for name in os.listdir(self.plan.folder) if ours.fullmatch(name)]
        return []

    def keep_old(self) -> None:
        """What is there now is an earlier search's. `run` replaces it when this run's first event is written."""
        self.old = {path: identity for path in self.files() for identity in [identity_of(path)] if identity}

    def recordings(self) -> List[str]:
        return [path for path in self.files() if path not in self.old or identity_of(path) != self.old[path]]

    # ---- why it failed ----

    def ended_well(self) -> bool:
        """It did what it was to do, and a device had no part in it."""
        return not self.number("exit_code") and not self.text("hangs")

    def failed(self) -> str:
        """In short."""
        if self.number("limit_seconds"):
            return "no answer"
        return "the program took no memory of a device" if self.ended_well() else "the program failed"

    def failure(self) -> str:
        """The cause: the exit code with the last line of output, or that it hangs."""
        if self.not_made() or self.text("late"):
            return self.not_made() or self.text("late")
        words = self.text("last_words")
        printed = f" It printed last: {words}" if words else ""
        if self.ended_well():
            return f"it ended with exit code 0; does it use the CPU alone?{printed}"
        if self.text("hangs"):
            return f"it hangs: {self.text('hangs')}" + ("" if words.startswith("gpumemtrace") else printed)
        as_there = f" (as on the card: that is what a block of {self.card.name} has)" if SHARED_LIMIT in words else ""
        return f"exit code {self.number('exit_code')}: {words}{as_there}"

    def failure_sentence(self) -> Sentence:
        """Both, with the card and the setting."""
        setting = self.plan.varied.words(self.setting)
        cause = "" if self.number("limit_seconds") or self.ended_well() else ", and memory was not the reason"
        return Sentence(f"{self.failed()} on {self.card.name}{', ' if setting else ''}{setting}{cause}: {self.failure()}")


def identity_of(path: str) -> Tuple[int, ...]:
    """Of the file with that name at the moment, with the time of its last change, as a new file may get the number of a removed one."""
    with contextlib.suppress(OSError):
        info = os.lstat(path)
        return info.st_dev, info.st_ino, info.st_ctime_ns
    return ()


def read_result(path: str) -> Dict[str, Any]:
    try:
        # Nothing but a file is waited for.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), encoding="utf-8", errors="surrogateescape") as f:
            info = os.fstat(f.fileno())
            document = json.load(f) if stat.S_ISREG(info.st_mode) and info.st_size <= RESULT else None
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


# ---- what makes a run another one ----


def text_of_file(path: str) -> bytes:
    """A script that the command names: with another text it is another program."""
    with contextlib.suppress(OSError, ValueError):
        info = os.stat(path)
        if stat.S_ISREG(info.st_mode) and info.st_size <= SCRIPT:
            with open(path, "rb") as f:
                return f.read()
    return b""


def fingerprint_of(parts: Iterable[bytes]) -> str:
    h = hashlib.blake2b(digest_size=8)
    for part in parts:
        h.update(b"%d:" % len(part) + part)
    return h.hexdigest()


def relevant(environment: Mapping[str, str]) -> List[str]:
    return [f"{name}={value}" for name, value in environment.items() if name.startswith(("PYTORCH_", "CUDA_", "SIMGPU_"))]


def hashed(plan: Plan, card: Card, setting: Setting, files: Optional[Sequence[str]] = None) -> str:
    """Of the run's options, the settings of PyTorch and CUDA, and the text of the files that the command names (or of those given)."""
    command = plan.varied.command(setting, plan.command)
    options = (plan.version, card.name, plan.varied.members(setting), plan.steps, plan.look, plan.to_end, plan.world.size, plan.world.ranks,
               plan.world.node)
    words = [*command, *relevant(plan.environment), json.dumps(options)]
    return fingerprint_of([*map(os.fsencode, words), *map(text_of_file, command if files is None else files)])


def name_of(plan: Plan, card: Card, setting: Setting, fingerprint: str) -> str:
    """h100-80g.batch-4; a character that is not for names becomes "_"."""
    given = ".".join([card.name, *(f"{v.name}-{value}" for v, value in zip(plan.varied.items, setting))])
    name = re.sub(r"[^0-9A-Za-z.\-_]", "_", given.replace("=", "-"))
    if name != given.replace("=", "-") or len(name) > NAME:
        return f"{name[:NAME]}.{fingerprint[:8]}"
    return name


def new_trial(plan: Plan, card: Card, setting: Setting) -> Trial:
    with contextlib.suppress(FileNotFoundError):
        fingerprint = fingerprint_of([hashed(plan, card, setting).encode(), os.fsencode(os.getcwd())])
        return Trial(plan, card, setting, name_of(plan, card, setting, fingerprint), fingerprint)
    raise Sentence("this folder is gone", UNREADABLE)
