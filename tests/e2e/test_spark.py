# SPDX-License-Identifier: Apache-2.0
"""The ready questions of a lake, asked of DuckDB and of Spark on local[2], give the same rows; recordings that Spark's
executors read themselves (mapInArrow) give the rows that `collect` wrote."""
import json
import os
import shutil
import subprocess

import pytest

from conftest import ROOT
from test_lake import BAD, EXAMPLE, call, collect, readers, runs
from test_ranks import maker  # noqa: F401

SPARK = ROOT / ".venv-spark/bin/python"
pytestmark = [pytest.mark.skipif(not SPARK.exists(), reason="no .venv-spark: scripts/setup.sh spark"),
              pytest.mark.skipif(not shutil.which("java"), reason="no java: scripts/setup.sh spark"), readers]

PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
import gpumemtrace, gpumemtrace.spark
lake, recordings, out = sys.argv[1:]
builder = SparkSession.builder.master("local[2]")
for key, value in {"spark.ui.enabled": "false", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1",
                   "spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC"}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
gpumemtrace.spark.open(spark, lake)
rows = {v["name"]: [r.asDict() for r in spark.table(v["name"]).collect()] for v in gpumemtrace.spark.schema()["views"]}
rows["ranks"] = [r.asDict() for r in spark.table("ranks").collect()]
for table in ("ranks", "lines"):
    rows["raw " + table] = [r.asDict() for r in gpumemtrace.spark.recordings(spark, recordings, table).collect()]
try:
    gpumemtrace.spark.recordings(spark, recordings, "events")
except gpumemtrace.Error as error:
    rows["error"] = [{"sentence": error.sentence}]
json.dump(rows, open(out, "w"), default=str)
"""


def comparable(rows, without=()):
    """Numbers to nine digits: the order of a sum is not the same."""
    def cell(v):
        return float(f"{v:.9g}") if isinstance(v, float) else v
    return sorted((json.dumps({k: cell(v) for k, v in sorted(r.items()) if k not in without}, default=str) for r in rows))


def test_spark_and_duckdb_give_the_same_rows(tmp_path, maker):  # noqa: F811
    runs(tmp_path / "in")
    shutil.copytree(EXAMPLE, tmp_path / "in/example")
    shutil.copy(BAD / "text.gmt", tmp_path / "in/0/bad.gmt")
    lake = tmp_path / "lake"
    collect(tmp_path / "in", "-o", lake, code=3)
    out = tmp_path / "rows.json"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "PYSPARK_PYTHON": str(SPARK)}
    done = subprocess.run([SPARK, "-c", PROGRAM, lake, tmp_path / "in", out], capture_output=True, text=True, timeout=500, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    of_spark = json.loads(out.read_text())
    assert "bad.gmt" in done.stderr, "the broken recording is named"
    asked = [name for name in of_spark if not name.startswith("raw") and name != "error"]
    assert len(asked) == 8
    for name in asked:
        of_duckdb = json.loads(call("sql", f"from {name}", lake, "--json").stdout)["rows"]
        assert of_duckdb and comparable(of_spark[name]) == comparable(of_duckdb), name
    for table in ("ranks", "lines"):
        of_lake = json.loads(call("sql", f"from {table}", lake, "--json").stdout)["rows"]
        assert comparable(of_spark["raw " + table], {"recording"}) == comparable(of_lake, {"recording"}), table
    assert all(r["recording"].startswith("file:") for r in of_spark["raw ranks"])
    assert "no table events" in of_spark["error"][0]["sentence"]
