# SPDX-License-Identifier: Apache-2.0
"""The files of a lake: TABLE/month=2026-11/FIRST-LAST-VERSION-TOKEN.parquet, and .new for what is not finished, where no reader looks.

Each commit of a month has a number. A file holds the commits FIRST to LAST, and stands in for every file of its folder that holds only some
of these, or the same in an earlier version: one rename replaces many files, whenever a writer is killed. A commit counts as soon as the table
of recordings, which is written last, has it. Files never change: a reader that misses one looks again.

One writer at a time, from the first look at the contents to the last new name: else two could give the ranks of one run two names, or
one recording two places. The lock ends with the process, however that ends. Readers never take it."""
from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import os
import re
import shutil
import time
from typing import Callable, Iterable, Iterator, List, NamedTuple, Optional, Sequence, TypeVar

from .._answer import Sentence

TRIES = 100  # another writer may remove the lock file when it ends
NAME = re.compile(r"month=(\d+-\d\d)/(\d{8})-(\d{8})-(\d{4})-[0-9a-f]+\.parquet$")
OLD = "project=*/day=*/run=*/rank=*/*.parquet"  # of earlier versions: a file for each recording
NEW = "month=[0-9]*/*.parquet"
SCHEMA_FILE = "month=0000-00/schema.parquet"  # no rows, all columns: for engines that take these from the first file

Said = Callable[[str], None]
T = TypeVar("T")


class Part(NamedTuple):
    month: str
    first: int
    last: int
    version: int
    path: str

    def meets(self, other: Part) -> bool:
        return self.month == other.month and self.first <= other.last and other.first <= self.last

    def replaces(self, other: Part) -> bool:
        covers = self.month == other.month and self.first <= other.first and other.last <= self.last
        return covers and self[1:4] != other[1:4]


def parts_of(paths: Iterable[str]) -> List[Part]:
    """Those of our names; the wider and later one first."""
    matches = [(NAME.search(path), path) for path in paths]
    parts = [Part(m[1], int(m[2]), int(m[3]), int(m[4]), path) for m, path in matches if m]
    return sorted(parts, key=lambda p: (p.month, p.first, -p.last, -p.version, p.path))


def current(paths: Iterable[str], ranks: Optional[Sequence[Part]] = None) -> List[Part]:
    """The files that count, by the names of a table's files and the files of the table of recordings that count."""
    kept: List[Part] = []
    for part in parts_of(paths):
        if not kept or not kept[-1].replaces(part):
            kept.append(part)
    if ranks is None:
        return kept
    return [p for p in kept if any(r.month == p.month and r.first <= p.last <= r.last for r in ranks)]


def names_in(lake: str, table: str, pattern: str = NEW) -> List[str]:
    return glob.glob(f"{glob.escape(lake)}/{table}/{pattern}")


def again(do: Callable[[], T], path: str) -> T:
    """Makes the folders of the path, and does it; again if somebody removed them meanwhile."""
    for _ in range(TRIES):
        with contextlib.suppress(FileNotFoundError, FileExistsError):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            return do()
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return do()


def give_name(source: str, path: str) -> None:
    again(lambda: os.rename(source, path), path)


def remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def sweep(lake: str, tables: Iterable[str]) -> None:
    """Removes files that do not count: replaced ones, and those of a commit that never came to its end."""
    ranks = current(names_in(lake, "ranks"))
    for table in tables:
        names = names_in(lake, table)
        counted = set(current(names, ranks))
        for part in parts_of(names):
            if part not in counted:
                remove(part.path)


# ---- the lock


def is_there(fd: int, path: str) -> bool:
    """Whether the locked file still has the name: its last owner may have removed it meanwhile."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except OSError:
        return False


def wait_for_lock(fd: int, lake: str, note: Said) -> bool:
    """Without support for locks in the file system (False), this writer goes on as if it were the only one."""
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            return False
        note(f"{lake}: another collect is writing there; this one waits for it")
        fcntl.lockf(fd, fcntl.LOCK_EX)
    return True


def open_lock(path: str) -> int:
    return again(lambda: os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666), path)


def lock(lake: str, note: Said) -> int:
    path = f"{lake}/.new/lock"
    for _ in range(TRIES):
        fd = open_lock(path)
        try:
            alone = wait_for_lock(fd, lake, note)
        except BaseException:
            os.close(fd)
            raise
        if is_there(fd, path):
            if alone:
                remove_unfinished(lake)
            return fd
        os.close(fd)
    raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))


def remove_unfinished(lake: str) -> None:
    """Of killed writers: nobody else has the lock."""
    for name in os.listdir(f"{lake}/.new"):
        if name != "lock":
            shutil.rmtree(f"{lake}/.new/{name}", ignore_errors=True)


@contextlib.contextmanager
def writing(lake: str, note: Said) -> Iterator[str]:
    """The lock, and a folder for what is not finished. A lake that got nothing goes again."""
    made = not os.path.exists(lake)
    try:
        fd = lock(lake, note)
    except OSError as error:
        raise Sentence(f"{lake}: nothing can be written there: {error.strerror}") from None
    # Processes of different hosts may have the same number.
    scratch = f"{lake}/.new/{os.getpid()}-{time.time_ns():x}"
    try:
        os.mkdir(scratch)
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.unlink(f"{lake}/.new/lock")
            os.rmdir(f"{lake}/.new")
            if made:
                os.rmdir(lake)
        os.close(fd)
