# SPDX-License-Identifier: Apache-2.0
"""`gpumemtrace fit --ranks` of a world larger than the machine: PyTorch's own client of the rendezvous, groups of gloo and NCCL with
ranks that do not run, and the shards of those that do."""
import json
import os
import re
import signal
import socket
import subprocess
import sys

import json_page
import pytest
import toy
from conftest import BUILD, ENDS_BADLY, REAL, TABLES, until, with_more

pytestmark = pytest.mark.skipif(REAL or not (BUILD / "libsimgpu.so").exists(), reason="for the simulated device")
# Members of `fit --json` that no other search has.
OF_LARGE_WORLDS = {("fit_card", m) for m in ("ranks", "nccl_bytes", "nccl_least_bytes", "nccl_most_bytes")} | {
    ("fit_rank", m.name) for m in TABLES["fit_rank"][1]}
PROGRAMS = os.path.join(toy.ROOT, "tests/fit/world_programs.py")


def fit(folder, ranks, *args):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_"))}
    for again in (True, False):
        done = subprocess.run([toy.TOOL, "fit", "--json", "--ranks", ranks, "--cards", "h100-80g", "-o", folder, "--", sys.executable, PROGRAMS, *args],
                              env={**env, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}, capture_output=True, text=True, timeout=500)
        if not (again and "exit code 134: " + ENDS_BADLY in done.stderr):
            break
        for path in folder.iterdir():
            path.unlink()
    logs = "".join(p.read_text() for p in folder.glob("*.log"))
    assert done.returncode == 0, done.stderr + logs[-4000:]
    document = json.loads(done.stdout)
    seen = set()
    assert json_page.check(TABLES, "fit", document, seen) == []
    assert OF_LARGE_WORLDS <= seen
    return document["cards"][0], logs


def test_shards_of_512(tmp_path):
    """Objects by gloo and by NCCL, a sum, a barrier; then FSDP2: six blocks of 512 x 2048, evenly over all ranks but for what is
    shorter than there are ranks."""
    card, logs = fit(tmp_path, "512", "gloo")
    assert [r["rank"] for r in card["ranks"]] == [0, 256, 511]
    assert len({(r["peak_bytes"], r["peak_reserved_bytes"]) for r in card["ranks"]}) == 1
    assert card["peak_bytes"] == card["ranks"][0]["peak_bytes"]
    block = (2048 * 512 + 2048 + 512 * 2048 + 512 + 2 * 512) // 512
    assert re.findall(r"elements (\d+)", logs) == [str(6 * block)] * 3
    assert card["nccl_least_bytes"] < card["nccl_bytes"] < card["nccl_most_bytes"] < 8 << 30
    assert all((tmp_path / r["recording"]).exists() for r in card["ranks"])
    said = json.loads(subprocess.run([toy.TOOL, "report", "--json", tmp_path], capture_output=True, text=True, check=True).stdout)
    assert [(r["rank"], r["devices"][0]["peak_bytes"]) for r in said["ranks"]] == [(r["rank"], r["peak_bytes"]) for r in card["ranks"]]
    assert "note" not in said


def test_a_pipeline(tmp_path):
    """Shapes reach each stage from the nearest one before it that runs."""
    card, logs = fit(tmp_path, "64:0,32,63", "pipeline")
    first, middle, last = (r["peak_bytes"] for r in card["ranks"])
    assert card["peak_bytes"] == max(first, middle, last) and first > middle and last > middle
    assert len(re.findall(r"elements (\d+)", logs)) == 3


def test_a_pipeline_of_two_stages(tmp_path):
    """Two of the ranks that run are of its last stage: neither can send what the other receives."""
    card, logs = fit(tmp_path, "64:0,32,63", "pipeline", "two")
    first, middle, last = (r["peak_bytes"] for r in card["ranks"])
    assert middle == last != first
    assert len(re.findall(r"elements (\d+)", logs)) == 3


def test_symmetric_memory(tmp_path):
    """Ranks that do not run share memory with those that do; a rank has its own alone."""
    card, logs = fit(tmp_path, "16:3,12", "symmetric")
    assert logs.count("elements 1048576") == 2
    first, second = (r["peak_bytes"] for r in card["ranks"])
    assert first == second


def test_symmetric_memory_through_a_file(tmp_path):
    """Ranks of one node, the first of it and not, and of a node of which nothing else runs; none finds what another wrote."""
    _, logs = fit(tmp_path, "16:0,3,12", "shared_file")
    files = re.findall(r"file (\S+)", logs)
    assert len(set(files)) == 3
    assert not any(os.path.exists(f) for f in files)


# ---- the process that simulates the other ranks ----


def start(folder, ranks, *command, **env):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_"))}
    return subprocess.Popen([toy.TOOL, "fit", "--ranks", ranks, "--cards", "h100-80g", "-o", folder / "search", "--", *command], cwd=folder,
                            env={**kept, **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def processes(size):
    """The stand-ins of a world of that size: their ids and their parents'."""
    rows = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout.splitlines()
    return [[int(n) for n in row.split()[:2]] for row in rows if row.endswith(f" -I -S - {size} 2")]


@pytest.mark.parametrize("how", ["interrupted", "killed", "run killed", "ended"])
def test_no_process_and_no_port_is_left(how, tmp_path):
    size = 100_000 + os.getpid()
    search = start(tmp_path, f"{size}:0,1", "sh", "-c", "echo $MASTER_PORT >$RANK.new; mv $RANK.new port.$RANK; while [ ! -e go ]; do sleep 0.1; done")
    ports = [int(until(lambda path=path: path.exists() and path.read_text())) for path in (tmp_path / "port.0", tmp_path / "port.1")]
    for port in ports:
        socket.create_connection(("127.0.0.1", port), timeout=10).close()
    (_, run), = processes(size)
    if how == "ended":
        (tmp_path / "go").touch()
    elif how == "run killed":
        os.kill(run, signal.SIGKILL)
    else:
        search.send_signal(signal.SIGINT if how == "interrupted" else signal.SIGKILL)
    _, said = search.communicate(timeout=600)
    assert search.returncode == {"interrupted": 130, "killed": -signal.SIGKILL}.get(how, 3), said
    until(lambda: not processes(size), 10)
    for port in ports:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=10)


def fake(folder, text):
    path = folder / "python3"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_which_python_it_is(tmp_path):
    def fails(*command, code, **env):
        search = start(tmp_path, "20", *command, PATH=str(tmp_path), **env)
        _, said = search.communicate(timeout=600)
        assert search.returncode == code and said.count("\n") == 1
        return said

    none = "the runs are started by Python 3.9 or later, and neither python3 nor python on the PATH is that"
    program = ["-c", "print('it ran')"]
    assert none in fails("/bin/sh", "-c", "true", code=2)
    assert "It printed last: it ran" in fails(sys.executable, *program, code=3)  # the program's own
    assert "It printed last: it ran" in fails("/bin/sh", "-c", "echo it ran", code=3, GPUMEMTRACE_PYTHON=sys.executable)
    fake(tmp_path, "exit 1")
    assert none in fails("/bin/sh", "-c", "true", code=2)
    assert "It printed last: it ran" in fails(sys.executable, *program, code=3, GPUMEMTRACE_PYTHON="/no/such/python")
    # The process that simulates the other ranks does not start: one that runs the search, and nothing else.
    fake(tmp_path, 'case "$*" in *" - "*) echo no memory left >&2; exit 1;; esac\n'
         f"exec /bin/bash -c 'exec -a \"$0\" {sys.executable} \"$@\"' \"$0\" \"$@\"")
    assert "exit code 126: no memory left" in fails("/bin/sh", "-c", "true", code=3)


# ---- ranks that are late, and ranks that are not run ----


@pytest.mark.parametrize("how", with_more(["work", "child", "sleep"], {"child"}))
def test_a_late_stage(how, tmp_path):
    """The last stage waits while the first one works, or a compiler of its; one that sleeps is given up, and that is said."""
    fifo = tmp_path / "given_up"
    os.mkfifo(fifo)
    done = subprocess.run([toy.TOOL, "fit", "--ranks", "8:0,7", "--cards", "h100-80g", "-o", tmp_path, "--", sys.executable,
                           os.path.join(toy.ROOT, "tests/workloads/late_stage.py"), how, fifo],
                          env={**os.environ, "OMP_NUM_THREADS": "1", "SIMGPU_WAIT": "2.5"}, capture_output=True, text=True, timeout=600)
    logs = "".join(p.read_text() for p in tmp_path.glob("*.log"))
    assert done.returncode == 0, done.stderr + logs
    if how == "sleep":
        assert "received nothing" in logs
        assert re.search(r"simgpu: rank 7 has waited \d+ s for what rank 0 would send, and no processor was used", logs)
    else:
        assert "received ['shape', (4, 8192)]" in logs and "has waited" not in logs
    assert logs.count("objects [None, None]") == 2
    assert logs.count("receives a broadcast of rank 4, which no rank that runs knows") == 2
