# SPDX-License-Identifier: Apache-2.0
"""ctl asks a running process: what it holds stays what PyTorch counts, paused or not."""
import mmap
import os
import shutil
import signal
import subprocess
import tempfile

import pytest

from test_top import MIB, Held


@pytest.fixture
def held(programs):
    h = Held(programs)
    yield h
    if h.process.poll() is None:
        h.process.send_signal(signal.SIGCONT)
        h.process.kill()
        h.process.wait()


def refused(tool, *args, **options):
    done = subprocess.run([tool.path, "ctl", *map(str, args)], capture_output=True, text=True, timeout=600, **options)
    assert not done.stdout and done.stderr.count("\n") == 1, done.stderr
    return done.returncode, done.stderr


def born_after(tool, file, mark):
    since = next(e["seq"] for e in tool.events(file) if e.get("kind") == "mark" and e["name"] == mark)
    return [e for e in tool.events(file) if e.get("kind") == "block_alloc" and e["seq"] > since]


def test_pause_resume_mark_snapshot_stats(held, tool, programs):
    said = tool.json("ctl", held.pid, "pause")
    assert said == {"pid": held.pid, "recording": str(held.file), "what": "pause", "paused": True}
    for size in (3 * MIB, 700000):
        held.take(size)
        assert tool.json("live", held.file, "--at", "end")["bytes"] == held.allocated
    assert tool.json("ctl", held.file, "mark", "in the pause")["paused"] is True
    paused = born_after(tool, held.file, "recording paused")
    assert len(paused) > 10 and not any(e["stack"] for e in paused)
    times = [e["time_ns"] for e in paused]
    assert times == sorted(times)
    snapshot = programs.folder / "now.gmt"
    said = tool.json("ctl", held.pid, "snapshot", snapshot)
    assert said["snapshot"] == str(snapshot) and said["events"] == tool.json("report", snapshot)["events"] > 50
    assert tool.json("live", snapshot, "--at", "mark:in the pause")["bytes"] == held.allocated
    assert "stops before the run's end" in tool("report", snapshot)
    assert tool.json("verify", snapshot)["ok"] and not list(programs.folder.glob("now.gmt*.*"))
    assert "again" in tool("ctl", held.pid, "resume") and tool.json("ctl", held.pid, "resume")["paused"] is False
    held.take(MIB)
    held.take(MIB)
    assert any(e["stack"] for e in born_after(tool, held.file, "recording resumed"))
    assert len([e for e in tool.events(held.file) if e.get("kind") == "mark"]) == 3
    stats = tool.json("ctl", held.pid, "stats")["stats"]
    assert stats["answers"] and stats["dropped"] == stats["stacks_cut"] == 0 and 1 <= stats["threads"] <= stats["rings"]
    assert stats["events"] >= tool.json("report", held.file)["events"] and 0 < stats["stack_nodes"] < 100000
    assert 1 * MIB < stats["recorder_bytes"] < 64 * MIB and 0 <= stats["fullest_ring"] <= 1
    assert "dropped       0" in tool("ctl", held.pid, "stats")
    assert tool.json("live", held.file, "--at", "end")["bytes"] == held.allocated
    held.end()
    assert tool.json("verify", held.file)["ok"]
    facts = tool.json("info", held.file)["meta"]
    assert MIB < int(facts["recorder.memory_bytes"]) < 64 * MIB and int(facts["recorder.stack_nodes"]) >= stats["stack_nodes"]
    assert refused(tool, held.file, "pause")[0] == 2


def test_a_stopped_process(held, tool, programs):
    held.process.send_signal(signal.SIGSTOP)
    assert "stopped or busy" in tool("ctl", held.pid, "stats")
    assert tool.json("ctl", held.pid, "snapshot", programs.folder / "stopped.gmt")["events"] > 0
    assert tool.json("live", programs.folder / "stopped.gmt", "--at", "end")["bytes"] == held.allocated
    code, said = refused(tool, held.pid, "pause")
    assert code == 1 and "is stopped and does not answer" in said
    held.process.send_signal(signal.SIGCONT)
    held.take(MIB)
    assert tool.json("ctl", held.pid, "mark", "x")["paused"] is False, "what was taken back is not carried out later"


def test_who_is_refused(held, tool, programs):
    assert refused(tool, 2 ** 22 + 1, "stats") == (2, f"gpumemtrace ctl: there is no process {2 ** 22 + 1}, and no file of that name\n")
    assert "writes no recording" in refused(tool, os.getpid(), "stats")[1]
    for args in (["stop"], ["mark"], ["mark", ""], ["snapshot"], ["pause", "now"]):
        assert refused(tool, held.pid, *args)[0] == 2
    own = programs.folder / "own.txt"
    own.write_text("mine")
    assert refused(tool, held.pid, "snapshot", own)[0] == 2 and own.read_text() == "mine"
    assert refused(tool, held.pid, "snapshot", held.file)[0] == 2
    for name in ("other.gmt.live", f"{held.file}.live"):
        code, said = refused(tool, held.pid, "snapshot", programs.folder / name)
        assert code == 2 and said.count("\n") == 1, said
    assert not (programs.folder / "other.gmt.live").exists()
    with open(f"{held.file}.live", "r+b") as file, mmap.mmap(file.fileno(), 4096) as page:
        page[1024:1028] = bytes(4)
        code, said = refused(tool, held.pid, "stats")
        assert code == 2 and "older version" in said
        page[1024:1028] = b"\1\0\0\0"
    tool("ctl", held.pid, "stats")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a program as another user")
def test_another_user(held, tool):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        copy = shutil.copy(tool.path, folder)
        done = subprocess.run([copy, "ctl", str(held.pid), "pause"], user=65534, capture_output=True, text=True)
        assert done.returncode == 3 and f"process {held.pid}" in done.stderr and "another user" in done.stderr
