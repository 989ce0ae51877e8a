# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at 50 random moments of a training: all that the program had finished before is in the recording."""
import struct

import pytest

KILLS = 50
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


@pytest.mark.real
@pytest.mark.slow
def test_nothing_finished_is_lost(programs, tool):
    done = programs("killed.py", programs.folder, KILLS, 1, GPUMEMTRACE_OUTPUT="run.%p.gmt")
    assert done.returncode == 0, done.stderr[-3000:]
    logs = sorted(programs.folder.glob("log.*"))
    assert len(logs) == KILLS
    lengths = set()
    for log in logs:
        recording = programs.folder / f"run.{log.name.split('.')[2]}.gmt"
        check(tool.events(recording), logged(log))
        lengths.add(len(logged(log)))
        assert tool.json("report", recording)["truncated"]
    assert len(lengths) > KILLS // 3 and max(lengths) > 100  # the moments were different ones
