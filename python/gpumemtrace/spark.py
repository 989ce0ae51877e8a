# SPDX-License-Identifier: Apache-2.0
"""Spark: the tables and ready questions of a lake, and tables of raw recordings wherever they lie.

    gpumemtrace.spark.open(spark, "s3a://bucket/lake")        its tables and views by their names
    spark.sql("select * from peak_by_commit order by first_day")

    gpumemtrace.spark.recordings(spark, "s3a://bucket/runs", "ranks")     a DataFrame: a row for each recording

The SQL is that of ``gpumemtrace sql``: it is asked of the tool (``gpumemtrace sql --schema``). Executors need this package.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from typing import Any, Dict, Iterator, List

from ._error import Error
from ._tool import ask, run

# Types of SQL as those of Spark's schemas; a time without a zone is UTC.
_TYPES = {"bigint": "bigint", "double": "double", "boolean": "boolean", "varchar": "string", "timestamp": "timestamp_ntz",
          "date": "date"}
_PARTITIONS = 4


def schema() -> Dict[str, Any]:
    """What there is: ``{"tables": [...], "views": [...]}``, as ``gpumemtrace sql --schema --json`` has it."""
    return ask("sql", "--schema")


def _columns(table: Dict[str, Any]) -> str:
    return ", ".join(f"`{c['name']}` {_TYPES[c['type']]}" for c in table["columns"])


def _exists(spark: Any, path: str) -> bool:
    jvm = spark._jvm
    place = jvm.org.apache.hadoop.fs.Path(path)
    return bool(place.getFileSystem(spark._jsc.hadoopConfiguration()).exists(place))


def _views(spark: Any, views: List[Dict[str, str]]) -> None:
    for view in views:
        spark.sql(view["sql"]).createOrReplaceTempView(view["name"])


def open(spark: Any, lake: str) -> None:
    """Makes each table and each ready question of a lake a temporary view. Columns that older files lack are null, a
    table that has no file yet is empty."""
    found = schema()
    for table in found["tables"]:
        path = f"{lake.rstrip('/')}/{table['name']}"
        reader = spark.read.schema(_columns(table))
        frame = reader.parquet(path) if _exists(spark, path) else spark.createDataFrame([], _columns(table))
        ordered = frame.select(*[f"`{c['name']}`" for c in table["columns"]])
        ordered.createOrReplaceTempView(table["name"])
    _views(spark, found["views"])


def _rows_of(table: str) -> Any:
    """What an executor does: each recording into a file of its own, collected there, its rows given on as Arrow."""

    def rows(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow.parquet

        for batch in batches:
            for path, content in zip(batch.column("path"), batch.column("content")):
                folder = tempfile.mkdtemp(prefix="gpumemtrace-spark-")
                try:
                    yield from _collected(pyarrow, folder, path.as_py(), content.as_buffer(), table)
                finally:
                    shutil.rmtree(folder, ignore_errors=True)

    return rows


def _collected(pyarrow: Any, folder: str, path: str, content: Any, table: str) -> Iterator[Any]:
    file = os.path.join(folder, os.path.basename(path))
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as out:
        out.write(content)
    wanted = ["--tables", "allocations"] if table == "allocations" else []
    try:
        placed = json.loads(run("collect", file, "-o", os.path.join(folder, "lake"), "--json", *wanted))["recordings"][0]
    except Error as error:
        yield _batch(pyarrow, table, {"project": None, "day": None, "run": None, "rank": None}, [], path, error.sentence)
        return
    parts = [os.path.join(here, name) for here, _, names in os.walk(os.path.join(folder, "lake", table)) for name in names]
    for part in parts:
        for batch in pyarrow.parquet.ParquetFile(part).iter_batches():
            yield _batch(pyarrow, table, placed, [batch], path, None)


def _batch(pyarrow: Any, table: str, place: Dict[str, Any], batches: List[Any], path: str, error: Any) -> Any:
    raise NotImplementedError
