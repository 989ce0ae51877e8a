# SPDX-License-Identifier: Apache-2.0
"""The folders of a lake: table/project=/day=/run=/rank=/RECORDING.parquet, and .new for what is not finished, where no reader looks.

One writer at a time, from the first look at what there is to the last new name: else two could give the ranks of one run two names, or
one recording two places. The lock ends with the process, however that ends. Readers never take it."""
from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import time
from typing import Callable, Dict, Iterable, Iterator, NamedTuple, Optional, Tuple, TypeVar

from .lake_answer import Sentence

PARTS = ("project", "day", "run", "rank")
TRIES = 100  # another writer may remove an empty folder that was just made, or the lock file when it ends


Said = Callable[[str], None]
T = TypeVar("T")


class Place(NamedTuple):
    """Of a recording's rows."""
    project: str
    day: str
    run: str
    rank: int
    id: str  # the name of its files

    def path(self, lake: str, table: str) -> str:
        return f"{lake}/{table}/project={self.project}/day={self.day}/run={self.run}/rank={self.rank}/{self.id}.parquet"


def walk(folder: str, parts: Tuple[str, ...] = ()) -> Iterator[Place]:
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        if len(parts) < len(PARTS):
            key, _, value = name.partition("=")
            if key == PARTS[len(parts)]:
                yield from walk(f"{folder}/{name}", (*parts, value))
        elif name.endswith(".parquet") and name[0] != "." and parts[3].lstrip("-").isdigit():
            yield Place(parts[0], parts[1], parts[2], int(parts[3]), name[:-len(".parquet")])


def recordings_of(lake: str) -> Dict[str, Place]:
    """What the lake has, by id: read from the names of its files alone."""
    return {place.id: place for place in sorted(walk(f"{lake}/ranks"), key=lambda p: p.id)}


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


def tidy(path: str) -> None:
    """Removes a file, and its folders if they are empty then."""
    with contextlib.suppress(OSError):
        os.unlink(path)
    with contextlib.suppress(OSError):
        for _ in PARTS:
            path = os.path.dirname(path)
            os.rmdir(path)


def move(lake: str, tables: Iterable[str], old: Optional[Place], new: Place) -> None:
    """Files in the old place: rewritten ones are removed, the others move along."""
    if old is None or old == new:
        return
    for table in tables:
        source, path = old.path(lake, table), new.path(lake, table)
        if not os.path.exists(source):
            continue
        if not os.path.exists(path):
            give_name(source, path)
        tidy(source)


def is_there(fd: int, path: str) -> bool:
    """Whether the locked file still has the name: its last owner may have removed it meanwhile."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except OSError:
        return False


def wait_for_lock(fd: int, lake: str, note: Said) -> None:
    """Without support for locks in the file system, this writer goes on as if it were the only one."""
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            return
        note(f"{lake}: another collect is writing there; this one waits for it")
        fcntl.lockf(fd, fcntl.LOCK_EX)


def open_lock(path: str) -> int:
    return again(lambda: os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666), path)


def lock(lake: str, note: Said) -> int:
    path = f"{lake}/.new/lock"
    for _ in range(TRIES):
        fd = open_lock(path)
        try:
            wait_for_lock(fd, lake, note)
        except BaseException:
            os.close(fd)
            raise
        if is_there(fd, path):
            return fd
        os.close(fd)
    raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))


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
