# SPDX-License-Identifier: Apache-2.0
"""The ready questions of a lake, asked of DuckDB and of Spark on local[2], give the same rows; recordings that Spark's
executors read themselves (mapInArrow) give the rows that `collect` wrote; on a disk, and in object storage. Trino reads the tables."""
import json
import os
import re
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from conftest import PACKAGE, ROOT, TOOLS
from test_lake import BAD, EXAMPLE, LACKS, call, collect, readers, runs
from test_ranks import maker  # noqa: F401

SPARK = ROOT / ".venv-spark/bin/python"
pytestmark = [readers, pytest.mark.installed]

PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
import gpumemtrace, gpumemtrace.spark
recordings, out, more, *lakes = sys.argv[1:]
builder = SparkSession.builder.master("local[2]")
for key, value in {"spark.ui.enabled": "false", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1",
                   "spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC", **json.loads(more)}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
rows = {}
for lake in lakes:
    gpumemtrace.spark.open(spark, lake)
    for name in ("ranks", *(v["name"] for v in gpumemtrace.spark.schema()["views"])):
        rows[f"{name} of {lake}"] = [r.asDict() for r in spark.table(name).collect()]
plan = spark.sql("select max(peak_bytes) from ranks where month = '2026-02'")._jdf.queryExecution().toString()
rows["pruned"] = [{"by_month": "PartitionFilters: [isnotnull(month" in plan}]
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


@pytest.fixture
def filled(tmp_path, maker):  # noqa: F811
    """A folder of recordings, one of them broken, and the lake of them."""
    runs(tmp_path / "in")
    shutil.copytree(EXAMPLE, tmp_path / "in/example")
    shutil.copy(BAD / "text.gmt", tmp_path / "in/0/bad.gmt")
    collect(tmp_path / "in", "-o", tmp_path / "lake", code=3)
    return tmp_path


def ask_spark(tmp_path, recordings, lakes, **settings):
    """What Spark says of them, and its log."""
    out = tmp_path / "rows.json"
    env = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYSPARK_PYTHON": str(SPARK)}
    done = subprocess.run([SPARK, "-c", PROGRAM, recordings, out, json.dumps(settings), *lakes], capture_output=True, text=True, timeout=500, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(out.read_text()), done.stderr


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
    """The address of an S3 server (moto) with both folders in a bucket, and the settings that its clients need; None without a connector."""
    if not any(S3A.glob("*hadoop-aws*")):
        yield None, {}
        return
    env = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}
    server = subprocess.Popen([SPARK, "-c", SERVE, filled], env={**os.environ, **env}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    url = next((line.strip() for line in server.stdout if line.startswith("http")), "")
    assert url.startswith("http://127.0.0.1:"), "the server did not start"
    yield url, {**env, "AWS_ENDPOINT_URL": url, "GPUMEMTRACE_PYTHON": str(SPARK)}
    server.communicate("", timeout=600)


@pytest.mark.skipif(not SPARK.exists(), reason="no .venv-spark: scripts/setup.sh spark")
@pytest.mark.skipif(not shutil.which("java"), reason="no java: scripts/setup.sh spark")
def test_spark_and_duckdb_give_the_same_rows(filled, store):
    """A lake and raw recordings, on a disk and in a bucket: Spark by its s3a connector and mapInArrow, DuckDB by s3fs, give the rows that DuckDB
    gives of the folders here."""
    (url, env), recordings, lakes, settings = store, str(filled / "in"), [str(filled / "lake")], {}
    if url:
        recordings, lakes = "s3a://bucket/in", [*lakes, "s3a://bucket/lake"]
        settings = {"spark.jars": ",".join(map(str, sorted(S3A.glob("*.jar")))), "spark.hadoop.fs.s3a.endpoint": url,
                    "spark.hadoop.fs.s3a.path.style.access": "true", "spark.hadoop.fs.s3a.access.key": env["AWS_ACCESS_KEY_ID"],
                    "spark.hadoop.fs.s3a.secret.key": env["AWS_SECRET_ACCESS_KEY"], "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
                    "spark.hadoop.fs.s3a.connection.ssl.enabled": "false"}
    of_spark, log = ask_spark(filled, recordings, lakes, **settings)
    assert "bad.gmt" in log, "the broken recording is named"
    assert "no table events" in of_spark["error"][0]["sentence"] and of_spark["pruned"] == [{"by_month": True}]
    asked = {name.split(" of ")[0] for name in of_spark if " of " in name}
    of_duckdb = {name: json.loads(call("sql", f"from {name}", filled / "lake", "--json").stdout)["rows"] for name in (*asked, "lines")}
    assert len(asked) == 8 and all(of_duckdb.values())
    for name in asked:
        for lake in lakes:
            assert comparable(of_spark[f"{name} of {lake}"]) == comparable(of_duckdb[name]), (name, lake)
    for table in ("ranks", "lines"):
        assert comparable(of_spark[f"raw {table}"], {"recording"}) == comparable(of_duckdb[table], {"recording"}), table
    assert all(r["recording"].startswith("s3a://bucket/in/" if url else "file:") for r in of_spark["raw ranks"])
    # DuckDB's own extension, where a Python is named that has it, and no s3fs.
    pythons = [SPARK, *filter(None, [os.environ.get("GPUMEMTRACE_TEST_HTTPFS")])] if url else []
    for python in pythons:
        for name in ("runs", "stray_ranks"):
            there = json.loads(call("sql", f"from {name}", "s3://bucket/lake", "--json", **{**env, "GPUMEMTRACE_PYTHON": str(python)}).stdout)["rows"]
            assert there and comparable(there) == comparable(of_duckdb[name]), (python, name)


# Trino

TRINO = os.environ.get("GPUMEMTRACE_TEST_TRINO", "")  # a folder: Trino's server, unpacked; JAVA_HOME as it needs it
FILES = {"node.properties": "node.environment=test\nnode.data-dir={here}/data\n", "jvm.config": "-Xmx2G\n-Djdk.attach.allowAttachSelf=true\n",
         "config.properties": "coordinator=true\nnode-scheduler.include-coordinator=true\nhttp-server.http.port=8098\ndiscovery.uri=http://127.0.0.1:8098\n",
         "catalog/hive.properties": "connector.name=hive\nhive.metastore=file\nhive.metastore.catalog.dir=local:///meta\nfs.native-local.enabled=true\n"
                                    "local.location={here}\nhive.non-managed-table-writes-enabled=true\n"}


def ask_trino(statement):
    request = urllib.request.Request("http://127.0.0.1:8098/v1/statement", statement.encode(), {"X-Trino-User": "me"})
    rows = []
    while request:
        answer = json.loads(urllib.request.urlopen(request, timeout=600).read())
        assert "error" not in answer, answer["error"]["message"]
        rows += answer.get("data", [])
        request = answer.get("nextUri")
    return rows


@pytest.mark.skipif(not TRINO, reason="no GPUMEMTRACE_TEST_TRINO")
def test_trino_as_documented(filled):
    """A month by an earlier version, without a column, and others: what docs/lake.md prints gives DuckDB's figures."""
    for name, text in FILES.items():
        path = filled / "etc" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(here=filled))
    (path,) = filled.glob("lake/ranks/month=2026-01/*.parquet")
    subprocess.run([TOOLS, "-c", LACKS, path], check=True)
    (printed,) = re.findall(r"```sql\n(.*?)```", (ROOT / "docs/lake.md").read_text(), re.S)
    server = subprocess.Popen([Path(TRINO) / "bin/launcher", "run", "--etc-dir", filled / "etc"], stdout=(filled / "log").open("w"), stderr=subprocess.STDOUT)
    try:
        deadline = time.time() + 180
        while "SERVER STARTED" not in (filled / "log").read_text() and time.time() < deadline:
            time.sleep(1)
        *_, last = [ask_trino(one) for one in printed.replace("s3://bucket/", "local:///").split(";") if one.strip()]
        query = printed.split(";")[-2].replace("hive.lake.", "")
        assert last and last == [list(r.values()) for r in json.loads(call("sql", query, filled / "lake", "--json").stdout)["rows"]]
    finally:
        server.terminate()
        server.wait()
