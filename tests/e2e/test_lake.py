# SPDX-License-Identifier: Apache-2.0
"""`collect` and `sql`: other readers of Parquet find in a lake what the commands say of each recording; nothing
stands in it twice; what is broken is left out; old files are read beside new ones; ready questions give what a
few lines of Python give."""
import contextlib
import csv
import fcntl
import io
import json
import os
import pickle
import re
import shutil
import signal
import statistics
import subprocess
import time
import urllib.parse
from pathlib import Path

import pytest

import json_page
from conftest import PACKAGE, ROOT, TABLES, TOOLS, Tool, slowness, until
from test_html import browse, makers, needs_browser  # noqa: F401
from test_ranks import MIB, maker, run_of, script, write  # noqa: F401

readers = pytest.mark.skipif(not TOOLS.exists(), reason="no .venv-tools: scripts/setup.sh tools")
EXAMPLE, BAD = ROOT / "tests/data/example", ROOT / "tests/data/bad"
SMALL = ("ranks", "devices", "classes", "lines", "steps", "growth", "refusals")


def call(*args, **more):
    env = {**os.environ, "GPUMEMTRACE_PYTHON": str(TOOLS), **more}
    return subprocess.run([Tool.path, *map(str, args)], capture_output=True, text=True, timeout=600, env=env)


def ask(query, *lake):
    done = call("sql", query, *lake, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert json_page.check(TABLES, "sql", document) == []
    return document["rows"]


def collect(*args, code=0):
    done = call("collect", *args, "--json")
    assert done.returncode == code, done.stderr
    document = json.loads(done.stdout)
    assert json_page.check(TABLES, "collect", document) == []
    return document


def files(lake):
    """Without those that have no rows, but all columns."""
    return sorted(str(p.relative_to(lake)) for p in lake.rglob("*") if p.is_file() and p.name != "schema.parquet")


def rows_in(lake):
    """Of every table, and the columns that all have."""
    rows = ask(" union all by name ".join(f"select '{t}' as of_table, * from {t}" for t in SMALL), lake)
    return {t: sorted(str(r) for r in rows if r["of_table"] == t) for t in SMALL}


def runs(folder):
    """Three runs of four ranks in three months, the last with a rank that needs more and a growing one that fails."""
    folder.mkdir()
    for month, (commit, activations) in enumerate([("aaa1", 8), ("bbb2", 8), ("ccc3", 12)]):
        every = {"start": 1767225600 + month * 31 * 86400, "activations": activations, "steps": 9,
                 "facts": [f"git.commit {commit}", "git.root /home/u/net", "env.USER ada", f"env.MASTER_PORT {month}",
                           "env.MASTER_ADDR node1"]}
        odd = {"r3": {"activations": 30, "extra": 2, "oom": True}} if month == 2 else {}
        run_of(folder / str(month), every=every, **odd)
    return folder


@pytest.fixture(scope="module")
def lake(tmp_path_factory, maker):  # noqa: F811
    folder = tmp_path_factory.mktemp("lake")
    said = collect(runs(folder / "runs"), EXAMPLE, "-o", folder / "lake")
    assert said["collected"] == 14 and said["skipped"] == 0
    return folder / "lake"


def test_names_of_folders(lake):
    """A file for each table and month; every table has the columns that tell a recording."""
    found = [re.fullmatch(r"(\w+)/month=(\d{4}-\d\d)/00000001-00000001-0000-[0-9a-f]+\.parquet", f) for f in files(lake)]
    assert all(found) and {m[1] for m in found} == set(SMALL)
    assert sorted(m[2] for m in found if m[1] == "ranks") == ["2026-01", "2026-02", "2026-03", "2026-11"]
    places = ask("select distinct project, day, run, rank, month, process from ranks where project = 'net'", lake)
    assert sorted({(p["day"], p["rank"]) for p in places}) == [(day, r) for day in ("2026-01-01", "2026-02-01", "2026-03-04") for r in range(4)]
    assert len({p["run"] for p in places}) == 3 and len({p["process"] for p in places}) == 12 and all(p["month"] == p["day"][:7] for p in places)
    assert places == ask("select distinct project, day, run, rank, month, process from classes where project = 'net'", lake) or len(places) == 12


READ = """
import json, sys
import duckdb, pandas, polars, pyarrow.parquet
path, process = sys.argv[1:]
rows = pyarrow.parquet.ParquetFile(path).read().to_pylist()
assert polars.read_parquet(path, hive_partitioning=False).to_dicts() == rows
names = list(rows[0])
assert [dict(zip(names, r)) for r in duckdb.connect().execute(f"select * from read_parquet('{path}', hive_partitioning=false)").fetchall()] == rows
assert len(pandas.read_parquet(path)) == len(rows)
print(json.dumps([row for row in rows if row["process"].startswith(process)], default=str))
"""


@readers
def test_other_readers_find_what_the_commands_say(lake, tool):
    """One recording: pyarrow, Polars, DuckDB and pandas read the same, and it is what the commands print."""
    found = {}
    for table in SMALL:
        (path,) = lake.glob(f"{table}/month=2026-11/*.parquet")
        found[table] = json.loads(subprocess.run([TOOLS, "-c", READ, path, "devbox-11953-"], capture_output=True, text=True, check=True).stdout)
    file = EXAMPLE / "new.gmt"
    report, steps, leaks, oom = (tool.json(c, file) for c in ("report", "steps", "leaks", "oom"))
    (row,), device = found["ranks"], report["devices"][0]
    assert row["peak_bytes"] == device["peak_bytes"] and row["peak_reserved_bytes"] == device["peak_reserved_bytes"]
    assert row["end_bytes"] == device["end_bytes"] and row["events"] == report["events"] and row["refusals"] == device["ooms"]
    assert row["growth_bytes"] == leaks["growth_per_step"] and row["steps"] == steps["steps"] and row["end_state"] == "out_of_memory"
    assert row["peak_at"] == tool.json("peak", file)["text"] and row["command"] == "python train.py" and row["host"] == "devbox"
    assert {r["class"]: r["bytes"] for r in found["classes"]} == device["categories_at_peak"]
    assert sum(r["bytes"] for r in found["lines"]) == device["peak_bytes"]
    assert [r["peak_bytes"] for r in found["steps"]] == [r["peak_bytes"] for r in steps["rows"] if r["phase"] == "step"]
    assert [(r["class"], r["function"], r["bytes_per_step"]) for r in found["growth"]] == [
        (o["class"], o["function"], o["bytes_per_step"]) for o in leaks["owners"]]
    (refusal,) = found["refusals"]
    assert refusal["cause"] == oom["cause"] and refusal["text"] == oom["text"] and refusal["remedy"] == oom["remedies"][0]["what"]
    assert refusal["block_bytes"] == oom["block_bytes"] and refusal["largest_hole_bytes"] == oom["largest_hole"]


def test_an_odd_recording_does_not_stop_the_others(tmp_path, maker):  # noqa: F811
    """A size as of cudaMalloc(&p, -20), clocks that stand anywhere, records of a later version: what does not fit its column is clamped."""
    odd = 2**64 - 20
    lines = f"thread 1 4711 main\nevent block_alloc time_ns=10 addr=4096 size=512 thread=1\nevent mem_alloc time_ns=11 addr={odd} size={odd} thread=1\n"
    lines += f"event mem_fail time_ns=12 size={odd} thread=1\nevent block_oom time_ns=13 size={odd} arg0={odd} arg1={odd} thread=1\nevent end time_ns=20\n"
    clocks = {"1969": -365 * 86400 * 10**9, "2262": 2**63 - 1, "1677": -2**63, "2300": 10413792000 * 10**9, "now": 1700000000 * 10**9}
    (tmp_path / "in").mkdir()
    for nth, (name, clock) in enumerate(clocks.items()):
        subprocess.run([ROOT / "build/data/make_recording", tmp_path / f"in/{name}.gmt"], input=f"meta pid {nth + 5}\n{lines}".encode(), check=True, env={**os.environ, "REALTIME": str(clock)})
    for nth, start in enumerate((-10**30, 10**30, 253402300800 * 10**9, "x")):
        text = f"meta start_unix_ns {start}\nmeta pid {nth + 50}\nevent block_alloc time_ns=18446744073709551000 addr=4096 size=512\n"
        subprocess.run([ROOT / "build/data/make_recording", tmp_path / f"in/start{nth}.gmt"], input=text.encode(), check=True)
    shutil.copy(ROOT / "tests/data/v4/extra.gmt", tmp_path / "in")
    shutil.copy(EXAMPLE / "old.gmt", tmp_path / "in")
    (tmp_path / "in/broken.gmt").write_bytes((EXAMPLE / "old.gmt").read_bytes()[:40])
    said = collect(tmp_path / "in", "-o", tmp_path / "lake", "--tables", "allocations", code=3)
    assert said["skipped"] == 1 and [r["file"] for r in said["recordings"] if "error" in r] == [f"{tmp_path}/in/broken.gmt"]
    assert {r["recording"] for r in ask("select parse_filename(recording) as recording from ranks", tmp_path / "lake")} >= {"old.gmt", "extra.gmt", "now.gmt", "1969.gmt"}
    assert ask("select max(size) as most from allocations where parse_filename(process) is not null", tmp_path / "lake")[0]["most"] <= 2**63 - 1
    (events,) = ask("select max(size) as most, count(*) as n from events", tmp_path / "in/now.gmt")
    assert events == {"most": 2**63 - 1, "n": 5}


@pytest.mark.parametrize("name", ["v3/thinned.gmt", "v4/thinned.gmt"])
def test_the_peak_is_that_of_report(tool, tmp_path, name):
    """Also of a bounded recording, which has no blocks of that moment."""
    path = ROOT / "tests/data" / name
    if not path.exists():
        pytest.skip("this version has no bounded recording")
    collect(path, "-o", tmp_path / "lake")
    peaks = [d["peak_bytes"] for d in tool.json("report", path)["devices"]]
    assert ask("select peak_bytes from ranks", tmp_path / "lake") == [{"peak_bytes": max(peaks)}] and max(peaks) > 0


@readers
def test_twice_is_once(tmp_path):
    """The same recordings again, one of them longer by now, under another name, then in another project."""
    folder, lake = runs(tmp_path / "runs"), tmp_path / "lake"
    collect(folder / "0/run.0.gmt", folder / "0/run.1.gmt", "-o", lake)
    first = rows_in(lake)
    collect(folder / "0/run.1.gmt", "-o", lake)
    assert rows_in(lake) == first and len(files(lake)) == 5, "no file twice"
    shutil.copy(folder / "0/run.2.gmt", folder / "again.gmt")
    collect(folder / "0", folder / "again.gmt", "-o", lake)
    assert set(first["steps"]) < set(rows_in(lake)["steps"])
    assert ask("select count(*) as n, count(distinct run) as runs, max(ranks) as ranks from runs", lake) == [{"n": 1, "runs": 1, "ranks": 4}]
    collect(folder / "0", "--project", "other", "-o", lake, "--tables", "allocations")
    assert all("'project': 'other'" in r for rows in rows_in(lake).values() for r in rows)
    with_blocks = ask("select count(*) as n from allocations", lake)
    collect(folder / "0", "--project", "third", "-o", lake)
    assert ask("select count(*) as n from allocations where project = 'third'", lake) == with_blocks != [{"n": 0}]
    assert ask("select project, count(*) as n from ranks group by project", lake) == [{"project": "third", "n": 4}]


@readers
@pytest.mark.parametrize("harm, events", [("a block", False), ("bytes behind the end", True)])
def test_a_damaged_copy_never_takes_the_place_of_a_whole_one(tmp_path, harm, events):
    """In one call and in several, in either order; the damaged one is longer."""
    whole, damaged = tmp_path / "gpumemtrace.events.whole.gmt", tmp_path / "gpumemtrace.damaged.gmt"
    shutil.copy(EXAMPLE / "new.gmt", whole)
    content = bytearray(whole.read_bytes())
    if harm == "a block":
        content[len(content) // 2] ^= 0xff
    damaged.write_bytes(content + bytes(100_000))
    orders = [[(whole, damaged)], [(damaged, whole)], [(whole,), (damaged,)], [(damaged,), (whole,)]]
    for i, calls in enumerate(orders):
        lake = tmp_path / f"lake{i}"
        for files_of_call in calls:
            last = collect(*files_of_call, "-o", lake)
        assert ask("select recording, damaged, truncated from ranks", lake) == [{"recording": str(whole), "damaged": False, "truncated": False}]
        assert [r["kept_earlier"] for r in last["recordings"]] == [calls[-1] == (damaged,)]
    collect(damaged, "-o", lake, "--project", "other")
    assert ask("select project, recording from ranks", lake) == [{"project": "other", "recording": str(whole)}]
    alone = tmp_path / "alone"
    collect(damaged, "-o", alone)
    (row,) = ask("select damaged, events from ranks", alone)
    assert row["damaged"] and (row["events"] == tool_events(whole)) == events


def tool_events(file):
    return json.loads(call("verify", file, "--json").stdout)["events"]


@readers
def test_ranks_of_several_calls_are_one_run(tmp_path):
    """Each node collects its own ranks, in any order. The same job begun anew is another run, and so is one of another host."""
    lake = tmp_path / "lake"

    def launch(name, start, host="one", **more):
        for rank in (1, 0):
            facts = [f"host {host if more.get('address') == 'localhost' else f'{host}{rank}'}", "cwd /home/u/net", *more.get("facts", ()),
                     f"env.MASTER_ADDR {more.get('address', 'node1')}", "env.MASTER_PORT 29500"]
            text = script(rank, start=1767225600 + start + rank, facts=facts).replace("meta host one\n", "")
            collect(write(tmp_path / name, f"{rank}.gmt", text), "-o", lake)

    def ranks_of_runs():
        return [r["ranks"] for r in ask("select run, count(distinct rank) as ranks from ranks group by run order by run", lake)]

    launch("first", 0)
    assert ranks_of_runs() == [2]
    launch("again", 60)
    assert ranks_of_runs() == [2, 2]
    launch("later", 7200)
    launch("launch", 30, facts=["env.TORCHELASTIC_RUN_ID b5"])
    launch("here", 0, address="localhost")
    launch("there", 0, host="other", address="localhost")
    assert ranks_of_runs() == [2] * 6
    before = rows_in(lake)
    for name in ("first", "here"):
        collect(tmp_path / name, "-o", lake)
    assert rows_in(lake) == before


def at_once(*calls):
    """Starts them all before it waits for the first."""
    started = [subprocess.Popen([Tool.path, "collect", *map(str, c)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for c in calls]
    said = [p.communicate(timeout=600) for p in started]
    assert [p.returncode for p in started] == [0] * len(calls), said
    return said


@readers
def test_several_collect_at_the_same_moment(tmp_path):
    """Eight nodes each collect their rank of one run; two give one run two projects; one waits for a lock and goes on."""
    lake, ranks = tmp_path / "lake", 8
    for rank in range(ranks):
        facts = [f"host node{rank}", "cwd /home/u/net", "env.MASTER_ADDR node0", "env.MASTER_PORT 29500"]
        write(tmp_path / "in", f"{rank}.gmt", script(rank, start=1767225600 + rank, world=ranks, facts=facts).replace("meta host one\n", ""))
    at_once(*[(tmp_path / "in" / f"{rank}.gmt", "-o", lake) for rank in range(ranks)])
    assert ask("select count(distinct run) as runs, count(distinct rank) as ranks, count(*) as n from ranks", lake) == [{"runs": 1, "ranks": ranks, "n": ranks}]
    per_rank = {t: len(rows) // ranks for t, rows in rows_in(lake).items()}
    at_once(*[(tmp_path / "in", "-o", lake, "--project", name) for name in ("a", "b", "a", "b")])
    assert ask("select count(*) as n, count(distinct project) as projects, sum(peak_bytes) as peak from ranks", lake)[0]["n"] == ranks
    assert {t: len(rows) for t, rows in rows_in(lake).items()} == {t: ranks * n for t, n in per_rank.items()}
    (lake / ".new").mkdir()
    with (lake / ".new/lock").open("w") as held:
        fcntl.lockf(held, fcntl.LOCK_EX)
        waits = subprocess.Popen([Tool.path, "collect", tmp_path / "in/0.gmt", "-o", lake, "--project", "late"], stderr=subprocess.PIPE, text=True)
        assert "another collect is writing there" in waits.stderr.readline()
        assert waits.poll() is None
    assert waits.wait(60) == 0 and len(rows_in(lake)["ranks"]) == ranks
    assert call("collect", BAD / "empty.gmt", "-o", tmp_path / "none").returncode == 3 and not (tmp_path / "none").exists()


@readers
def test_snapshots_of_one_name_and_size(tmp_path):
    """PyTorch's own snapshots say no process: what is in them tells them apart, wherever they lie by now."""
    lake = tmp_path / "lake"
    for rank, folder in enumerate("ab"):
        (tmp_path / folder).mkdir()
        block = {"address": 4096, "size": 1024 << rank * 3, "requested_size": 1000, "state": "active_allocated", "frames": []}
        segment = {"device": 0, "address": 4096, "total_size": 2 << 20, "allocated_size": block["size"], "active_size": block["size"], "stream": 0,
                   "segment_type": "small", "blocks": [block]}
        (tmp_path / folder / "snapshot.pickle").write_bytes(pickle.dumps({"segments": [segment], "device_traces": [], "allocator_settings": {}}))
    made = [tmp_path / folder / "snapshot.pickle" for folder in "ab"]
    assert made[0].stat().st_size == made[1].stat().st_size and made[0].read_bytes() != made[1].read_bytes()
    collect(*made, "-o", lake)
    assert [r["end_bytes"] for r in ask("select end_bytes from ranks order by 1", lake)] == [1024, 8192]
    collect(made[1].rename(tmp_path / "b/later.pickle"), "-o", lake)
    assert ask("select count(*) as n from ranks", lake) == [{"n": 2}]


def test_broken_recordings_are_left_out(tmp_path):
    good = write(tmp_path / "in", "good.gmt", script(None))
    shutil.copy(BAD / "text.gmt", tmp_path / "in/bad.gmt")
    done = call("collect", tmp_path / "in", "-o", tmp_path / "lake")
    assert done.returncode == 3 and "1 recording of 1 run collected" in done.stdout
    assert done.stderr.count("\n") == 1 and "bad.gmt" in done.stderr and "skipped" in done.stderr
    said = collect(tmp_path / "in", "-o", tmp_path / "lake", code=3)
    assert [r["file"] for r in said["recordings"] if "error" not in r] == [str(good)] and said["skipped"] == 1
    for args, code, says in [
            ((good,), 2, "-o LAKE"), ((good, "-o", good), 2, "no folder"), ((good, "-o", tmp_path / "x", "--project", "a/b"), 2, "letters"),
            ((tmp_path / "none", "-o", tmp_path / "x"), 3, "none"), ((BAD / "empty.gmt", "-o", tmp_path / "x"), 3, "empty")]:
        done = call("collect", *args)
        assert done.returncode == code and done.stderr.count("\n") == 1 and says in done.stderr, (args, done.stderr)


@readers
def test_texts_of_any_kind(tmp_path):
    """They come through the rows that the tool writes as they are."""
    odd = "a\"b,c'd;\"\" é字 \\n \x01 \t\""
    texts = {"user": ("env.USER", odd), "git_branch": ("git.branch", '"'), "torch": ("torch.version", ","), "python": ("python.version", "null"),
             "job": ("env.SLURM_JOB_ID", "007"), "cuda": ("torch.cuda", "''")}
    text = script(0, facts=[f"{key} {value}" for key, value in texts.values()]).replace("Model.forward", 'Mo"d,el.forward')
    collect(write(tmp_path / "in", "a.gmt", text), "-o", tmp_path / "lake")
    (row,) = ask("select * from ranks", tmp_path / "lake")
    assert {name: row[name] for name in texts} == {name: value for name, (_, value) in texts.items()} and row["git_commit"] is None
    assert 'Mo"d,el.forward' in {r["function"] for r in ask("select function from lines", tmp_path / "lake")}


# Unfinished files


FINE = """
import sys
import duckdb
for path in sys.argv[1:]:
    assert duckdb.execute(f"select count(*) from read_parquet('{path}', hive_partitioning=false)").fetchone()[0] > 0
"""


def whole_files(lake):
    """Those that readers see: each must be whole."""
    seen = [Path(at) / name for at, _, names in os.walk(lake) for name in names
            if name.endswith(".parquet") and name != "schema.parquet" and "/.new" not in at]
    if seen:
        subprocess.run([TOOLS, "-c", FINE, *seen], check=True)
    return seen


def children_of(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


@readers
@pytest.mark.parametrize("who", ["the command", "its Python"])
def test_a_killed_collect(tmp_path, who):
    """At any moment: readers see whole files alone, and what is missing comes with the next call."""
    folder, lake = runs(tmp_path / "runs"), tmp_path / "lake"
    ended = set()
    for after in (0, 0.15, 0.25, 0.3, 0.35, 0.4, 0.45, 0.55):  # the first is always in time
        shutil.rmtree(lake, ignore_errors=True)
        command = subprocess.Popen([Tool.path, "collect", folder, "-o", lake], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        begun = until(lambda: children_of(command.pid))
        time.sleep(after)
        with contextlib.suppress(OSError, IndexError):
            os.kill(command.pid if who == "the command" else int((children_of(command.pid) if after else begun)[0]), signal.SIGKILL)
        ended.add(command.wait(60))
        command.stderr.close()
        whole_files(lake)
    assert ended & {-9, 3} and ended <= {-9, 3, 0}
    assert collect(folder, "-o", lake)["collected"] == 12
    assert ask("select count(*) as n, count(distinct run) as runs from ranks", lake) == [{"n": 12, "runs": 3}]


@readers
def test_a_full_disk(tmp_path):
    """As if it were: nothing longer than so many kB can be written."""
    folder, lake, codes = runs(tmp_path / "runs"), tmp_path / "lake", []
    for blocks in (0, 1, 2, 4, 8, 16, 32, 1000):
        done = subprocess.run(["bash", "-c", f'ulimit -f {blocks}; exec "$@"', "bash", Tool.path, "collect", folder, "-o", lake], capture_output=True, text=True)
        codes.append(done.returncode)
        assert done.returncode in (0, 3) and bool(done.stderr) == bool(done.returncode) and "Traceback" not in done.stderr, (blocks, done)
        whole_files(lake)
        assert done.returncode or ask("select count(*) as n from ranks", lake) == [{"n": 12}]
        assert not list(lake.glob(".new"))
    assert codes[0] == 3 and codes[-1] == 0 and codes == sorted(codes, reverse=True)


CUT = """
import io, os, sys
sys.path.insert(0, sys.argv[1])
from gpumemtrace._answer import Sentence
from gpumemtrace.lake.lake_collect import read_rows
from gpumemtrace.lake.lake_reader import Reader
from gpumemtrace.lake.lake_rows import Recording

def read(nth, index):
    if index == 3:
        os.kill(os.getpid(), 11)
    return {name: b"x" for name in Recording(os.fsencode(sys.argv[2 + index])).small_tables("")}

def rows_of(stream, count):
    return [(r.error, len(r.tables)) for r in read_rows(stream, count)]

reader = Reader(read)
reader.begin([0, 1, 3, 2, 2] * 4, [1] * 20)
whole = reader.rows.read()
reader.end()
rows = rows_of(io.BytesIO(whole), 20)
assert [tables > 3 for _, tables in rows] == [True, False, False, True, True] * 4, rows
assert "not a gpumemtrace recording" in rows[16][0] and rows[17][0] == "reading it was ended by signal 11 (Segmentation fault)", rows
for cut in range(len(whole)):
    try:
        rows_of(io.BytesIO(whole[:cut]), 20)
    except Sentence:
        continue
    sys.exit(f"{cut} bytes of {len(whole)} were taken for all rows")
"""


@readers
def test_rows_that_are_cut(tmp_path):
    """The process that reads recordings is ended: nothing of what it wrote so far is taken for all of it. One that a recording ends is
    replaced."""
    files = [write(tmp_path, "a.gmt", script(0)), BAD / "text.gmt", write(tmp_path, "b.gmt", script(1, oom=True))]
    subprocess.run([TOOLS, "-c", CUT, ROOT / "python", *files], check=True)


PROGRAMS = """
import sys
sys.path.insert(0, sys.argv[1])
from gpumemtrace.lake.lake_rows import program_of
for command, program in [
        ("train.py --run-name exp-17 --batch 8", "train.py --batch 8"), ("train.py --batch 8 --run_name=exp-17", "train.py --batch 8"),
        ("train.py --output_dir out/3 --seed 7 --lr 1e-4", "train.py --lr 1e-4"),
        ("train.py --model-name gpt2 --name a --log-every 10", "train.py --model-name gpt2 --log-every 10"),
        ("train.py -o x.pt --save-steps 5", "train.py --save-steps 5"), ("train.py hydra.run.dir=/tmp/1 model.width=64", "train.py model.width=64"),
        ("train.py --wandb --fp16", "train.py --fp16"),  # a flag, no value
        ("train.py --no-logs", "train.py"), ("-m torch.distributed.run train.py", "-m torch.distributed.run train.py"),
        ("train.py --runs", "train.py --runs"), ("train.py", "train.py"), ("", "")]:
    assert program_of(command) == program, (command, program_of(command))
"""


@readers
def test_commands_without_what_names_one_run():
    subprocess.run([TOOLS, "-c", PROGRAMS, ROOT / "python"], check=True)


# Many


EARLIER = """
import sys
import duckdb
lake, columns = sys.argv[1], sys.argv[2].split(",")
for table in columns.pop(0).split("+"):
    read = f"read_parquet('{lake}/{table}/month=2*/*.parquet', union_by_name=true, hive_partitioning=false)"
    lacks = [c for c in columns if table == "ranks"]
    for project, day, run, rank, process in duckdb.sql(f"select distinct project, day, run, rank, process from {read}").fetchall():
        folder = f"{lake}/{table}/project={project}/day={day}/run={run}/rank={rank}"
        __import__("os").makedirs(folder)
        duckdb.sql(f"copy (select * exclude (project, day, run, rank, process, {', '.join(lacks) or 'class'}) from {read} where process = '{process}')"
                   .replace(", class)", ")") + f" to '{folder}/{process}.parquet' (format parquet)")
    __import__("shutil").rmtree(next(__import__("pathlib").Path(lake, table).glob("month=2*")))
    __import__("shutil").rmtree(f"{lake}/{table}/month=0000-00")
"""

WATCH = """
import sys
sys.path.insert(0, sys.argv[1])
from gpumemtrace.lake.lake_duckdb import Schema, ask, connect
tool, lake, until = sys.argv[2:]
schema, query = Schema(tool), "select count(*), count(distinct process), (select count(*) from (select process, class from classes group by all having count(*) > 1)) from ranks"
last = looks = 0
while last < int(until):
    connection = connect()
    n, distinct, doubled = ask(connection, schema, lake, query, lambda: connection.execute(query).fetchone())
    assert n == distinct and n >= last and not doubled, (n, distinct, last, doubled)
    last, looks = n, looks + 1
for _ in range(20):
    connection = connect()
    assert ask(connection, schema, lake, query, lambda: connection.execute(query).fetchone()) == (last, last, 0)
print(looks)
"""


@readers
def test_a_lake_of_three_hundred(tmp_path, maker):  # noqa: F811
    """Thirty recordings as an earlier version wrote them; the others come in nine calls, each of which is killed once, some very late. A reader
    beside all that sees no recording twice, and none go; after compacting a table has one file a month."""
    lake, many, each = tmp_path / "lake", 300, 30
    for nth in range(many):
        facts = [f"host n{nth % 7}", "cwd /home/u/net", "argv train.py", f"env.MASTER_PORT {nth}", f"git.commit c{nth // 20}"]
        write(tmp_path / f"in{nth // each}", f"{nth}.gmt", script(None, start=1767225600 + nth * 17280, activations=8 + nth % 3, facts=facts).replace("meta host one\n", ""))
    collect(tmp_path / "in0", "-o", lake)
    before = rows_in(lake)
    lacks = ["job_name", "model", "batch", "program"]
    tables = [t for t in SMALL if before[t]]
    subprocess.run([TOOLS, "-c", EARLIER, lake, ",".join(["+".join(tables), *lacks])], check=True)
    assert len(list(lake.glob("ranks/project=net/*/*/*/*.parquet"))) == each and not list(lake.glob("ranks/month=*"))
    without = [{k: v for k, v in r.items() if k not in lacks} for r in ask("from ranks order by process", lake)]
    watch = subprocess.Popen([TOOLS, "-c", WATCH, PACKAGE, Tool.path, lake, str(many)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for call_nth in range(1, many // each):
        killed = subprocess.Popen([Tool.path, "collect", tmp_path / f"in{call_nth}", "-o", lake], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  env={**os.environ, "GPUMEMTRACE_PYTHON": str(TOOLS)})
        with contextlib.suppress(subprocess.TimeoutExpired):
            killed.wait(0.15 * call_nth)
        if killed.poll() is None:
            with contextlib.suppress(OSError, IndexError):
                os.kill(int(Path(f"/proc/{killed.pid}/task/{killed.pid}/children").read_text().split()[0]), signal.SIGKILL)
            killed.wait(60)
        collect(tmp_path / f"in{call_nth}", "-o", lake)
    said = json.loads(call("compact", lake, "--json").stdout)
    assert json_page.check(TABLES, "compact", said) == [] and said["files"] == len(files(lake)) < said["files_before"]
    out, err = watch.communicate(timeout=600)
    assert watch.returncode == 0 and int(out) > 9, err
    assert sorted(str(p.parent.relative_to(lake)) for p in lake.rglob("*.parquet") if "0000" not in p.parent.name) == [
        f"{t}/month=2026-{m:02}" for t in sorted(tables) for m in (1, 2, 3)] and not (lake / ".new").exists()
    after = rows_in(lake)
    assert {t: len(after[t]) for t in tables} == {t: len(before[t]) * many // each for t in tables}
    now = ask("from ranks order by process", lake)
    assert [{k: v for k, v in r.items() if k not in lacks} for r in now if r["program"] is None] == without
    assert sum(r["program"] is not None for r in now) == many - each
    collect(tmp_path / "in0", "-o", lake)
    assert set(before["ranks"]) <= set(rows_in(lake)["ranks"]) and len(rows_in(lake)["lines"]) == len(after["lines"])


@readers
def test_regressions(tmp_path, maker):  # noqa: F811
    """The newest commit of each branch, against the one before or against main; programs, batches and numbers of ranks are compared with their like."""
    lake, plan = tmp_path / "lake", [  # day, commit, branch, program, batch, activations
        (0, "a1", "main", "train.py --run-name x", 8, 100), (1, "a2", "main", "train.py --run-name y", 8, 101), (2, "b1", "wide", "train.py", 8, 140),
        (3, "a3", "main", "train.py", 8, 120), (4, "a3", "main", "train.py --seed 5", 8, 121), (5, "b2", "wide", "train.py", 8, 141),
        (6, "a4", "main", "train.py", 16, 400), (7, "a5", "main", "other.py", 8, 50)]
    (tmp_path / "runs").mkdir()
    for day, commit, branch, program, batch, size in plan:
        facts = [f"git.commit {commit}", f"git.branch {branch}", f"argv {program}", "git.root /home/u/net", f"env.GPUMEMTRACE_LABELS batch={batch}"]
        run_of(tmp_path / "runs" / str(day), ranks=1, every={"start": 1767225600 + day * 86400, "activations": size, "facts": facts})
    collect(tmp_path / "runs", "-o", lake)

    def found(*args):
        done = call("regressions", lake, "--json", *args)
        document = json.loads(done.stdout)
        assert json_page.check(TABLES, "regressions", document) == [] and document["failed"] == (done.returncode == 1)
        return done.returncode, document["compared"], [(r["base_commit"], r["commit"]) for r in document["regressions"]]
    assert found() == (0, 2, [("a2", "a3")]) and found("--fail-above", "5%") == (1, 2, [("a2", "a3")])
    assert found("--fail-above", "30%") == (0, 2, []) and found("--fail-above", "1MiB")[2] == [("a2", "a3")]
    assert found("--against", "main", "--fail-above", "10%") == (1, 2, [("a2", "a3"), ("a3", "b2")])
    assert found("--since", "2026-01-01", "--fail-above", "0.5%")[2] == [("a2", "a3"), ("a1", "a2"), ("b1", "b2")]
    (one,) = json.loads(call("regressions", lake, "--json").stdout)["regressions"]
    assert one["peak_bytes"] - one["base_peak_bytes"] > 19 * MIB and "diff" in one and one["recording"].endswith(("3/run.0.gmt", "4/run.0.gmt"))
    said = call("regressions", lake, "--fail-above", "5%").stdout
    assert "train.py" in said and f"gpumemtrace diff {one['base_recording']}" in said
    shutil.rmtree(tmp_path / "runs/1")
    (one,) = json.loads(call("regressions", lake, "--json").stdout)["regressions"]
    assert "diff" not in one and call("regressions", lake, "--fail-above", "5%").returncode == 1
    for args, code, says in [((lake, "--since", "then"), 2, "2026-11-22"), ((tmp_path,), 3, "no lake"), ((lake, "--fail-above", "much"), 2, "--fail-above")]:
        done = call("regressions", *args)
        assert done.returncode == code and done.stderr.count("\n") == 1 and says in done.stderr, done.stderr


# The schema


def columns_now():
    schema = json.loads(Tool()("sql", "--schema", "--json"))
    return [f"{t['name']}.{c['name']} {c['type']}" for t in schema["tables"] for c in t["columns"]]


def test_the_schema_only_grows():
    """tests/data/lake-columns.txt holds every column that there ever was: add new ones at its end."""
    known = (ROOT / "tests/data/lake-columns.txt").read_text().split("\n")[:-1]
    now = columns_now()
    assert set(known) <= set(now), f"a column is gone or of another type: {sorted(set(known) - set(now))}"
    assert set(now) <= set(known), f"add to tests/data/lake-columns.txt: {sorted(set(now) - set(known))}"


OLDER = """
import sys
import pyarrow.parquet
path = sys.argv[1]
table = pyarrow.parquet.ParquetFile(path).read()
pyarrow.parquet.write_table(table.select([n for n in table.column_names if n not in ("used_bytes", "card")]).append_column(
    "of_later", pyarrow.array([7] * len(table))), path)
"""


@readers
def test_files_of_other_versions_are_read_beside_ours(tmp_path):
    """One file lacks two columns, and has one that this version does not know."""
    lake = tmp_path / "lake"
    for name in ("old", "new"):
        collect(EXAMPLE / f"{name}.gmt", "-o", lake)
    path = max(lake.glob("ranks/month=2026-11/*.parquet"))
    subprocess.run([TOOLS, "-c", OLDER, path], check=True)
    rows = ask("select pid, card, used_bytes > 0 as used, of_later, peak_bytes > 0 as peak from ranks order by pid", lake)
    assert rows == [{"pid": 11609, "card": "rtx4090-24g", "used": True, "of_later": None, "peak": True},
                    {"pid": 11953, "card": None, "used": None, "of_later": 7, "peak": True}]
    assert len(ask("from runs", lake)) == 2
    shutil.rmtree(lake / "growth")
    assert ask("from largest_growth", lake) == []


LACKS = """
import sys
import pyarrow.parquet
table = pyarrow.parquet.ParquetFile(sys.argv[1]).read()
pyarrow.parquet.write_table(table.drop_columns(["program"]), sys.argv[1])
"""
SAME = """
import sys
import duckdb
sys.path.insert(0, sys.argv[1])
import lake
base, made = sys.argv[2:]
lake.make(base, made, 40)
for table in sys.stdin.read().split():
    cells = {*lake.PLACE, *(lake.RANKS if table == "ranks" else ())}
    of, to = (f"read_parquet('{path}/{table}/month=2*/*.parquet', hive_partitioning=false)" for path in (base, made))
    columns = duckdb.sql(f"describe from {of}").fetchall()
    assert columns == duckdb.sql(f"describe from {to}").fetchall(), table
    same = ", ".join(c[0] for c in columns if c[0] not in cells and not (c[1] == "BIGINT" and ("bytes" in c[0] or "_ns" in c[0])))
    n, m, other = duckdb.sql(f"select (select count(*) from {of}), (select count(*) from {to}), (select count(*) from (select {same} from {to} except select {same} from {of}))").fetchall()[0]
    assert m == 40 * n and other == 0, (table, n, m, other)
"""


@readers
def test_lakes_of_the_bench_have_rows_as_collect_writes_them(tmp_path, maker):  # noqa: F811
    """Same columns, types and values, but for those that tell copies apart."""
    collect(runs(tmp_path / "runs") / "0", "-o", tmp_path / "lake")
    subprocess.run([TOOLS, "-c", SAME, ROOT / "tests/bench", tmp_path / "lake", tmp_path / "made"],
                   input="ranks devices classes lines steps", text=True, check=True)
    assert ask("select count(*) as n, count(distinct process) as processes, count(distinct run) as runs from ranks", tmp_path / "made") == [
        {"n": 160, "processes": 160, "runs": 40}]


SHOW = """
import sys
code = sys.argv[1]
names = {}
exec(code, names)
ranks = names["ranks"]
rows = ranks.to_dict("records") if hasattr(ranks, "iloc") else ranks.to_dicts() if hasattr(ranks, "to_dicts") else (
    ranks if hasattr(ranks, "to_pylist") else ranks.to_arrow_table()).to_pylist()
print(sorted([str(r["process"]), str(r["day"]), type(r["day"]).__name__, str(r["month"]), r["peak_bytes"], str(r["program"]).replace("nan", "None")] for r in rows))
"""


@readers
@pytest.mark.parametrize("engine", ["duckdb", "polars", "pyarrow", "pandas"])
def test_engines_as_documented(tmp_path, engine):
    """A month by an earlier version, without a column, others by this version: as docs/lake.md prints it."""
    lake = tmp_path / "lake"
    collect(runs(tmp_path / "runs"), "-o", lake)
    (path,) = lake.glob("ranks/month=2026-01/*.parquet")
    subprocess.run([TOOLS, "-c", LACKS, path], check=True)
    (code,) = re.findall(rf"```python\n(import {engine}\b.*?)```", (ROOT / "docs/lake.md").read_text(), re.S)
    done = subprocess.run([TOOLS, "-c", SHOW, code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    known = ask("select process, day, 'date' as kind, month, peak_bytes, coalesce(program, 'None') as program from ranks", lake)
    assert done.stdout.strip() == str(sorted(list(r.values()) for r in known))


# SQL


@readers
def test_a_lake_elsewhere(tmp_path):
    """By an address, as in object storage: what there is shows only when it is read."""
    lake = tmp_path / "lake"
    collect(EXAMPLE, "-o", lake)
    there = f"file://{lake}"
    assert ask("from ranks", there) == ask("from ranks", lake) and len(ask("from largest_growth", there)) == 1
    shutil.rmtree(lake / "growth")
    assert ask("from largest_growth", there) == [] and ask("select count(*) as n from allocations", there) == [{"n": 0}]
    done = call("sql", "from runs", f"file://{tmp_path}/none")
    assert done.returncode == 3 and done.stderr.endswith("/none is no lake: it has no table with a file\n"), done.stderr
    for args in ((EXAMPLE, "-o", "s3://bucket/lake"), ("s3://bucket/runs", "-o", lake)):
        done = call("collect", *args)
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and "folders of this machine" in done.stderr


@readers
def test_ready_questions(lake, tool):
    names = [v["name"] for v in json.loads(tool("sql", "--schema", "--json"))["views"]]
    answers = {name: ask(f"from {name}", lake) for name in names}
    assert len(answers["runs"]) == 5
    commits = sorted((r for r in answers["peak_by_commit"] if r["project"] == "net"), key=lambda r: r["first_day"])
    assert [(r["git_commit"], r["month"], r["runs"], r["change_bytes"]) for r in commits] == [
        ("aaa1", "2026-01-01", 1, None), ("bbb2", "2026-02-01", 1, 0), ("ccc3", "2026-03-01", 1, commits[2]["peak_bytes"] - commits[1]["peak_bytes"])]
    peaks = [r["peak_bytes"] for r in ask("select peak_bytes from ranks where git_commit = 'ccc3' order by rank", lake)]
    (stray,) = answers["stray_ranks"]
    assert stray["rank"] == 3 and stray["from_median_bytes"] == peaks[3] - statistics.median(peaks) and peaks[0] == peaks[1]
    assert {(r["project"], r["bytes_per_step"]) for r in answers["largest_growth"]} == {("net", 2 * MIB), ("train", 1572864000)}
    unused = {r["user"]: r["recordings"] for r in answers["unused_memory"]}
    assert unused["(not known)"] == 2
    assert {r["alloc_conf"] for r in answers["fragmentation"]} == {"(default)"}
    assert {(r["project"], r["cause"]) for r in answers["out_of_memory"]} >= {("train", "retained_graph")} and len(answers["out_of_memory"]) == 2


@readers
def test_whose_run_it_was(tmp_path, maker):  # noqa: F811
    """Identifiers of schedulers and trackers are columns; a commit is compared with the one before it of its branch, whatever its runs were called."""
    (tmp_path / "runs").mkdir()
    for day, (commit, branch, name, size) in enumerate([("a1", "main", "exp-1", 8), ("b1", "wide", "exp-2", 40), ("a2", "main", "exp-3", 12)]):
        facts = [f"git.commit {commit}", f"git.branch {branch}", f"argv train.py --run-name {name} --batch 8", "env.SLURM_JOB_ID 812", "git.root /home/u/net",
                 f"env.SLURM_ARRAY_TASK_ID {day}", "env.WANDB_PROJECT wide-nets", f"env.WANDB_RUN_ID r{day}", "env.GPUMEMTRACE_LABELS model=llama-8b, batch=16, model=other"]
        run_of(tmp_path / "runs" / str(day), ranks=1, every={"start": 1767225600 + day * 86400, "activations": size, "facts": facts})
    collect(tmp_path / "runs", "-o", tmp_path / "lake")
    rows = ask("select job, job_task, experiment, experiment_run, model, batch, program from ranks order by started", tmp_path / "lake")
    assert [tuple(r.values()) for r in rows] == [("812", str(i), "wide-nets", f"r{i}", "llama-8b", "16", "train.py --batch 8") for i in range(3)]
    rows = {r["git_commit"]: r["change_bytes"] for r in ask("from peak_by_commit", tmp_path / "lake")}
    assert rows["a1"] is None and rows["b1"] is None and rows["a2"] == 4 * MIB


@readers
def test_checkouts_of_two_people(tmp_path, maker):  # noqa: F811
    """Their files have one path, and their runs one project, by the remote; a file of a package has the same path in every environment."""
    (tmp_path / "runs").mkdir()
    for who, root in (("ann", "/home/u"), ("bob", "/data/bob/checkout-2")):
        facts = [f"host {who}", f"git.root {root}", "git.remote github.com/org/net", f"env.USER {who}"]
        text = script(None, facts=facts).replace("meta host one\n", "").replace("/home/u/", f"{root}/").replace(f"{root}/model.py", f"/opt/{who}/site-packages/model.py")
        write(tmp_path / "runs", f"{who}.gmt", text)
    collect(tmp_path / "runs", "-o", tmp_path / "lake")
    assert ask("select distinct project, repository, count(*) as n from ranks group by all", tmp_path / "lake") == [
        {"project": "net", "repository": "github.com/org/net", "n": 2}]
    files = ask("select file, count(distinct process) as n from lines where file is not null group by file", tmp_path / "lake")
    assert sorted((r["file"], r["n"]) for r in files) == [("model.py", 2), ("train.py", 2)]


@readers
def test_strays_are_those_of_report(tool, tmp_path):
    """The same median, of an even number too, and of whole recordings alone."""
    plain = {"start": 1767225600}
    for name, cut, of in [("two", [], {"r1": {"activations": 30}}), ("four", [], {"r1": {"activations": 30}, "r3": {"activations": 20}}),
                          ("part", [0], {"r0": {"activations": 5}}), ("odd", [1], {"r1": {"activations": 5}, "r3": {"activations": 30}})]:
        run = run_of(tmp_path / name, ranks=2 if name == "two" else 4, every=plain, **{k: {**plain, **v} for k, v in of.items()})
        for rank in cut:
            path = run / f"run.{rank}.gmt"
            path.write_bytes(path.read_bytes()[:-8])
        said = [(s["rank"], s["from_median"]) for s in tool.json("report", run)["stray"]]
        asked = [(r["rank"], r["from_median_bytes"]) for r in ask("from stray_ranks order by rank", run)]
        assert asked == said, name
        assert bool(said) == (name != "part"), name


@readers
def test_forms_of_an_answer(lake):
    query = "select 1 as a, 'x,\"y\"' as b, null as c, true as d, 1536 as peak_bytes, timestamptz '2026-01-01 00:00:00+00' as t"
    assert ask(query, lake) == [{"a": 1, "b": 'x,"y"', "c": None, "d": True, "peak_bytes": 1536, "t": "2026-01-01 00:00:00+00"}]
    rows = list(csv.reader(io.StringIO(call("sql", query, lake, "--csv").stdout)))
    assert rows == [["a", "b", "c", "d", "peak_bytes", "t"], ["1", 'x,"y"', "", "true", "1536", "2026-01-01 00:00:00+00"]]
    formulas = "select -5 as n, '=1+1' as a, '+1' as b, '-1' as c, '@x,y' as d, chr(39) || 'q' as e, 'a=b' as f"
    rows = list(csv.reader(io.StringIO(call("sql", formulas, lake, "--csv").stdout)))
    assert rows[1] == ["-5", "'=1+1", "'+1", "'-1", "'@x,y", "''q", "a=b"]
    text = call("sql", query, lake).stdout.splitlines()
    assert len(text) == 2 and "1.5 KiB" in text[1] and text[0].index("peak_bytes") + 10 == text[1].index("1.5 KiB") + 7
    assert "(no rows)" in call("sql", "from ranks where false", lake).stdout


@readers
def test_recordings_are_asked_directly(tool, tmp_path):
    file = EXAMPLE / "new.gmt"
    events = tool.events(file)
    (row,) = ask("select count(*) as n, sum(size) as bytes from events where kind = 'block_alloc'", file, )
    blocks = [e for e in events if e.get("kind") == "block_alloc"]
    assert row == {"n": len(blocks), "bytes": sum(e["size"] for e in blocks)}
    exported = list(csv.DictReader(io.StringIO(tool("export", file, "--to", "csv", "-o", "-"))))
    rows = ask("select class, count(*) as n from allocations group by class", file)
    assert {r["class"]: r["n"] for r in rows} == {c: sum(e["class"] == c for e in exported) for c in {e["class"] for e in exported}}
    both = ask("select r.pid, count(*) as n from ranks r join events e on r.run = e.run group by r.pid order by 1", EXAMPLE)
    assert [r["pid"] for r in both] == [11609, 11953]
    assert len(ask("select * from events limit 3", file)[0]) == 6 + 15
    here = tmp_path / "tmp"
    here.mkdir()
    assert call("sql", "select count(*) from events", file, TMPDIR=str(here)).returncode == 0
    assert not list(here.iterdir()), "the temporary tables stay"


def test_wrong_questions(lake, tmp_path):
    (tmp_path / "python3").write_text("#!/bin/sh\nexit 96\n")
    (tmp_path / "python3").chmod(0o755)
    for args, code, says, more in [
            (("selec", lake), 2, "Parser Error", {}), (("from nothing", lake), 2, "nothing", {}), ((), 2, "query", {}), (("from runs",), 2, "LAKE", {}),
            (("from runs", lake, lake), 2, "one lake", {}), (("from runs", lake, "--csv", "--json"), 2, "exclude", {}),
            (("from runs", BAD / "text.gmt"), 3, "text.gmt", {}), (("from runs", tmp_path / "none"), 3, "none", {}),
            (("from runs", lake), 2, "pip install duckdb", {"GPUMEMTRACE_PYTHON": "", "PATH": str(tmp_path)})]:
        if not TOOLS.exists() and says in ("Parser Error", "nothing"):
            continue
        done = call("sql", *args, **more)
        assert done.returncode == code and done.stdout == "" and done.stderr.count("\n") == 1 and says in done.stderr, (args, done.stderr)


# What comes back of the process that asks DuckDB


# DuckDB draws a bar of its progress after two seconds: here at once, so that the query may be a short one on a busy machine.
SLOW = "select count(*) as n from range(6000000) a join range(5000000) b on a.range = b.range"
LOUD = """
import atexit, os
import duckdb
print("a package that greets")
print('{"rows": 1}', flush=True)
atexit.register(print, "and says goodbye")
os.write(2, b"warning: of something\\n")
connect = duckdb.connect
def draws_at_once():
    connection = connect()
    connection.execute("set progress_bar_time = 1")
    return connection
duckdb.connect = draws_at_once
"""


@readers
def test_a_slow_query_beside_other_output(lake, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(LOUD)
    for setting in ("", "set enable_progress_bar = true; "):
        done = call("sql", setting + SLOW, lake, "--json", PYTHONPATH=str(tmp_path))
        assert (done.returncode, done.stderr) == (0, "") and json.loads(done.stdout)["rows"] == [{"n": 5000000}], done.stdout


PARTS = {  # of the answer: what comes before its end, and the end
    "text": ("", '{"end": {"code": 0, "lines": ["n  s", "7  a"]}}'), "json": ("", '{"end": {"code": 0, "document": {"rows": [{"n": 7, "s": "a"}]}}}'),
    "csv": (r'{"raw": [0, "n,s\n7,a\n"]}', '{"end": {"code": 0}}'), "page": ('{"result": {"name": "all"}}', '{"end": {"code": 0}}')}
ANSWERS = {  # of a stand-in for Python: what it does -> exit code, what is said
    "whole": ("part; end", 0, ""),
    "slow": ("sleep 1; part; sleep 1; end", 0, ""),
    "beside other output": ("echo 97% of it; part; echo '[8, \"b\"]'; echo warning >&2; end; echo done", 0, ""),
    "whole, and a crash behind it": ("part; end; kill -SEGV $$", 0, ""),
    "empty": ("true", 3, "ended with code 0 before the answer"),
    "empty, with a reason": ("echo one >&2; echo no memory >&2; exit 5", 3, "ended with code 5 before the answer of DuckDB was complete: no memory"),
    "no end": ("part", 3, "ended with code 0 before"),
    "cut in its end": ("part; printf '{\"end\": {\"code\": 0, \"lines\": [\"n' >&3", 3, "cannot be read"),
    "cut behind its end": ("part; printf '{\"end\": {\"code\": 0}}' >&3", 3, "cannot be read"),
    "a bar of progress": ("printf '\\r 40%% ####' >&3; part; end", 3, "cannot be read"),
    "text in front": ("echo hello >&3; part; end", 3, "cannot be read: noise on stdout"),
    "a part of another version": ("echo '{\"lines\": 1}' >&3; end", 3, "cannot be read"),
    "an object": ("part; echo '{}' >&3; end", 3, "cannot be read"),
    "more behind the end": ("part; end; echo '{\"note\": [0, \"a\"]}' >&3", 3, "cannot be read"),
    "ended by a signal": ("part; kill -KILL $$", 3, "ended by signal 9"),
    "an error": ("""printf '{"error": [2, "DuckDB: Parser Error: so"]}\\n' >&3""", 2, "DuckDB: Parser Error: so"),
    "an error behind a part": ("""part; printf '{"error": [3, "DuckDB: IO Error: disk"]}\\n' >&3""", 3, "DuckDB: IO Error: disk"),
}


def stand_in(python, form, does):
    part, end = PARTS[form]
    part = f"printf '%s\\n' '{part}' >&3" if part else ":"
    python.write_text(f"#!/bin/bash\npart() {{ {part}; }}\nend() {{ printf '%s\\n' '{end}' >&3; }}\necho noise on stdout\n{does}\n")
    python.chmod(0o755)


@pytest.mark.parametrize("answer", ANSWERS)
def test_answers_of_the_process(lake, tmp_path, answer):
    """Nothing but a whole answer is one; a page that was there stays as it is."""
    does, code, says = ANSWERS[answer]
    python, page = tmp_path / "python", tmp_path / "lake.html"
    for form, words in [("text", ()), ("json", ("--json",)), ("csv", ("--csv",))]:
        stand_in(python, form, does)
        done = call("sql", "from ranks", lake, *words, GPUMEMTRACE_PYTHON=str(python))
        assert done.returncode == code and says in done.stderr and done.stderr.count("\n") == bool(code), (form, done)
        if code and form != "csv":
            assert done.stdout == "" or answer == "more behind the end"
        if not code:
            whole = {"text": "n  s\n7  a\n", "csv": "n,s\n7,a\n"}
            assert json.loads(done.stdout)["rows"] == [{"n": 7, "s": "a"}] if form == "json" else done.stdout == whole[form]
    stand_in(python, "page", does)
    page.write_text("<!doctype html>\n<!-- SPDX before")
    done = call("dashboard", lake, "-o", page, GPUMEMTRACE_PYTHON=str(python))
    assert done.returncode == code and says in done.stderr and (page.read_text() == "<!doctype html>\n<!-- SPDX before") == bool(code)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lake.html", "python"]


# The dashboard


@readers
@pytest.mark.parametrize("query", ["from ranks", "select * from steps", "select command, recording, project, peak_bytes from ranks",
                                    "select 'x' as a_name_that_is_longer_than_any_of_the_cells_below_it, 1 as b", "select repeat('\u4e2d', 200) as c, 2 as d"])
def test_a_table_is_no_wider_than_the_terminal(lake, terminal, query):
    """In a pipe all of it is printed."""
    for columns in (40, 80, 200):
        t = terminal(Tool.path, "sql", "--no-pager", query, lake, columns=columns, GPUMEMTRACE_PYTHON=str(TOOLS))
        assert t.ended() == 0, t.text
        assert all(len(line) <= columns for line in t.text.splitlines()), t.text
    names = ask(query, lake)[0].keys()
    whole = call("sql", query, lake).stdout
    assert whole.splitlines()[0].split() == list(names) and " more columns" not in whole
    assert (" more columns (" in t.text) == (len(names) > 20)


@readers
def test_commits_of_a_day_are_in_order_of_time(tmp_path, maker):  # noqa: F811
    """As the column `change` is, and not by their hash."""
    (tmp_path / "runs").mkdir()
    commits = [("f00d", 8), ("0bad", 12), ("a1fa", 10), ("9999", 30)]
    for nth, (commit, size) in enumerate(commits):
        run_of(tmp_path / "runs" / str(nth), ranks=1, every={"start": 1767225600 + nth * 60, "activations": size, "facts": [f"git.commit {commit}", "git.root /home/u/net"]})
    collect(tmp_path / "runs", "-o", tmp_path / "lake")
    assert call("dashboard", tmp_path / "lake", "-o", tmp_path / "lake.html").returncode == 0
    document = json.loads(re.search(r'<script[^>]*id="first"[^>]*>(.*?)</script>', (tmp_path / "lake.html").read_text(), re.S)[1])
    panel = next(p for p in document["panels"] if p["name"] == "peaks")
    names = [name for name, _ in panel["columns"]]
    assert [row[names.index("git_commit")] for row in panel["rows"]] == [commit for commit, _ in commits]
    assert [row[names.index("change_bytes")] for row in panel["rows"]] == [None, 4 * MIB, -2 * MIB, 20 * MIB]


@needs_browser
def test_rows_of_the_dashboard_are_low(tmp_path, maker):  # noqa: F811
    """Long texts are shown in three lines until they are chosen, so that a row whose text is out of sight is not a high empty one."""
    (tmp_path / "runs").mkdir()
    run_of(tmp_path / "runs/0", ranks=1, every={"start": 1767225600, "facts": ["argv train.py " + "--option=value_of_it " * 60, "git.root /home/u/net"]})
    collect(tmp_path / "runs", EXAMPLE, "-o", tmp_path / "lake")
    assert call("dashboard", tmp_path / "lake", "-o", tmp_path / "lake.html").returncode == 0
    high = "() => Math.max(...[...document.querySelectorAll('table.lake tr')].map((r) => r.getBoundingClientRect().height))"
    low, _, whole = browse(tmp_path / "lake.html", high, "() => document.querySelectorAll('.long').forEach((x) => x.click())", high)
    assert low < 90 < whole


@needs_browser
def test_dashboard(lake, tmp_path):
    """It shows what the queries say, sorts by a click, finds by words, and takes no text for markup."""
    page, all_runs = tmp_path / "lake.html", tmp_path / "all"
    shutil.copytree(lake, all_runs)
    foreign = "<img src=x onerror=alert(1)></script>"
    collect(write(tmp_path / "in", "a.gmt", script(None, facts=[f"git.commit {foreign}", "cwd /home/u/odd"])), "-o", all_runs)
    done = call("dashboard", all_runs, "-o", page, "--json")
    assert done.returncode == 0 and json.loads(done.stdout) == {"file": str(page), "bytes": page.stat().st_size}
    rows = "[...document.querySelectorAll('#table-runs tbody tr')].map(r => r.textContent)"
    sort = "[...document.querySelectorAll('#table-runs th button')].find(b => b.textContent === 'peak').click()"
    found = browse(page, {"evaluate": rows}, {"evaluate": sort}, {"evaluate": rows},
                   {"evaluate": "document.getElementById('summary').textContent"}, {"evaluate": "document.body.textContent.includes('<img src')"},
                   {"evaluate": "document.images.length"})
    before, _, after, summary, shown, images = found
    assert sorted(before) == sorted(after) and len(after) == 6 and "21.8 GiB" in after[0] and "11.6 GiB" in after[1]
    assert summary.startswith("15 recordings of 6 runs") and "2 ran out of memory" in summary
    assert shown and images == 0


@readers
@needs_browser
def test_runs_of_the_dashboard_lead_to_their_pages(lake, tmp_path):
    """A run whose page lies beside its recording is a link to it, from wherever the dashboard is; others say where the recording lies."""
    said = {r["run"]: Path(r["recording"]) for r in ask("select run, min(recording) as recording from ranks group by all", lake)}
    paged = [p for p in said.values() if p.parent != EXAMPLE][:2]
    folder = tmp_path / "a b" / "#1"
    folder.mkdir(parents=True)
    try:
        for one, name in zip(paged, (paged[0].with_suffix(".html"), f"{paged[1]}.html")):
            Path(name).write_text("<!doctype html>")
        assert call("dashboard", lake, "-o", folder / "lake.html").returncode == 0
        (cells,) = browse(folder / "lake.html", {"evaluate": "[...document.querySelectorAll('#table-runs tbody td')].map((c) => [c.innerText.split(' ')[0].trim(), c.querySelector('a')?.href, c.querySelector('button')?.title]).filter((c) => c[1] || c[2])"})
    finally:
        for one in paged:
            for name in (one.with_suffix(".html"), Path(f"{one}.html")):
                name.unlink(missing_ok=True)
    assert len(cells) == len(said)
    for run, link, copy in cells:
        where = said[run]
        if where in paged:
            page = Path(urllib.parse.unquote(urllib.parse.urlsplit(link).path))
            assert page in (where.with_suffix(".html"), Path(f"{where}.html")) and copy is None
        else:
            assert link is None and copy == f"Copy {where}"


DRAWN = """(() => { const c = document.querySelector('#peaks canvas') || document.querySelector('canvas'), g = c.getContext('2d');
  const d = g.getImageData(0, 0, c.width, c.height).data, seen = new Set(); for (let i = 0; i < d.length; i += 4) if (d[i + 3]) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);
  return [seen.size, document.querySelectorAll('#table-runs tbody tr').length, document.body.innerText.length, performance.now()]; })()"""


@readers
@needs_browser
def test_dashboard_of_five_thousand_runs(tmp_path, maker):  # noqa: F811
    """Drawn and ready at once; what its tables leave out is counted."""
    collect(runs(tmp_path / "runs"), "-o", tmp_path / "base")
    subprocess.run([TOOLS, ROOT / "tests/bench/lake.py", tmp_path / "base", tmp_path / "lake", "5000"], check=True)
    start = time.monotonic()
    assert call("dashboard", tmp_path / "lake", "-o", tmp_path / "lake.html").returncode == 0
    made = time.monotonic() - start
    (colours, rows, text, ready), summary, left = browse(tmp_path / "lake.html", {"evaluate": DRAWN}, {"evaluate": "document.getElementById('summary').textContent"},
                                                         {"evaluate": "document.body.innerText.includes('rows left out: gpumemtrace sql has them')"})
    assert colours > 5 and rows == 300 and text > 5000 and summary.startswith("20,004 recordings of 5,001 runs") and left
    assert ready < 3000 * slowness() and made < 10 * slowness(), (ready, made)


def test_no_dashboard_of_what_is_no_lake(tmp_path):
    (tmp_path / "notes").write_text("mine")
    for args, code, says in [((tmp_path, "-o", tmp_path / "x"), 3, "no lake"), ((tmp_path,), 2, "-o OUT.html")]:
        done = call("dashboard", *args)
        assert done.returncode == code and done.stdout == "" and done.stderr.count("\n") == 1 and says in done.stderr


@readers
def test_commands_of_the_document_run(tmp_path):
    runs(tmp_path / "runs")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/gpumemtrace").symlink_to(Tool.path)
    env = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "GPUMEMTRACE_PYTHON": str(TOOLS)}
    for block in re.findall(r"```sh\n(.*?)```", (ROOT / "docs/lake.md").read_text(), re.S):
        done = subprocess.run(["bash", "-ec", block], cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.returncode == 0 and done.stdout, (block, done.stderr)
