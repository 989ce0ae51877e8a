# SPDX-License-Identifier: Apache-2.0
"""Collecting: the tool gives the rows of many recordings (viewer/lake/lake_work.h), DuckDB writes a Parquet file of each recording and
table, many at a time, and these get their names when they are complete."""
from __future__ import annotations

import contextlib
import csv
import errno
import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, Collection, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .lake_answer import Sentence, terminal
from .lake_duckdb import LARGE, DuckError, Schema, connect, quoted
from .lake_folders import Place, give_name, move, tidy
from .lake_places import Source

SCHEMA = "1"  # of the files: older readers ignore files with a higher one
BATCH = 1 << 19  # bytes of rows that DuckDB has at a time
AT_ONCE = 4  # recordings
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


class Outcome(NamedTuple):
    source: Source
    file: int  # which of the paths it is from
    peak: Optional[int]
    less: bool  # the lake has more of this process, and kept that
    error: Optional[str]


# ---- the tool


def read_whole(part: bytes, size: Optional[int] = None) -> bytes:
    """A line, or so many bytes."""
    if not part.endswith(b"\n") if size is None else len(part) < size:
        raise Sentence("the rows of the recordings are cut: the process that reads them was ended")
    return part


def read_rows(stream: BinaryIO, count: int) -> Iterator[Rows]:
    for nth in range(count):
        head = json.loads(read_whole(stream.readline()))
        left: int = head.get("bytes", 0)
        tables: Dict[str, bytes] = {}
        while left > 0:
            line = read_whole(stream.readline())
            name, size = line.decode().split()
            tables[name] = read_whole(stream.read(int(size)), int(size))
            left -= len(line) + int(size)
        yield Rows(nth, head.get("error"), tables)


def bits(names: Iterable[str], chosen: Collection[str]) -> int:
    return sum(1 << nth for nth, name in enumerate(names) if name in chosen)


class Job:
    """What is collected, from where to where."""

    def __init__(self, tool: str, schema: Schema, paths: Sequence[bytes], lake: str, scratch: str, tables: Sequence[str],
                 columns: Optional[Mapping[str, Sequence[str]]] = None, compression: str = "zstd", version: str = "") -> None:
        self.tool, self.schema, self.paths, self.lake, self.scratch = tool, schema, paths, lake, scratch
        self.tables = [t for t in schema.tables if t in tables]
        self.small = [t for t in self.tables if t not in LARGE]
        self.columns = {t: [c for c in schema.tables[t] if c in (columns or {}).get(t, schema.tables[t])] for t in self.tables}
        self.compression, self.facts = compression, {"schema": SCHEMA, "version": version}
        self.connection = connect()
        if self.small == self.tables:
            self.connection.execute("set threads = 1")  # of a query: several recordings are written at a time

    def start(self, sources: Sequence[Source]) -> Any:
        self.order = [nth for source in sources for nth in source.files]
        masks = [bits(self.schema.tables[t], self.columns.get(t, ())) for t in LARGE]
        words = [self.tool, "--lake-rows", self.scratch, str(bits(self.schema.tables, self.tables)), *map(str, masks)]
        process: Any = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=terminal())
        with process.stdin as stdin:
            stdin.write(b"".join(self.paths[nth] + b"\0" for nth in self.order))
        return process


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


def worths_of(connection: Any, lake: str, places: Iterable[Place]) -> Dict[str, Tuple[int, bool]]:
    """Of recordings in the lake, by id; without those of a version that did not store it."""
    found = {}
    for place in places:
        path = place.path(lake, "ranks")
        try:
            row = connection.execute(f"select events, damaged from read_parquet({quoted(path)}, hive_partitioning=false)").fetchone()
        except DuckError:
            continue
        if row and None not in row:
            found[place.id] = (row[0], not row[1])
    return found


def cells_of(job: Job, table: str) -> Tuple[str, str]:
    """The rows of a table in a file of CSV are these columns."""
    kinds = {"nth_": "bigint", **{name: job.schema.tables[table][name] for name in job.columns[table]}}
    names = [f'make_timestamp("{n}") as "{n}"' if kind == "timestamp" else f'"{n}"' for n, kind in kinds.items()]
    types = ", ".join(f"'{n}': '{'bigint' if kind == 'timestamp' else kind}'" for n, kind in kinds.items())
    return (", ".join(names), f"auto_detect=false, header=false, delim=',', quote='\"', escape='\"', nullstr='', new_line='\\n', "
            f"max_line_size=16777216, columns={{{types}}}")


def load_small(job: Job, kept: Sequence[Rows]) -> None:
    """Makes a table of DuckDB of the rows of many recordings."""
    for table in job.small:
        path, (names, form) = f"{job.scratch}/{table}.csv", cells_of(job, table)
        with open(path, "wb") as file:
            file.writelines(rows.tables.get(table, b"") for rows in kept)
        job.connection.execute(f'create or replace table "{table}" as select {names} from read_csv({quoted(path)}, {form})')
        os.unlink(path)


def form_of(job: Job, table: str, rows: Rows) -> str:
    """Earlier versions take from the file's facts what it is worth."""
    facts = dict(job.facts)
    if table == "ranks":
        events, whole = rows.worth(job.schema)
        facts.update(events=str(events), damaged="0" if whole else "1")
    listed = ", ".join(f"'gpumemtrace.{key}': '{value}'" for key, value in facts.items())
    return f"format parquet, use_tmp_file false, compression {job.compression}, kv_metadata {{{listed}}}"


def copy(connection: Any, job: Job, table: str, rows: Rows) -> Optional[str]:
    """Writes a Parquet file and returns its name, None if the recording has no rows of this table."""
    path = f"{job.scratch}/{rows.nth}.{table}"
    if table in LARGE:
        names, form = cells_of(job, table)
        some, of = os.path.getsize(path) > 0, f"(select {names} from read_csv({quoted(path)}, {form}))"
    else:
        some, of = table in rows.tables, f'"{table}" where nth_ = {rows.nth}'
    if some:
        connection.execute(f"copy (select * exclude nth_ from {of}) to {quoted(path + '.parquet')} ({form_of(job, table, rows)})")
    if table in LARGE:
        os.unlink(path)
    return f"{path}.parquet" if some else None


def put(job: Job, source: Source, rows: Rows) -> None:
    """The table of recordings is put last, so that everything it refers to exists. A table without rows gets no file, and an older
    file is removed."""
    with job.connection.cursor() as connection:
        for table in reversed(job.tables):
            made, path = copy(connection, job, table, rows), source.place.path(job.lake, table)
            if made:
                give_name(made, path)
            elif os.path.exists(path):
                tidy(path)
    move(job.lake, job.schema.tables, source.old, source.place)


def write_all(job: Job, kept: Batch) -> None:
    """Small tables of several recordings at a time, as DuckDB does most of the work without Python's lock."""
    load_small(job, [rows for _, rows in kept])
    if job.small != job.tables:
        for one in kept:
            put(job, *one)
        return
    with ThreadPoolExecutor(min(AT_ONCE, os.cpu_count() or 1)) as pool:
        started = [pool.submit(put, job, *one) for one in kept]
        try:
            for future in started:
                future.result()
        except BaseException:
            for future in started:
                future.cancel()
            raise


def write_batch(job: Job, batch: Batch) -> Iterator[Outcome]:
    """(source, rows) of each; yields their outcomes."""
    fine = [(source, rows) for source, rows in batch if rows.error is None]
    known = worths_of(job.connection, job.lake, [source.old for source, _ in fine if source.old])
    less = {source.place.id for source, rows in fine if source.place.id in known and known[source.place.id] > rows.worth(job.schema)}
    write_all(job, [one for one in fine if one[0].place.id not in less])
    for source, rows in batch:
        if source.place.id in less:
            move(job.lake, job.schema.tables, source.old, source.place)
            tidy_large(job, rows.nth)
        peak = None if source.place.id in less else rows.fact(job.schema, PEAK)
        yield Outcome(source, job.order[rows.nth], int(peak) if peak else None, source.place.id in less, rows.error)


def batches(job: Job, sources: Sequence[Source], stream: BinaryIO) -> Iterator[Batch]:
    batch: List[Tuple[Source, Rows]] = []
    size = 0
    rows = read_rows(stream, sum(len(source.files) for source in sources))
    for source in sources:
        best = best_of(job, [next(rows) for _ in source.files])
        batch.append((source, best))
        size += sum(map(len, best.tables.values()))
        if size > BATCH:
            yield batch
            batch, size = [], 0
    yield batch


def reason_of(error: Exception) -> str:
    """DuckDB wraps what the system says in much else."""
    said = str(error)
    of_system = (os.strerror(n) for n in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EIO))
    return next((reason for reason in of_system if reason in said), said.split("\n")[0])


def collect(job: Job, sources: Sequence[Source]) -> Iterator[Outcome]:
    """Yields an outcome for each source, in order."""
    process = job.start(sources)
    try:
        for batch in batches(job, sources, process.stdout):
            yield from write_batch(job, batch)
    except (DuckError, OSError) as error:
        raise Sentence(f"{job.lake} cannot be written: {reason_of(error)}") from None
    finally:
        process.terminate()
        process.stdout.close()
        process.wait()
