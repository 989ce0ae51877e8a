# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at 50 random moments of a training (1,000 in `make reliability`): all that the program had finished before is
in the recording."""
import os
import struct

import pytest

KILLS = int(os.environ.get("GPUMEMTRACE_TEST_KILLS", 50))
ROUND = 50  # kills of one program; its files are removed when they are judged
BORN, FREED, EXISTS = range(3)


def logged(path):
    data = path.read_bytes()
    return [struct.unpack_from("<qqq", data, at) for at in range(0, len(data) - 23, 24)]


def check(events, log):
    """What the log tells in order is found in that order; what it knows to be there was born."""
    kinds = {"block_alloc": BORN, "block_free": FREED}
    ours = [(kinds[e["kind"]], e["addr"], e["size"]) for e in events if e.get("kind") in kinds]
    born = {(addr, size) for what, addr, size in ours if what == BORN}
    rest = iter(ours)
    for address, size, what in log:
        rounded = -(-size // 512) * 512
        if what == EXISTS:
            assert (address, rounded) in born
        else:
            assert (what, address, rounded) in rest  # goes on where the last one was found


def judge(programs, tool, seed):
    """(kills, events that were logged as done, lengths of the logs) of one round."""
    done = programs("killed.py", programs.folder, ROUND, seed, GPUMEMTRACE_OUTPUT="run.%p.gmt")
    assert done.returncode == 0, done.stderr[-3000:]
    lengths = []
    for log in sorted(programs.folder.glob("log.*")):
        recording = programs.folder / f"run.{log.name.split('.')[2]}.gmt"
        check(tool.events(recording), logged(log))
        lengths.append(len(logged(log)))
        assert tool.json("report", recording)["truncated"]
    for path in [*programs.folder.glob("log.*"), *programs.folder.glob("run.*")]:
        path.unlink()
    return lengths


@pytest.mark.real
@pytest.mark.slow
def test_nothing_finished_is_lost(programs, tool, record_property):
    lengths = [n for seed in range(1, KILLS // ROUND + 1) for n in judge(programs, tool, seed)]
    assert len(lengths) == KILLS // ROUND * ROUND
    assert len(set(lengths)) > ROUND // 3 and max(lengths) > 100  # the moments were different ones
    record_property("figure", f"{len(lengths)} kills, {sum(lengths)} finished allocations and frees, all read")
