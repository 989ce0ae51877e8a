# SPDX-License-Identifier: Apache-2.0
"""What stands in a lake, and how rows come into its files. New recordings of a month get a file of their own; rows of a recording that the
lake has go where its earlier rows are. Compacting makes one file of many, and takes over what earlier versions wrote."""
from __future__ import annotations

import os
import time
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from .lake_duckdb import LARGE, Schema, names_of, old_rows, quoted
from .lake_folders import NEW, OLD, SCHEMA_FILE, Part, current, give_name, names_in, remove, sweep
from .lake_places import Place

KEPT = 12  # files of a month that collect leaves as they are
WIDER = 4  # collect puts newer files together until the next one is so many times as large
ROW = "project, day, run, rank, process"  # columns of every table's files


class Had(NamedTuple):
    """A recording of the lake: the file of its row, and what it is worth (the readable events, undamaged)."""
    place: Place
    part: Part
    worth: Tuple[int, bool]


def key_of(part: Part) -> str:
    return f"{part.month}-{part.first}"


def read(parts: Sequence[Part]) -> str:
    return f"read_parquet({names_of([p.path for p in parts])}, union_by_name=true, hive_partitioning=false)"


class Store:
    def __init__(self, connection: Any, schema: Schema, lake: str, scratch: str, version: str, compression: str) -> None:
        self.connection, self.schema, self.lake, self.scratch = connection, schema, lake, scratch
        self.form = f"format parquet, compression {compression}, kv_metadata {{'gpumemtrace.schema': '2', 'gpumemtrace.version': {quoted(version)}}}"
        self.ranks: List[Part] = []
        self.made = 0

    def parts(self, table: str, month: Optional[str] = None) -> List[Part]:
        """Those that count; months are folders."""
        names = names_in(self.lake, table, NEW if month is None else f"month={month}/*.parquet")
        return current(names, None if table == "ranks" else self.ranks)

    def begin(self) -> Dict[str, Had]:
        """Under the lock: removes what killed writers left, takes over what earlier versions wrote, and says what there is."""
        sweep(self.lake, self.schema.tables)
        self.ranks = self.parts("ranks")
        self.adopt()
        by_name = {p.path: p for p in self.ranks}
        if not by_name:
            return {}
        rows = self.connection.execute(
            f"select project, cast(day as varchar), run, rank, process, filename, events, damaged from read_parquet({names_of(list(by_name))}, "
            "union_by_name=true, hive_partitioning=false, filename=true)").fetchall()
        return {r[4]: Had(Place(*r[:5]), by_name[r[5]], (r[6] or 0, not r[7])) for r in rows}

    # ---- writing

    def write(self, table: str, query: str, name: Tuple[str, int, int, int]) -> Part:
        """A file of these rows. It gets its name when it is complete."""
        self.made += 1
        month, first, last, version = name
        scratch = f"{self.scratch}/{table}-{self.made}.parquet"
        token = f"{time.time_ns():x}{os.getpid():x}"
        path = f"{self.lake}/{table}/month={month}/{first:08}-{last:08}-{version:04}-{token}.parquet"
        self.connection.execute(f"copy ({query}{'' if table in LARGE else ' order by project, run, rank'}) to {quoted(scratch)} ({self.form})")
        give_name(scratch, path)
        return Part(*name, path)

    def next_number(self, month: str) -> int:
        return 1 + max((p.last for table in self.schema.tables for p in self.parts(table, month)), default=0)

    def put(self, tables: Sequence[str], had: Iterable[Part]) -> None:
        """Recordings stand in the table places_: new ones without the file (`part`) that has them, and those without rows (`nth_`) get
        another place only. The rows are in tables new_NAME. The table of recordings is written last: then all of a commit counts."""
        months = [m for (m,) in self.connection.execute("select distinct month from places_ where part is null order by 1").fetchall()]
        numbers = {month: self.next_number(month) for month in months}
        again = {key_of(part): part for part in had}
        for table in [*(t for t in self.schema.tables if t not in tables), *reversed(tables)]:
            for part in again.values():
                self.rewrite(table, part, table in tables)
            for month, number in numbers.items() if table in tables else ():
                rows = f"select * exclude (part, month) from new_{table} where part is null and month = '{month}'"
                if self.some(rows):
                    self.write(table, rows, (month, number, number, 0))
        self.ranks = self.parts("ranks")
        self.write_schemas()

    def some(self, rows: str) -> bool:
        return bool(self.connection.execute(f"select 1 from ({rows}) limit 1").fetchone())

    def rewrite(self, table: str, part: Part, fresh: bool) -> None:
        """The rows of recordings of a file of the table of recordings, wherever this table has them."""
        old = [p for p in self.parts(table, part.month) if p.meets(part)]
        key = quoted(key_of(part))
        rows = [f"select {ROW}, * exclude (part, month, {ROW}) from new_{table} where part = {key}"] if fresh else []
        if not (rows and self.some(rows[0])) and not self.some_of(old, key, fresh):
            return
        if old:
            place = ", ".join(f"coalesce(p.{c}, f.{c}) as {c}" for c in ("project", "run", "rank"))
            kept = f"select f.* replace ({place}) from {read(old)} f left join places_ p on f.process = p.process and p.part = {key}"
            rows = [f"{kept} where p.process is null or p.nth_ is null" if fresh else kept, *rows]
        both = [*old, part]
        first, last = min(p.first for p in both), max(p.last for p in both)
        version = 1 + max((p.version for p in old if (p.first, p.last) == (first, last)), default=-1)
        self.write(table, f"select * from ({' union all by name '.join(rows)})", (part.month, first, last, version))
        for p in old:
            remove(p.path)

    def some_of(self, parts: Sequence[Part], key: str, fresh: bool) -> bool:
        """Whether these files have rows that get others, or another place."""
        other = f"select process from places_ where part = {key}{'' if fresh else ' and moved'}"
        return bool(parts) and self.some(f"select 1 from {read(parts)} where process in ({other})")

    def write_schemas(self) -> None:
        for table in self.schema.tables:
            path = f"{self.lake}/{table}/{SCHEMA_FILE}"
            if os.path.isdir(f"{self.lake}/{table}") and not self.has_all(table, path):
                known = f" union all by name select * from read_parquet({quoted(path)}, hive_partitioning=false)" if os.path.exists(path) else ""
                scratch = f"{self.scratch}/schema"
                self.connection.execute(f"copy ({self.schema.empty(table, month=False)}{known}) to {quoted(scratch)} ({self.form})")
                give_name(scratch, path)

    def has_all(self, table: str, path: str) -> bool:
        if not os.path.exists(path):
            return False
        rows = self.connection.execute(f"describe select * from read_parquet({quoted(path)}, hive_partitioning=false)").fetchall()
        return {r[0] for r in rows} >= set(self.schema.columns(table, month=False))

    # ---- compacting

    def adopt(self) -> None:
        """Takes over the files of earlier versions. Of a recording that the lake has anew, the new rows stay."""
        if not any(os.path.isdir(f"{self.lake}/{table}") and any(n.startswith("project=") for n in os.listdir(f"{self.lake}/{table}"))
                   for table in self.schema.tables):
            return
        old = {table: names for table in self.schema.tables if (names := names_in(self.lake, table, OLD))}
        for table in old:
            rows = old_rows(self.schema, table, old[table], [p.path for p in self.ranks])
            self.connection.execute(f"create temp {'view' if table in LARGE else 'table'} old_{table} as {rows}")
        months = self.connection.execute("select distinct month from old_ranks order by 1").fetchall() if "ranks" in old else []
        for (month,) in months:
            number = self.next_number(month)
            for table in reversed(list(old)):
                rows = f"select * exclude month from old_{table} where month = '{month}'"
                if self.some(rows):
                    self.write(table, rows, (month, number, number, 0))
            self.ranks = self.parts("ranks")
        for table in self.schema.tables:
            for nth, name in enumerate(names_in(self.lake, table, "project=*")):
                os.rename(name, f"{self.scratch}/{table}-old-{nth}")  # at once, for readers
        for table in old:
            self.connection.execute(f"drop {'view' if table in LARGE else 'table'} old_{table}")
        self.write_schemas()

    def count(self) -> int:
        return sum(len(names_in(self.lake, table, pattern)) for table in self.schema.tables for pattern in (NEW, OLD)) - sum(
            len(names_in(self.lake, table, SCHEMA_FILE)) for table in self.schema.tables)

    def compact(self, all_of_them: bool) -> None:
        """Without `all_of_them` only where many files have come together, and the larger ones stay."""
        for table in self.schema.tables:
            months: Dict[str, List[Part]] = {}
            for part in self.parts(table):
                months.setdefault(part.month, []).append(part)
            for month, parts in months.items():
                chosen = parts if all_of_them else newest(parts)
                if len(chosen) > 1:
                    self.write(table, f"select * from {read(chosen)}", (month, chosen[0].first, max(p.last for p in chosen), 0))
                    for part in chosen:
                        remove(part.path)
            self.ranks = self.parts("ranks")
        self.write_schemas()


def newest(parts: Sequence[Part]) -> Sequence[Part]:
    """The newest ones that are small together."""
    if len(parts) <= KEPT:
        return ()
    sizes = [os.path.getsize(p.path) for p in parts]
    first, size = len(parts) - 1, sizes[-1]
    while first > 0 and sizes[first - 1] <= WIDER * size:
        first -= 1
        size += sizes[first]
    return parts[first:]
