# SPDX-License-Identifier: Apache-2.0
"""Blocks that other streams used: when they can be handed out again, against the history that PyTorch itself keeps."""
import json

import pytest

pytestmark = pytest.mark.forks

PROGRAM = """
import json, torch
torch.cuda.memory._record_memory_history(max_entries=100000, context=None, stacks="python")
side, other = torch.cuda.Stream(), torch.cuda.Stream()
def used(mib, *streams, cycles=0):
    x = torch.empty(mib << 20, dtype=torch.uint8, device="cuda")
    for s in streams:
        with torch.cuda.stream(s):
            torch.cuda._sleep(cycles)
            x.record_stream(s)
for cycles in (0, 10**6, 10**9):
    for mib in (1, 3, 30):
        used(mib, side, cycles=cycles)
        used(mib, side, other, cycles=cycles)
        used(mib)
        used(mib, torch.cuda.current_stream())
torch.cuda.empty_cache()  # waits for all of them
used(5, side, cycles=10**9)
side.synchronize()
kept = [torch.empty(4 << 20, dtype=torch.uint8, device="cuda") for _ in range(3)]
history = torch.cuda.memory._snapshot()["device_traces"][0]
actions = ("alloc", "free_requested", "free_completed")
json.dump([(e["action"], e["addr"]) for e in history if e["action"] in actions], open("history.json", "w"))
"""


def recorded(events):
    waits, history = {}, []
    for e in events:
        kind, addr = e["kind"], e.get("addr")
        if kind == "block_alloc":
            history.append(("alloc", addr))
        elif kind == "block_free":
            history += [("free_requested", addr), ("free_completed", addr)]
        elif kind == "reuse_wait":
            if not waits.get(addr):
                del history[len(history) - 1 - history[::-1].index(("free_completed", addr))]
            waits[addr] = waits.get(addr, 0) + 1
        elif kind == "reuse_ready":
            waits[addr] -= 1
            if not waits[addr]:
                history.append(("free_completed", addr))
    return history


def test_when_a_block_is_free_again(tool, programs):
    file = programs.traced("-c", PROGRAM)
    theirs = [tuple(x) for x in json.loads((file.parent / "history.json").read_text())]
    ours = recorded(tool.events(file))[:len(theirs)]
    late = [a for a, b in zip(theirs, theirs[1:]) if a[0] == "free_requested" and b[0] == "alloc"]
    assert len(late) >= 3
    assert ours == theirs
