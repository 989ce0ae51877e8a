# SPDX-License-Identifier: Apache-2.0
"""A lake in DuckDB: its tables as views over the files, the ready questions, and queries over them."""
from __future__ import annotations

import glob
import importlib
import json
import re
import subprocess
import sys
from typing import Any, Iterator, List, Optional, Sequence, Tuple

from .lake_answer import Answer

try:
    duckdb: Any = importlib.import_module("duckdb")
except ImportError:
    sys.exit(96)  # the command looks for another Python
DuckError: Any = duckdb.Error

ROWS = 2000  # of a panel; the others are counted
LARGE = ("allocations", "events")

PANELS = (  # of the dashboard, in order: name, title, note, query
    ("all", "", "", "select count(*) as recordings, count(distinct run) as runs, count(distinct project) as projects, "
     "cast(sum(case when refusals > 0 then 1 else 0 end) as bigint) as out_of_memory, "
     "cast(sum(case when end_state = 'unknown' then 1 else 0 end) as bigint) as without_end, min(day) as first_day, max(day) as last_day from ranks"),
    ("peaks", "Peak by commit", "the same command on the same card; the bar is from the least to the most of its runs",
     "select * from peak_by_commit order by project, program, card, git_branch, first_day, git_commit"),
    ("refusals", "Out of memory", "the last refusal of each recording", "select * from out_of_memory order by day desc, run, rank"),
    ("strays", "Outlier ranks", "over 2 % and over 2 MiB from the median of their run",
     "select * from stray_ranks order by abs(from_median_bytes) desc, run, rank"),
    ("growth", "What grows", "bytes that stay with each step, the most of all runs",
     "select * from largest_growth order by bytes_per_step desc, project, class"),
    ("unused", "Unused memory", "what was never taken on the card; GiB-hours over all recordings",
     "select * from unused_memory order by unused_gib_hours desc, project"),
    ("settings", "Fragmentation by setting", "reserved at the peak, and in no block", "select * from fragmentation order by cached_percent desc, project"),
    ("runs", "Runs", "all ranks together; the last ones first", "select * from runs order by started desc, run"),
)


class Schema:
    """What `gpumemtrace sql --schema` lists: types of columns by table and name, of partitions; queries by name."""

    PARTITIONS = 4

    def __init__(self, tool: str) -> None:
        asked = subprocess.run([tool, "sql", "--schema", "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
        document = json.loads(asked.stdout)
        columns = {t["name"]: {c["name"]: c["type"] for c in t["columns"]} for t in document["tables"]}
        self.tables = {name: dict(list(types.items())[self.PARTITIONS:]) for name, types in columns.items()}
        self.partitions = dict(list(columns["ranks"].items())[:self.PARTITIONS])
        self.views = {v["name"]: v["sql"] for v in document["views"]}

    def wanted_tables(self, query: str) -> List[str]:
        """Those that a query needs. One that names no large table gets all others, because it may list them."""
        small = [t for t in self.tables if t not in LARGE]
        large = [t for t in LARGE if has_name(query, t)]
        if not large or any(has_name(query, name) for name in [*small, *self.views]):
            return small + large
        return large

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


def view_of(schema: Schema, table: str, lake: Optional[str]) -> str:
    """Columns that older files lack are null; without a lake it is empty."""
    columns = {**schema.partitions, **schema.tables[table]}
    empty = "select " + "".join(f'null::{kind} as "{name}", ' for name, kind in columns.items()) + "1 as none_ where false"
    files = ""
    if lake:
        types = ", ".join(f"'{name}': {kind}" for name, kind in schema.partitions.items())
        files = (f" union all by name select * from read_parquet({quoted(f'{lake}/{table}/*/*/*/*/*.parquet')}, union_by_name=true, "
                 f"hive_partitioning=true, hive_types={{{types}}})")
    return f'create or replace view "{table}" as select * exclude none_ from ({empty}{files})'


def reach(connection: Any, protocol: str) -> None:
    """A lake elsewhere is read through fsspec where it is installed (s3fs and its like know how this machine signs in), else by
    DuckDB itself."""
    try:
        connection.register_filesystem(importlib.import_module("fsspec").filesystem(protocol))
    except (ImportError, ValueError):
        pass


def view_far_away(connection: Any, schema: Schema, table: str, lake: str) -> bool:
    """False: no file. A table of a lake elsewhere shows only when it is read."""
    try:
        connection.execute(view_of(schema, table, lake))
    except DuckError as error:
        if "httpfs" in str(error):
            raise OSError(f"{lake} cannot be read: DuckDB cannot fetch its extension httpfs here. pip install s3fs (gs: gcsfs, abfs: adlfs) "
                          "does without it") from None
        if "No files found" not in str(error):
            raise
        return False
    return True


def make_views(connection: Any, schema: Schema, lake: str) -> None:
    far = re.match(r"(\w+)://", lake)
    if far:
        reach(connection, far[1])
    found = False
    for table in schema.tables:
        near = not far and any(glob.iglob(f"{glob.escape(lake)}/{table}/*/*/*/*/*.parquet"))
        connection.execute(view_of(schema, table, lake if near else None))
        if far and table != "events":
            found = view_far_away(connection, schema, table, lake) or found
    if far and not found:
        raise OSError(f"{lake} is no lake: it has no table with a file")
    for name, query in schema.views.items():
        connection.execute(f'create view "{name}" as {query}')


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
    while rows := found.fetchmany(10000) if columns else ():
        yield [[cell(v) for v in row] for row in rows]


def query(schema: Schema, lake: str, text: str, answer: Answer) -> None:
    connection = connect()
    make_views(connection, schema, lake)
    columns, found = run(connection, text)
    answer.columns(columns)
    for rows in rows_of(columns, found):
        answer.rows(rows)


def dashboard(schema: Schema, lake: str, answer: Answer) -> None:
    """A row for each panel, which is an object."""
    connection = connect()
    make_views(connection, schema, lake)
    answer.columns([("panel", "JSON")])
    for name, title, note, text in PANELS:
        columns, found = run(connection, text)
        rows = [row for part in rows_of(columns, found) for row in part]
        answer.rows([[{"name": name, "title": title, "note": note, "columns": columns, "rows": rows[:ROWS], "left_out": max(len(rows) - ROWS, 0)}]])


def exit_code_of(error: Exception) -> int:
    """Of an exception of DuckDB, or of the file system that it reads through."""
    unreadable = isinstance(error, (OSError, MemoryError, duckdb.IOException, duckdb.OutOfMemoryException))
    return 3 if unreadable else 2

