# SPDX-License-Identifier: Apache-2.0
"""Where each recording stands in a lake. It is identified by its process: collected again it keeps its place, and the ranks of a run stay
together, those of one call and those that the lake has from an earlier one (each node may collect its own)."""
from __future__ import annotations

import datetime
import itertools
import re
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence

LONGEST_START = 600 * 10**9  # ns between the starts of two ranks of a run


File = Mapping[str, Any]  # what the command says of a recording (viewer/commands/lake_files.c)


class Place(NamedTuple):
    """Of a recording's rows: the columns that all of them have."""
    project: str
    day: str
    run: str
    rank: int
    id: str  # its process


class Known:
    """The recordings of a lake, by process and by the last part of their run's name."""

    def __init__(self, places: Iterable[Place] = ()) -> None:
        self.by_id = {place.id: place for place in places}
        self.by_sign: Dict[str, List[Place]] = {}
        for place in self.by_id.values():
            self.by_sign.setdefault(place.run[-9:], []).append(place)


class Source(NamedTuple):
    """A process, its place in the lake now and, if it has one, before, and its recordings (indexes of files): the one that covers most is taken."""
    place: Place
    old: Optional[Place]
    files: List[int]


def tame(name: str, otherwise: str) -> str:
    """Other bytes become "_"."""
    name = re.sub(rb"[^A-Za-z0-9._-]", b"_", name.encode("utf-8", "surrogateescape"))[:100].decode()
    return ("_" + name[1:] if name[:1] == "." else name) or otherwise


def id_of(file: File) -> str:
    """Containers reuse process ids, but not ranks. A snapshot has no process: its contents tell it from others."""
    if not file["pid"]:
        return f"snapshot-{file['contents']}"
    return f"{tame(file['host'], 'host')[:60]}-{file['pid']}-{file['start_ns'] & (1 << 64) - 1:x}-{max(file['rank'], 0)}"


def sign_of(first: File) -> str:
    """The last part of a run's name: a hash of everything that its ranks have in common."""
    hashed = 2166136261
    for byte in (first["job"] + (first["host"] if first["job_is_local"] else "")).encode("utf-8", "surrogateescape"):
        hashed = (hashed ^ byte) * 16777619 & 0xffffffff
    return f"-{hashed:08x}"


def start_of(place: Place) -> int:
    """A recording's name ends with its start and its rank."""
    parts = place.id.split("-")
    return int(parts[-2], 16) if len(parts) > 2 and re.fullmatch("[0-9a-f]+", parts[-2]) else -LONGEST_START


def known_run(known: Known, files: Sequence[File], sign: str) -> Optional[Place]:
    """A recording of this run that the lake has: of the same job, begun about the same time, other ranks."""
    same_job = known.by_sign.get(sign, ())
    near = [(abs(files[0]["start_ns"] - start_of(p)), p) for p in same_job]
    near = [(away, p) for away, p in near if away < LONGEST_START]
    taken = {(p.project, p.run, p.rank) for p in same_job} if near else ()
    near = [(away, p) for away, p in near if not any((p.project, p.run, f["rank"]) in taken for f in files)]
    return min(near, key=lambda n: n[0])[1] if near else None


def name_run(first: File, sign: str, project: str) -> Place:
    """By its first rank; the job's hash lets ranks that are collected later find it."""
    when = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=first["started_ns"] // 10**9)
    process = f"{tame(first['host'], 'host')[:60]}-{first['pid']}{sign}" if first["pid"] else id_of(first)
    return Place(tame(project or first["folder"], "unknown"), f"{when:%Y-%m-%d}", f"{when:%Y%m%d-%H%M%S}-{process}", 0, "")


def place_run(files: Sequence[File], known: Known, project: str) -> Place:
    """A run keeps the name that it has in the lake, and its project if none was given."""
    sign = "" if files[0]["alone"] else sign_of(files[0])
    old: Optional[Place] = next((known.by_id[id_of(f)] for f in files if id_of(f) in known.by_id), None)
    if not old and sign:
        old = known_run(known, files, sign)
    run = name_run(files[0], sign, project)
    return run._replace(project=project or old.project, day=old.day, run=old.run) if old else run


def place_all(files: Sequence[File], known: Known, project: str) -> List[Source]:
    """The sources of these files, which the command has grouped by run."""
    sources: Dict[str, Source] = {}
    for _, ranks in itertools.groupby(enumerate(files), key=lambda pair: pair[1]["run"]):
        group = list(ranks)
        run = place_run([f for _, f in group], known, project)
        for nth, file in group:
            place = run._replace(rank=max(file["rank"], 0), id=id_of(file))
            if place.id in sources:
                sources[place.id].files.append(nth)
            else:
                sources[place.id] = Source(place, known.by_id.get(place.id), [nth])
    return list(sources.values())
