# SPDX-License-Identifier: Apache-2.0
"""Spark: the tables and ready questions of a lake, and the same tables of raw recordings wherever they lie.

    gpumemtrace.spark.open(spark, "s3a://bucket/lake")                   tables and views by their names
    spark.sql("select * from peak_by_commit order by first_day").show()

    ranks = gpumemtrace.spark.recordings(spark, "s3a://bucket/runs", "ranks")     a DataFrame, made by the executors
    ranks.write.partitionBy("month").parquet("s3a://bucket/lake/ranks")

The SQL is that of ``gpumemtrace sql``: it is asked of the tool (``gpumemtrace sql --schema``). Executors need this
package, pyarrow and DuckDB.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import tempfile
from typing import Any, Dict, Iterator, List

from ._error import Error
from ._tool import ask

# Types of the tool's SQL as those of Spark's schemas. Times are UTC and have no zone.
_TYPES = {"bigint": "bigint", "double": "double", "boolean": "boolean", "varchar": "string", "timestamp": "timestamp_ntz",
          "date": "date"}


def schema() -> Dict[str, Any]:
    """What there is: ``{"tables": [...], "views": [...]}``, as ``gpumemtrace sql --schema --json`` has it."""
    return ask("sql", "--schema")


def _columns(table: Dict[str, Any]) -> str:
    return ", ".join(f"`{c['name']}` {_TYPES[c['type']]}" for c in table["columns"])


def _files(spark: Any, path: str) -> List[str]:
    pattern = spark._jvm.org.apache.hadoop.fs.Path(path)
    found = pattern.getFileSystem(spark._jsc.hadoopConfiguration()).globStatus(pattern)
    return [status.getPath().toString() for status in found or ()]


def open(spark: Any, lake: str) -> None:
    """Makes each table and each ready question of a lake a temporary view of that name. Columns that older files lack
    are null; a table that has no file yet is empty. Folders of lakes of earlier versions are read as they are."""
    found = schema()
    for table in found["tables"]:
        path = f"{os.fspath(lake).rstrip('/')}/{table['name']}"
        months, older = _files(spark, f"{path}/month=*"), _files(spark, f"{path}/project=*")
        rows = spark.createDataFrame([], _columns(table))
        if months or older:
            rows = spark.read.schema(_columns(table)).option("basePath", path).parquet(*(months or older))
        rows.select(*[f"`{c['name']}`" for c in table["columns"]]).createOrReplaceTempView(table["name"])
    for view in found["views"]:
        spark.sql(view["sql"]).createOrReplaceTempView(view["name"])


def recordings(spark: Any, path: str, table: str = "ranks") -> Any:
    """A table of all recordings (``*.gmt``) below a folder, whatever file system it is of: a DataFrame with the columns
    that the table has in a lake. The recordings of one folder are read together, by one executor, so that ranks find
    their run. One that cannot be read is left out, and the executor's log has the sentence."""
    tables = {t["name"]: t for t in schema()["tables"] if t["name"] != "events"}
    if table not in tables:
        raise Error(f"there is no table {table} of recordings; there are {', '.join(tables)}", 2)
    wanted = tables[table]
    files = spark.read.format("binaryFile").option("pathGlobFilter", "*.gmt").option("recursiveFileLookup", "true").load(path)
    by_folder = files.selectExpr("path", "content", "regexp_extract(path, '^(.*)/', 1) as folder")
    return by_folder.repartition("folder").sortWithinPartitions("folder", "path").mapInArrow(_Rows(wanted), _columns(wanted))


class _Rows:
    """What an executor does with the files that it gets, in order of their folders."""

    def __init__(self, table: Dict[str, Any]) -> None:
        self.table = table["name"]
        self.names = [c["name"] for c in table["columns"]]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        here, folder = "", None
        paths: Dict[str, str] = {}
        try:
            for batch in batches:
                for path, content, of in zip(*(batch.column(n) for n in ("path", "content", "folder"))):
                    if of.as_py() != folder:
                        yield from self.flush(here, paths)
                        shutil.rmtree(here, ignore_errors=True)
                        here, folder, paths = tempfile.mkdtemp(prefix="gpumemtrace-spark-"), of.as_py(), {}
                    file = os.path.join(here, os.path.basename(path.as_py()))
                    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as out:
                        out.write(content.as_buffer())
                    paths[file] = path.as_py()
            yield from self.flush(here, paths)
        finally:
            shutil.rmtree(here, ignore_errors=True)

    def flush(self, here: str, paths: Dict[str, str]) -> Iterator[Any]:
        """The rows of the files of one folder."""
        if not paths:
            return
        lake, wanted = os.path.join(here, "lake"), ["--tables", "allocations"] if self.table == "allocations" else []
        said = ask("collect", *paths, "-o", lake, *wanted, fine=3)
        for one in said["recordings"]:
            if "error" in one:
                print(f"gpumemtrace: {one['error'].replace(one['file'], paths[one['file']])}", file=sys.stderr)
        for at, _, names in sorted(os.walk(os.path.join(lake, self.table))):
            for name in names:
                yield from self.rows(os.path.join(at, name), paths)

    def rows(self, part: str, paths: Dict[str, str]) -> Iterator[Any]:
        arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
        month = os.path.basename(os.path.dirname(part)).partition("=")[2]
        for batch in parquet.ParquetFile(part).iter_batches():
            columns: List[Any] = []
            for name in self.names:
                if name == "month":
                    columns.append(arrow.array([month] * batch.num_rows))
                elif name == "recording":
                    columns.append(arrow.array([paths.get(p, p) for p in batch.column(name).to_pylist()]))
                else:
                    columns.append(batch.column(name))
            yield arrow.RecordBatch.from_arrays(columns, names=self.names)
