# SPDX-License-Identifier: Apache-2.0
"""Collecting: a process of ours makes the rows of many recordings (lake_reader.py, lake_rows.py), DuckDB takes many at a time, and puts them
into files of the lake (lake_store.py)."""
from __future__ import annotations

import contextlib
import csv
import errno
import os
from typing import BinaryIO, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .._answer import Sentence
from .lake_duckdb import LARGE, DuckError, Schema, connect, names_of, quoted
from .lake_places import Source
from .lake_reader import Reader, Tables, take
from .lake_rows import Recording, Stream, as_csv, large_query
from .lake_store import Had, Store, key_of

BATCH, MOST_BATCH = 1 << 19, 1 << 24  # bytes of rows that DuckDB has at a time: of the first recordings, and later
csv.field_size_limit(1 << 30)
EVENTS, DAMAGED, PEAK = "events", "damaged", "peak_bytes"


class Rows(NamedTuple):
    """Of a recording, or why it cannot be read."""
    nth: int
    error: Optional[str]
    tables: Dict[str, bytes]  # the small ones: CSV

    def fact(self, schema: Schema, column: str) -> Optional[str]:
        """A cell of its row of the table of recordings, None if null."""
        cells = next(csv.reader([self.tables["ranks"].decode()])) if "ranks" in self.tables else []
        return cells[1 + list(schema.tables["ranks"]).index(column)] or None if cells else None

    def worth(self, schema: Schema) -> Tuple[int, bool]:
        """What covers more of a run is worth more; of two that cover the same, the one that is whole."""
        if self.error is not None or "ranks" not in self.tables:
            return -1 if self.error is not None else 0, True
        return int(self.fact(schema, EVENTS) or 0), self.fact(schema, DAMAGED) == "false"


Batch = Sequence[Tuple[Source, Rows]]
Doing = Callable[[str], None]


class Outcome(NamedTuple):
    source: Source
    file: int  # which of the paths it is from
    peak: Optional[int]
    less: bool  # the lake has more of this process, and kept that
    error: Optional[str]


# ---- the rows


def read_rows(stream: BinaryIO, count: int, doing: Doing = lambda text: None) -> Iterator[Rows]:
    for nth in range(count):
        result = take(stream)
        if not result:
            raise Sentence("the rows of the recordings are cut: the process that reads them was ended")
        doing(f"ranks {100 * (nth + 1) / count:3.0f} %")
        yield Rows(nth, *result)


class Job:
    """What is collected, from where to where."""

    def __init__(self, schema: Schema, paths: Sequence[bytes], version: str, doing: Doing, lake: str, scratch: str, tables: Sequence[str],
                 columns: Optional[Mapping[str, Sequence[str]]] = None, compression: str = "zstd") -> None:
        self.schema, self.paths, self.lake, self.scratch, self.doing, self.version = schema, paths, lake, scratch, doing, version
        self.tables = [t for t in schema.tables if t in tables]
        self.small = [t for t in self.tables if t not in LARGE]
        self.columns = {t: [c for c in schema.tables[t] if c in (columns or {}).get(t, schema.tables[t])] for t in self.tables}
        self.reader = Reader(self.read)
        self.connection = connect()
        self.store = Store(self.connection, schema, lake, scratch, version, compression)
        self.had: Dict[str, Had] = {}

    def read(self, nth: int, index: int) -> Tables:
        """The small tables as CSV. In the reader's process."""
        recording = Recording(self.paths[index])
        rows = recording.small_tables(self.version) if self.small else {}
        for table in self.tables:
            if table in LARGE:
                self.write_large(nth, recording, table)
        return {table: as_csv(nth, {name: self.schema.tables[table][name] for name in self.columns[table]}, rows[table], recording.root)
                for table in self.small}

    def write_large(self, nth: int, recording: Recording, table: str) -> None:
        columns = {name: self.schema.tables[table][name] for name in self.columns[table]}
        connection = connect()
        try:
            connection.register("stream_", Stream(recording, table, list(columns)))
        except DuckError:
            raise Sentence(f"the table {table} needs DuckDB 1.1 or later: pip install -U duckdb") from None
        connection.execute(f"copy ({large_query(nth, columns, recording.root)}) to {quoted(f'{self.scratch}/{nth}.{table}')} "
                           "(format parquet, compression uncompressed)")
        connection.close()

    def rows_of(self, sources: Sequence[Source]) -> Iterator[Rows]:
        self.order = [nth for source in sources for nth in source.files]
        self.reader.begin(self.order, [os.path.getsize(self.paths[nth]) if os.path.isfile(self.paths[nth]) else 0 for nth in self.order])
        return read_rows(self.reader.rows, len(self.order), self.doing)


def best_of(job: Job, rows: Sequence[Rows]) -> Rows:
    """Of recordings of one process; the files of the others go."""
    best = max(rows, key=lambda r: r.worth(job.schema))  # the first of equal ones
    for other in rows:
        if other is not best:
            tidy_large(job, other.nth)
    return best


def tidy_large(job: Job, nth: int) -> None:
    for table in LARGE:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{job.scratch}/{nth}.{table}")


# ---- the lake


def cells_of(job: Job, table: str, kept: Batch) -> str:
    """The rows of a table: large ones stay in their files, so that they are never in memory as a whole."""
    kinds = {"nth_": "bigint", **{name: job.schema.tables[table][name] for name in job.columns[table]}}
    paths = [f"{job.scratch}/{rows.nth}.{table}" for _, rows in kept]
    if table in LARGE and paths:
        return f"from read_parquet({names_of(paths)}, hive_partitioning=false)"
    path = f"{job.scratch}/{table}.csv"
    with open(path, "wb") as file:
        file.writelines(rows.tables.get(table, b"") for _, rows in kept)
    names = ", ".join(f'make_timestamp("{n}") as "{n}"' if kind == "timestamp" else f'"{n}"' for n, kind in kinds.items())
    types = ", ".join(f"'{n}': '{'bigint' if kind == 'timestamp' else kind}'" for n, kind in kinds.items())
    return (f"select {names} from read_csv({quoted(path)}, auto_detect=false, header=false, delim=',', quote='\"', escape='\"', nullstr='', "
            f"new_line='\\n', max_line_size=16777216, columns={{{types}}})")


def load(job: Job, table: str, kept: Batch) -> None:
    kind = "view" if table in LARGE else "table"
    job.connection.execute(f"create or replace temp {kind} new_{table} as select p.* exclude (nth_, moved), c.* exclude nth_ "
                           f"from ({cells_of(job, table, kept)}) c join places_ p using (nth_)")


def put(job: Job, kept: Batch, less: Batch) -> None:
    """`less` are those that get no new rows, but perhaps another place."""
    places, parts = [], {}
    for source, nth in [*((s, rows.nth) for s, rows in kept), *((s, None) for s, _ in less)]:
        had = job.had.get(source.place.id)
        moved = had is not None and had.place != source.place
        if nth is not None or moved:
            places.append([nth, *source.place, source.place.day[:7], key_of(had.part) if had else None, moved])
            parts.update({had.part[:3]: had.part} if had else {})
    if not places:
        return
    job.connection.execute("create or replace temp table places_ (nth_ bigint, project varchar, day date, run varchar, rank bigint, "
                           "process varchar, month varchar, part varchar, moved boolean)")
    job.connection.executemany("insert into places_ values (?, ?, ?, ?, ?, ?, ?, ?, ?)", places)
    for table in job.tables:
        load(job, table, kept)
    job.store.put(job.tables, parts.values())


def without_odd(job: Job, batch: Batch) -> Batch:
    """Rows that the tables cannot take are those of a recording that cannot be read: it is left out, the others are collected."""
    def why(kept: Batch) -> Optional[str]:
        try:
            for table in job.small:
                job.connection.execute(f"select count(columns(*)) from ({cells_of(job, table, kept)})").fetchall()
            return None
        except DuckError as error:
            if reason_of(error) != first_line(error):  # the system's
                raise
            return f"its values do not fit the tables: {first_line(error)}"

    fine = [one for one in batch if one[1].error is None]
    if why(fine) is None:
        return batch
    return [(source, rows if rows.error is not None else rows._replace(error=why([(source, rows)]))) for source, rows in batch]


def write_batch(job: Job, batch: Batch) -> Iterator[Outcome]:
    """(source, rows) of each; yields their outcomes."""
    batch = without_odd(job, batch)
    fine = [one for one in batch if one[1].error is None]
    less = {rows.nth for source, rows in fine if (had := job.had.get(source.place.id)) and had.worth > rows.worth(job.schema)}
    put(job, [one for one in fine if one[1].nth not in less], [one for one in fine if one[1].nth in less])
    for source, rows in batch:
        tidy_large(job, rows.nth)
        kept_earlier = rows.nth in less
        peak = None if kept_earlier else rows.fact(job.schema, PEAK)
        yield Outcome(source, job.order[rows.nth], int(peak) if peak else None, kept_earlier, rows.error)


def batches(job: Job, sources: Sequence[Source]) -> Iterator[Batch]:
    batch: List[Tuple[Source, Rows]] = []
    size, most = 0, BATCH
    rows = job.rows_of(sources)
    for source in sources:
        best = best_of(job, [next(rows) for _ in source.files])
        batch.append((source, best))
        size += sum(map(len, best.tables.values()))
        if size > most:
            yield batch
            batch, size, most = [], 0, min(2 * most, MOST_BATCH)
    yield batch


def reason_of(error: Exception) -> str:
    """DuckDB wraps what the system says in much else."""
    said = str(error)
    of_system = (os.strerror(n) for n in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EIO))
    return next((reason for reason in of_system if reason in said), first_line(error))


def first_line(error: Exception) -> str:
    return str(error).split("\n")[0]


def collect(job: Job, sources: Sequence[Source]) -> Iterator[Outcome]:
    """Yields an outcome for each source, in order."""
    try:
        for batch in batches(job, sources):
            yield from write_batch(job, batch)
    except (DuckError, OSError) as error:
        raise Sentence(f"{job.lake} cannot be written: {reason_of(error)}") from None
    finally:
        job.reader.end()
