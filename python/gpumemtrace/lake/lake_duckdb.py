# SPDX-License-Identifier: Apache-2.0
"""A lake in DuckDB: its tables as views over the files, the ready questions, and queries over them."""
from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import subprocess
import sys
import time
from typing import Any, Callable, Dict, Iterator, List, Sequence, Set, Tuple, TypeVar

from .._answer import Answer
from .lake_folders import NEW, OLD, NAME, SCHEMA_FILE, current, names_in
from .lake_table import Columns, Form

try:
    duckdb: Any = importlib.import_module("duckdb")
except ImportError:
    sys.exit(96)  # the command looks for another Python
DuckError: Any = duckdb.Error
T = TypeVar("T")

ROWS = 2000  # of a panel; the others are counted
READ_AHEAD: Dict[str, Dict[str, int]] = {"s3": {"default_block_size": 1 << 17}}  # bytes: by itself s3fs reads 50 MB behind each column
TRIES = 5  # of a query, while files are compacted
LARGE = ("allocations", "events")
PLAIN = ("BIGINT", "INTEGER", "VARCHAR", "BOOLEAN")  # types whose values are written as they are

RECORDING = "left join (select project, day, run, {}min(recording) as recording from ranks group by all) using (project, day, run{})"
OF_RUN, OF_RANK = RECORDING.format("", ""), RECORDING.format("rank, ", ", rank")

PANELS = (  # of the dashboard, in order: name, title, note, query
    ("all", "", "", "select count(*) as recordings, count(distinct run) as runs, count(distinct project) as projects, "
     "cast(sum(case when refusals > 0 then 1 else 0 end) as bigint) as out_of_memory, "
     "cast(sum(case when end_state = 'unknown' then 1 else 0 end) as bigint) as without_end, min(day) as first_day, max(day) as last_day from ranks"),
    ("peaks", "Peak by commit", "the same command on the same card; the bar is from the least to the most of its runs",
     "select * exclude first_started from peak_by_commit order by project, program, card, git_branch, first_started, git_commit"),
    ("refusals", "Out of memory", "the last failed allocation of each recording", f"select * from out_of_memory {OF_RANK} order by day desc, run, rank"),
    ("strays", "Outlier ranks", "over 2 % and over 2 MiB from the median of their run",
     f"select * from stray_ranks {OF_RANK} order by abs(from_median_bytes) desc, run, rank"),
    ("growth", "What grows", "bytes that stay with each step, the most of all runs",
     "select * from largest_growth order by bytes_per_step desc, project, class"),
    ("unused", "Unused memory", "what was never taken on the card; GiB-hours over all recordings",
     "select * from unused_memory order by unused_gib_hours desc, project"),
    ("settings", "Fragmentation by setting", "reserved at the peak, and in no block", "select * from fragmentation order by cached_percent desc, project"),
    ("runs", "Runs", "all ranks together; the last ones first", f"select * from runs {OF_RUN} order by started desc, run"),
)


class Schema:
    """What `gpumemtrace sql --schema` lists: types of columns by table and name, of partitions; queries by name."""

    PARTITIONS = 6

    def __init__(self, tool: str) -> None:
        asked = subprocess.run([tool, "sql", "--schema", "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
        document = json.loads(asked.stdout)
        columns = {t["name"]: {c["name"]: c["type"] for c in t["columns"]} for t in document["tables"]}
        self.tables = {name: dict(list(types.items())[self.PARTITIONS:]) for name, types in columns.items()}
        self.partitions = dict(list(columns["ranks"].items())[:self.PARTITIONS])
        self.views = {v["name"]: v["sql"] for v in document["views"]}

    def columns(self, table: str, month: bool = True) -> Dict[str, str]:
        """With the month, or as in a file, which has it in its folder's name."""
        columns = {**self.partitions, **self.tables[table]}
        return columns if month else {name: kind for name, kind in columns.items() if name != "month"}

    def empty(self, table: str, month: bool = True) -> str:
        """A query without rows."""
        columns = ", ".join(f'null::{kind} as "{name}"' for name, kind in self.columns(table, month).items())
        return f"(select {columns} limit 0)"

    def named_in(self, text: str) -> Set[str]:
        """Tables and views that a query names, and those that these need: a ready question has columns that are named as tables."""
        names = {name for name in (*self.tables, *self.views) if has_name(text, name)}
        needed = (re.findall(r"\b(?:from|join) (\w+)", self.views[name]) for name in names if name in self.views)
        return names.union(*(self.named_in(" ".join(of)) for of in needed))

    def wanted_tables(self, query: str) -> List[str]:
        """Those of recordings that a query needs. The small ones are made together, also for a query that names none: it may list them."""
        named = self.named_in(query)
        small = [t for t in self.tables if t not in LARGE]
        return [t for t in self.tables if t in named or (t in small and not (named and named <= set(LARGE)))]

    def wanted_columns(self, query: str, table: str) -> List[str]:
        """Those of a large table that a query may use. count(*) needs none; any other star may mean all, and so may a statement
        without select."""
        stars = re.sub(r"count\s*\(\s*\*", "", query, flags=re.IGNORECASE)
        if not has_name(query, "select") or has_name(query, "natural") or "*" in stars:
            return list(self.tables[table])
        named = [c for c in self.tables[table] if has_name(query, c)]
        return named or list(self.tables[table])[:1]


def has_name(text: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE | re.ASCII) is not None


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def connect() -> Any:
    connection = duckdb.connect()
    connection.execute("set enable_progress_bar = false")
    return connection


# ---- the views


def old_rows(schema: Schema, table: str, names: Sequence[str], ranks: Sequence[str]) -> str:
    """Rows in files of earlier versions, which have the process for a name. A recording in one of these files of ranks is there anew."""
    types = ", ".join(f"'{name}': {kind}" for name, kind in schema.partitions.items() if name not in ("month", "process"))
    anew = f" where process not in (select process from read_parquet({names_of(ranks)}, union_by_name=true))" if ranks else ""
    return (f"select * from (select * exclude filename, strftime(day, '%Y-%m') as month, parse_filename(filename, true) as process from "
            f"read_parquet({names_of(names)}, union_by_name=true, hive_partitioning=true, hive_types={{{types}}}, filename=true)){anew}")


def names_of(paths: Sequence[str]) -> str:
    return "[" + ", ".join(map(quoted, paths)) + "]"


class Lake:
    """The files of a lake, here or in a store, or (`parts`) of a part of one: then all count."""

    def __init__(self, connection: Any, schema: Schema, place: str, parts: bool = False) -> None:
        self.connection, self.schema, self.place = connection, schema, place
        self.far = re.match(r"(\w+)://", place)
        if self.far:
            reach(connection, self.far[1])
        self.ranks = None if parts else current(self.names("ranks"))

    def names(self, table: str, pattern: str = NEW) -> List[str]:
        if not self.far:
            return names_in(self.place, table, pattern)
        try:
            found = self.connection.execute("select file from glob(?)", [f"{self.place}/{table}/{pattern}"]).fetchall()
        except DuckError as error:
            if "httpfs" not in str(error):
                raise
            raise OSError(f"{self.place} cannot be read: DuckDB cannot fetch its extension httpfs here. pip install s3fs (gs: gcsfs, "
                          "abfs: adlfs) does without it") from None
        return [name for name, in found]

    def view(self, table: str) -> None:
        """Columns that older files lack are null; without a file it is empty. Files that others wrote (Spark) count as they are."""
        names = self.names(table)
        counted = sorted([p.path for p in current(names, self.ranks)] + [n for n in names if not NAME.search(n) and not n.endswith(SCHEMA_FILE)])
        old = self.names(table, OLD)
        parts = [self.schema.empty(table)]
        if counted:
            parts.append(f"select * from read_parquet({names_of(counted)}, union_by_name=true, hive_partitioning=true, "
                         "hive_types={'month': varchar})")
        if old:
            parts.append(old_rows(self.schema, table, old, [p.path for p in self.ranks or ()]))
        self.connection.execute(f'create or replace view "{table}" as {" union all by name ".join(parts)}')

    def views(self, text: str) -> None:
        """Of the tables that a query needs."""
        if self.far and not self.ranks and not any(self.names(table, pattern) for table in self.schema.tables for pattern in (NEW, OLD)):
            raise OSError(f"{self.place} is no lake: it has no table with a file")
        named = self.schema.named_in(text) or {*self.schema.tables, *self.schema.views}
        for table in self.schema.tables:
            if table in named:
                self.view(table)
        for name, query in self.schema.views.items():
            if name in named:
                self.connection.execute(f'create or replace view "{name}" as {query}')


def reach(connection: Any, protocol: str) -> None:
    """A lake elsewhere is read through fsspec where it is installed (s3fs and its like know how this machine signs in), else by
    DuckDB itself, whose extension takes keys from the environment, but no address of a server."""
    try:
        connection.register_filesystem(importlib.import_module("fsspec").filesystem(protocol, **READ_AHEAD.get(protocol, {})))
    except (ImportError, ValueError):
        scheme, _, host = (os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or "").partition("://")
        with contextlib.suppress(DuckError):  # without the extension: said when it is needed
            if host:
                connection.execute(f"set s3_endpoint = {quoted(host.rstrip('/'))}; set s3_use_ssl = {scheme == 'https'}; set s3_url_style = 'path'")


# ---- queries


def cell(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    if type(value).__name__ == "Decimal":
        return float(value)
    if isinstance(value, (list, tuple, dict)):
        return json.dumps(value, default=str)
    return value.hex() if isinstance(value, bytes) else str(value)


def run(connection: Any, query: str) -> Tuple[List[Tuple[str, str]], Any]:
    """A time with a zone becomes text: as a Python object it would need one more package."""
    found = connection.execute(query)
    columns = [(c[0], str(c[1])) for c in found.description or ()]
    zoned = [name for name, kind in columns if kind == "TIMESTAMP WITH TIME ZONE"]
    if zoned:
        names = ['"' + name.replace('"', '""') + '"' for name in zoned]
        texts = ", ".join(f"cast({name} as varchar) as {name}" for name in names)
        found = connection.execute(f"select * replace ({texts}) from ({query.strip().rstrip(';')})")
    return columns, found


def rows_of(columns: Sequence[Tuple[str, str]], found: Any) -> Iterator[List[List[Any]]]:
    """In parts of ten thousand."""
    odd = [nth for nth, (_, kind) in enumerate(columns) if kind not in PLAIN]
    while rows := [list(row) for row in found.fetchmany(10000)] if columns else ():
        for row in rows:
            for nth in odd:
                row[nth] = cell(row[nth])
        yield rows


def ask(connection: Any, schema: Schema, lake: str, text: str, do: Callable[[], T], parts: bool = False) -> T:
    """With views of what the text names. Again if a file went meanwhile: another one has its rows by then."""
    for left in range(TRIES, -1, -1):
        try:
            Lake(connection, schema, lake, parts).views(text)
            return do()
        except duckdb.IOException:
            if not left:
                raise
            time.sleep(0.05)
    raise AssertionError


def query(schema: Schema, lake: str, text: str, form: Callable[[Columns], Form], parts: bool = False) -> None:
    connection = connect()
    columns, found = ask(connection, schema, lake, text, lambda: run(connection, text), parts)
    table = form(columns)
    for rows in rows_of(columns, found):
        table.add(rows)
    table.end()


def pages_of(columns: Sequence[Sequence[str]], rows: Sequence[Sequence[Any]], folder: str) -> Dict[str, str]:
    """Pages that lie beside recordings, as a link in that folder names them."""
    recordings = {row[-2] for row in rows if row[-2]} if columns[-2:-1] and columns[-2][0] == "recording" else set()
    found = ((r, page) for r in recordings for page in (os.path.splitext(r)[0] + ".html", r + ".html") if os.path.isfile(page))
    return {recording: os.path.relpath(page, folder) for recording, page in found}


def dashboard(schema: Schema, lake: str, output: str, answer: Answer) -> None:
    """A result for each panel. Tables are read once."""
    connection = connect()
    text = " ".join(panel[3] for panel in PANELS)
    tables = sorted(schema.named_in(text) & set(schema.tables))

    def load() -> None:
        for name in tables:
            connection.execute(f"create or replace table {name}_ as from {name}")
    ask(connection, schema, lake, text, load)
    for name in tables:
        connection.execute(f"drop view {name}; alter table {name}_ rename to {name}")
    for name, title, note, panel in PANELS:
        columns, found = run(connection, f"select *, count(*) over () from ({panel}) limit {ROWS}")
        rows = [row for part in rows_of(columns, found) for row in part]
        answer.put("result", {"name": name, "title": title, "note": note, "columns": columns[:-1], "rows": [row[:-1] for row in rows],
                              "pages": pages_of(columns, rows, os.path.dirname(output) or "."), "left_out": rows[0][-1] - len(rows) if rows else 0})


def exit_code_of(error: Exception) -> int:
    """Of an exception of DuckDB, or of the file system that it reads through."""
    unreadable = isinstance(error, (OSError, MemoryError, duckdb.IOException, duckdb.OutOfMemoryException))
    return 3 if unreadable else 2

