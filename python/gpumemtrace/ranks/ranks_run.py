# SPDX-License-Identifier: Apache-2.0
"""The recordings of a run, as the command found them (viewer/ranks/ranks_find.c), and the names of the files that one is written for."""
from __future__ import annotations

import os
from typing import Any, Callable, Dict, Iterable, List, Mapping, Tuple

from .ranks_words import base


class File:
    """rank: -1 if it is not known. of: the path that was given for it, shortened, if there are several runs. shell: its path as a shell reads
    it."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.path: str = facts["path"]
        self.rank, self.process = int(facts["rank"]), int(facts["process"])
        self.name: str = facts["name"]
        self.host: str = facts["host"]
        self.command: str = facts["command"]
        self.shell: str = facts["shell"]
        self.of: str = facts["of"]
        self.of_folder, self.part, self.alone = bool(facts["of_folder"]), bool(facts["part"]), bool(facts["alone"])

    def who(self) -> Dict[str, Any]:
        """For JSON: the rank; without one, the process."""
        return {"rank": self.rank} if self.rank >= 0 else {"process": self.process} if self.process else {}

    def title(self) -> str:
        return self.name or base(self.path)


class Run:
    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.files = [File(f) for f in facts["files"]]
        self.world, self.runs = int(facts["world"]), int(facts["runs"])
        self.left: List[str] = facts["left"]  # names of other files
        self.note: str = facts["note"]
        self.differ = bool(facts["differ"])

    def is_named(self) -> bool:
        """No recording says which rank it is of."""
        return self.files[0].rank < 0

    def hosts(self) -> List[str]:
        return list(dict.fromkeys(f.host for f in self.files if f.host))

    def missing(self) -> List[int]:
        """Ranks without a recording, if the number of ranks is known."""
        if self.is_named() or self.runs > 1:
            return []
        there = {f.rank for f in self.files}
        return [rank for rank in range(self.world) if rank not in there]

    def words(self, of: Iterable[int], room: int) -> str:
        """"0-3, 7" for these items; for several runs "0-3 of old, 0 of new"."""
        return listed((self.range_words(self.files[a], self.files[b]) for a, b in ranges(of, self.follows)), room)

    def follows(self, i: int, k: int) -> bool:
        a, b = self.files[i], self.files[k]
        return k == i + 1 and a.rank >= 0 and b.of == a.of and b.rank == a.rank + 1

    @staticmethod
    def range_words(a: File, b: File) -> str:
        if a.of and not a.of_folder:
            return a.of
        name = base(a.path) if a.rank < 0 else str(a.rank) if a is b else f"{a.rank}-{b.rank}"
        return f"{name} of {a.of}" if a.of else name


def ranges(numbers: Iterable[int], follows: Callable[[int, int], bool] = lambda a, b: b == a + 1) -> List[Tuple[int, int]]:
    """The first and the last of each range."""
    found: List[Tuple[int, int]] = []
    for n in numbers:
        if found and follows(found[-1][1], n):
            found[-1] = (found[-1][0], n)
        else:
            found.append((n, n))
    return found


def listed(parts: Iterable[str], room: int) -> str:
    text = ""
    for part in parts:
        if len(os.fsencode(text)) + len(os.fsencode(part)) + 8 > room:
            return f"{text}, .."
        text += f", {part}" if text else part
    return text


def numbers_words(numbers: List[int], room: int) -> str:
    return listed((str(a) if a == b else f"{a}-{b}" for a, b in ranges(numbers)), room)


# ---- the names of files that are written for each recording: no two are alike, so that none is written over ----


def without_ending(name: str) -> str:
    """"run.4711.gmt" and "run.4711.gmt.live" -> "run.4711"; "x.pickle" -> "x"."""
    name = name[:-5] if name.endswith(".live") and len(name) > 5 else name
    dot = name.rfind(".")
    return name[:dot] if dot > 0 else name


def last_folders(path: str, count: int) -> List[str]:
    """The last of the folders in its path; fewer if it has fewer."""
    kept: List[str] = []
    for part in reversed(path.split("/")[:-1]):
        if len(kept) == count or (part.startswith(".")):
            break
        if part:
            kept.insert(0, part)
    return kept


def file_name(f: File, folders: int) -> str:
    own = f"rank-{f.rank}" if f.rank >= 0 else without_ending(base(f.path))
    return "-".join([*last_folders(f.path, folders), own])


def output_names(files: List[File], folder: str, ending: str) -> List[str]:
    """"out/rank-3.csv"; of a recording that says no rank its own name, "out/run.csv", and with the folders that it lies in where several would be
    alike: "out/node1-run.csv"; a number where that does not help, for instance for a file that was given twice."""
    names, folders, wider = [file_name(f, 0) for f in files], [0] * len(files), True
    while wider:
        twice = [i for i, name in enumerate(names) if names.count(name) > 1]
        before = list(names)
        for i in twice:
            folders[i] += 1
            names[i] = file_name(files[i], folders[i])
        wider = names != before
    for i, name in enumerate(names):
        number = 2
        while i and names.count(names[i]) > 1:
            names[i], number = f"{name}-{number}", number + 1
    folder = folder[:-1] if len(folder) > 1 and folder.endswith("/") else folder
    return [f"{folder}/{name}.{ending}" for name in names]
