# SPDX-License-Identifier: Apache-2.0
"""The ready questions of a lake, asked of DuckDB and of Spark on local[2], give the same rows; recordings that Spark's
executors read themselves (mapInArrow) give the rows that `collect` wrote; on a disk, and in object storage."""
import json
import os
import shutil
import subprocess

import pytest

from conftest import PACKAGE, ROOT
from test_lake import BAD, EXAMPLE, call, collect, readers, runs
from test_ranks import maker  # noqa: F401

SPARK = ROOT / ".venv-spark/bin/python"
pytestmark = [pytest.mark.skipif(not SPARK.exists(), reason="no .venv-spark: scripts/setup.sh spark"),
              pytest.mark.skipif(not shutil.which("java"), reason="no java: scripts/setup.sh spark"), readers, pytest.mark.installed]

PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
import gpumemtrace, gpumemtrace.spark
lake, recordings, out, more = sys.argv[1:]
builder = SparkSession.builder.master("local[2]")
for key, value in {"spark.ui.enabled": "false", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1",
                   "spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC", **json.loads(more)}.items():
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


S3A = SPARK.parent.parent / "ivy/jars"
needs_store = pytest.mark.skipif(not any(S3A.glob("*hadoop-aws*")), reason="no connector to S3 in .venv-spark: scripts/setup.sh spark")


@pytest.fixture
def filled(tmp_path, maker):  # noqa: F811
    """A folder of recordings, one of them broken, and the lake of them."""
    runs(tmp_path / "in")
    shutil.copytree(EXAMPLE, tmp_path / "in/example")
    shutil.copy(BAD / "text.gmt", tmp_path / "in/0/bad.gmt")
    collect(tmp_path / "in", "-o", tmp_path / "lake", code=3)
    return tmp_path


def ask_spark(tmp_path, lake, recordings, **settings):
    """What Spark says of them, and its log."""
    out = tmp_path / "rows.json"
    env = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYSPARK_PYTHON": str(SPARK)}
    done = subprocess.run([SPARK, "-c", PROGRAM, lake, recordings, out, json.dumps(settings)], capture_output=True, text=True, timeout=500, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(out.read_text()), done.stderr


def same_rows(of_spark, lake, scheme):
    """Of each table and ready question as DuckDB, on the lake and, for raw recordings, on what `collect` wrote of them."""
    asked = [name for name in of_spark if not name.startswith("raw") and name != "error"]
    assert len(asked) == 8
    for name in asked:
        of_duckdb = json.loads(call("sql", f"from {name}", lake, "--json").stdout)["rows"]
        assert of_duckdb and comparable(of_spark[name]) == comparable(of_duckdb), name
    for table in ("ranks", "lines"):
        of_lake = json.loads(call("sql", f"from {table}", lake, "--json").stdout)["rows"]
        assert comparable(of_spark["raw " + table], {"recording"}) == comparable(of_lake, {"recording"}), table
    assert all(r["recording"].startswith(scheme) for r in of_spark["raw ranks"])


def test_spark_and_duckdb_give_the_same_rows(filled):
    of_spark, log = ask_spark(filled, filled / "lake", filled / "in")
    assert "bad.gmt" in log, "the broken recording is named"
    same_rows(of_spark, filled / "lake", "file:")
    assert "no table events" in of_spark["error"][0]["sentence"]


# The same in object storage

SERVE = """
import os, pathlib, sys
import boto3
from moto.server import ThreadedMotoServer
folder = pathlib.Path(sys.argv[1])
server = ThreadedMotoServer("127.0.0.1", 0)
server.start()
url = "http://%s:%d" % server.get_host_and_port()
s3 = boto3.client("s3", endpoint_url=url)
s3.create_bucket(Bucket="bucket")
for name in ("lake", "in"):
    for path in (folder / name).rglob("*"):
        if path.is_file():
            s3.upload_file(str(path), "bucket", str(path.relative_to(folder)))
print(url, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def store(filled):
    """The address of an S3 server (moto) with both folders in a bucket, and the settings that its clients need."""
    env = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}
    server = subprocess.Popen([SPARK, "-c", SERVE, filled], env={**os.environ, **env}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    url = next((line.strip() for line in server.stdout if line.startswith("http")), "")
    assert url.startswith("http://127.0.0.1:"), "the server did not start"
    yield url, {**env, "AWS_ENDPOINT_URL": url, "GPUMEMTRACE_PYTHON": str(SPARK)}
    server.communicate("", timeout=60)


@needs_store
def test_in_object_storage(filled, store):
    """A lake and raw recordings in a bucket: Spark by its s3a connector and mapInArrow, DuckDB by s3fs, give the rows that DuckDB
    gives of the folders here."""
    url, env = store
    settings = {"spark.jars": ",".join(map(str, sorted(S3A.glob("*.jar")))), "spark.hadoop.fs.s3a.endpoint": url,
                "spark.hadoop.fs.s3a.path.style.access": "true", "spark.hadoop.fs.s3a.access.key": env["AWS_ACCESS_KEY_ID"],
                "spark.hadoop.fs.s3a.secret.key": env["AWS_SECRET_ACCESS_KEY"], "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
                "spark.hadoop.fs.s3a.connection.ssl.enabled": "false"}
    of_spark, log = ask_spark(filled, "s3a://bucket/lake", "s3a://bucket/in", **settings)
    assert "bad.gmt" in log
    same_rows(of_spark, filled / "lake", "s3a://bucket/in/")
    for name in ("runs", "stray_ranks"):
        there = json.loads(call("sql", f"from {name}", "s3://bucket/lake", "--json", **env).stdout)["rows"]
        assert there and comparable(of_spark[name]) == comparable(there), name
