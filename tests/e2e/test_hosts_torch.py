# SPDX-License-Identifier: Apache-2.0
"""PyTorch programs that a recorder could break (`tests/workloads/hosts_torch.py`), as `test_hosts.py` does it with C programs:
each ends as it does alone, and what is recorded plus what is counted as dropped is what PyTorch's own counters say."""
import json
import signal
import struct
import subprocess
import sys
import time

import pytest
import toy
from conftest import REAL, Programs, until

from test_hosts import LONG

pytestmark = pytest.mark.skipif(REAL, reason="hosts of the simulated device")

# host: the program; more: its settings; fast: in `make test`; loss: events may be dropped; gone: no recording is left;
# same: the counters are those of the program alone
HOSTS = [
    ("profiler", "a handler of SIGPROF at 1 kHz, which allocates", dict(fast=True)),
    ("threads", "300 short threads, 100 of them cancelled meanwhile", dict(same=True)),
    ("loader", "DataLoader workers by fork, three epochs", dict(same=True)),
    ("forks", "a thread forks while another trains: children that end and that run a program", dict(fast=True)),
    ("closed", "0, 1 and 2 closed before the first call", dict(same=True)),
    ("reused", "closes all (`os.closerange`), its own files get the numbers", dict(fast=True, same=True, settings=dict(COUNT=20))),
    ("reused", "the same, and trains on: more than a ring holds", dict(loss=True, same=True, settings=dict(COUNT=400))),
    ("moved", "the folder of the recording is renamed", dict(same=True)),
    ("moved", "the same, of a bounded recording", dict(same=True, settings=dict(COUNT=400, GPUMEMTRACE_MAX_SIZE="4MiB"))),
    ("emptied", "the folder of the recording is removed", dict(same=True, gone=True)),
    ("full", "the recording's tmpfs has room for one ring", dict(same=True, disk="700k", loss=True, settings=dict(COUNT=600))),
    ("address_space", "`RLIMIT_AS` after three steps, 256 MiB above what there was", dict(same=True)),
    ("file_size", "`RLIMIT_FSIZE` of 4 KiB after three steps", dict(same=True, loss=True)),
    ("title", "writes over its arguments and environment (setproctitle)", dict(fast=True, same=True)),
    ("confined", "seccomp after three steps: no files, no threads", dict(same=True)),
]


class Machine:
    def __init__(self, folder):
        self.folder = folder

    def start(self, folder, name, traced, settings={}):
        (folder / "out").mkdir(parents=True, exist_ok=True)
        programs = Programs(folder, quick=False)
        env = programs.environment(traced=traced, MADE_FOLDER=folder, GPUMEMTRACE_OUTPUT=folder / "out/run.gmt", **settings)
        return subprocess.Popen([sys.executable, programs.workload("hosts_torch.py"), name], env=env, cwd=folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, folder, name, traced, settings={}, **_):
        """(how it ended, what it wrote), its counters, what was said."""
        running = self.start(folder, name, traced, settings)
        out, err = running.communicate(timeout=300)
        files = {p.name: p.read_bytes() for p in folder.glob("*.db")}
        return (running.returncode, out, files), struct.unpack("<qq", (folder / "made").read_bytes()[:16]), err


def recorded(folder):
    """(allocations, frees, events that are said to be lost) of the recordings there."""
    total = [0, 0, 0]
    for path in folder.rglob("*.gmt"):
        info = json.loads(toy.tool("info", path, "--json"))
        kinds = {k["kind"]: k["count"] for k in info["kinds"]}
        left_out = int(toy.facts(path).get("thinned.allocations", 0))
        for i, n in enumerate((kinds.get("block_alloc", 0) + left_out, kinds.get("block_free", 0) + left_out, info["dropped"])):
            total[i] += n
    return total


def both(machine, folder, name, how):
    """The program alone and recorded: (its ends, what PyTorch counted, what is recorded and lost)."""
    alone, as_alone, _ = machine.run(folder / "alone", name, False, **how)
    place = folder / "ours/out"
    place.mkdir(parents=True)
    if how.get("disk") and subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={how['disk']}", "tmpfs", place], capture_output=True).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        ours, made, said = machine.run(folder / "ours", name, True, **how)
        found = recorded(folder / "ours")
    finally:
        if how.get("disk"):
            subprocess.run(["umount", "-l", place], check=True)
    assert said.count("\n") <= 1, said
    assert not how.get("same") or made == as_alone, (name, as_alone, made, alone, ours, said)
    return alone, ours, made, found


def check(how, made, found):
    allocs, frees, dropped = found
    assert made[0] > 100
    if how.get("gone"):
        assert found == [0, 0, 0]
    elif not dropped:
        assert (allocs, frees) == made
    else:  # events of other kinds are among the lost ones
        assert how.get("loss") and allocs <= made[0] and frees <= made[1]
        assert 0 < sum(made) - allocs - frees <= dropped


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    return Machine(tmp_path_factory.mktemp("torch"))


@pytest.mark.parametrize("name,what,how", [h for h in HOSTS if LONG or h[2].get("fast")])
def test_a_torch_host_ends_as_alone(machine, tmp_path, name, what, how):
    alone, ours, made, found = both(machine, tmp_path, name, how)
    assert alone == ours and alone[0] == 0
    check(how, made, found)


def peaks(path):
    """What each command says of the peak."""
    report = json.loads(toy.tool("report", path, "--json"))["devices"][0]["peak_bytes"]
    live = json.loads(toy.tool("live", path, "--at", "peak", "--json"))
    assert live["bytes"] == sum(b["size"] for b in live["blocks"])
    return report, live["bytes"]


@pytest.mark.parametrize("bound", ["", "4MiB"])
def test_kills_of_a_torch_torrent(machine, tmp_path, bound, record_property):
    """As fast as Python can: what the program had done is in the recording, or counted."""
    for i in range(60 if LONG else 2):
        folder = tmp_path / str(i)
        running = machine.start(folder, "torrent", True, dict(GPUMEMTRACE_MAX_SIZE=bound) if bound else {})
        until((folder / "out/run.gmt").exists)
        time.sleep(0.05 + 0.37 * i % 2.4)
        running.kill()
        running.communicate()
        assert running.returncode == -signal.SIGKILL
        [done] = struct.unpack("<q", (folder / "made").read_bytes()[:8])
        allocs, frees, dropped = recorded(folder)
        assert not dropped and 0 <= allocs + frees - done <= 2
        assert max(peaks(folder / "out/run.gmt")) <= 64 * 100_352 and len(set(peaks(folder / "out/run.gmt"))) == 1
    record_property("figure", f"{i + 1} kills")


# ---- the table ----

def rows(folder, words_of):
    yield "| host, PyTorch | alone | recorded | allocations and frees | in the recording | events counted as dropped |"
    yield "| --- | --- | --- | --- | --- | --- |"
    machine = Machine(folder)
    for i, (name, what, how) in enumerate(HOSTS):
        alone, ours, made, (allocs, frees, dropped) = both(machine, folder / f"torch{i}", name, how)
        figures = ("the folder is gone",) * 2 if how.get("gone") else (f"{allocs + frees:,}", f"{dropped:,}")
        yield f"| {what} | {words_of(alone)} | {'the same' if alone == ours else words_of(ours)} | {sum(made):,} | {' | '.join(figures)} |"
