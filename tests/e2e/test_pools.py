# SPDX-License-Identifier: Apache-2.0
"""Private pools that a program takes its blocks from (torch.cuda.use_mem_pool): the pool of each block as the recording says it,
against the pool of its segment as PyTorch says it."""
import json
import subprocess

import pytest

pytestmark = pytest.mark.forks

OWN_POOL = 1 << 8

PROGRAM = """
import json, sys, threading, torch
a, b = torch.cuda.MemPool(), torch.cuda.MemPool()
kept, pools = [], []
def take(mib):
    kept.append(torch.empty(mib << 20, dtype=torch.uint8, device="cuda"))
    at = kept[-1].data_ptr()
    pools.append((at, [s["segment_pool_id"] for s in torch.cuda.memory_snapshot() if s["address"] <= at < s["address"] + s["total_size"]][0]))
with torch.cuda.use_mem_pool(a):
    take(5)
    with torch.cuda.use_mem_pool(b):
        take(6)
        with torch.cuda.stream(torch.cuda.Stream()):
            take(7)
        thread = threading.Thread(target=take, args=(8,))
        thread.start()
        thread.join()
        try:
            with torch.cuda.use_mem_pool(a):
                pass
        except RuntimeError as e:
            print("refused", file=sys.stderr)
    take(9)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        take(10)
        kept[-1].zero_()
        with torch.cuda.use_mem_pool(b):
            take(11)
    take(12)
take(13)
json.dump(pools, open("pools.json", "w"))
"""


def pools_of(events):
    """For each block the pool that the latest begin gives: on its thread, or for a capture on its stream."""
    open_now, names, of = [], {}, {}
    for e in events:
        if e["kind"] == "graph_begin":
            own = bool(e["flags"] & OWN_POOL)
            open_now.append((own, e["thread"] if own else e["stream"], (e["arg0"], e["arg1"]) if own else len(names)))
            names.setdefault(len(names), None)
        elif e["kind"] == "graph_end":
            own = bool(e["flags"] & OWN_POOL)
            pool = (e["arg0"], e["arg1"])
            at = max(i for i, o in enumerate(open_now) if o[0] == own and (not own or o[2] == pool))
            if not own:
                names[open_now[at][2]] = pool
            del open_now[at]
        elif e["kind"] == "block_alloc":
            on = [p for own, where, p in open_now if where == (e["thread"] if own else e["stream"])]
            of[e["addr"]] = on[-1] if on else (0, 0)
    return {addr: names.get(p, p) for addr, p in of.items()}


def test_the_pool_of_each_block(tool, programs):
    file = programs.traced("-c", PROGRAM)
    theirs = {at: tuple(pool) for at, pool in json.loads((file.parent / "pools.json").read_text())}
    ours = pools_of(tool.events(file))
    assert len(theirs) == 9 and len(set(theirs.values())) == 4
    assert {at: ours[at] for at in theirs} == theirs
    assert "torch.pools" in tool("info", file)


def test_without_tags_the_allocator_is_left_alone(tool, programs):
    file = programs.traced("-c", PROGRAM, GPUMEMTRACE_TAGS="off")
    assert not [e for e in tool.events(file) if e["kind"].startswith("graph_") and e["flags"] & OWN_POOL]
    assert "torch.pools" not in tool("info", file)


ALLOCATOR = """
#include <stddef.h>
int cudaMalloc(void **, size_t);
int cudaFree(void *);
void *take(ptrdiff_t n, int device, void *stream) { void *p = 0; return cudaMalloc(&p, n) ? 0 : p; }
void give(void *p, ptrdiff_t n, int device, void *stream) { cudaFree(p); }
"""

WITH_ALLOCATOR = """
import ctypes, torch
pool = torch.cuda.MemPool(torch.cuda.memory.CUDAPluggableAllocator("./own.so", "take", "give").allocator())
ctypes.CDLL("./own.so").take(ctypes.c_ssize_t(7 << 20), 0, None)
with torch.cuda.use_mem_pool(pool):
    x = torch.empty(50 << 20, dtype=torch.uint8, device="cuda")
y = torch.empty(30 << 20, dtype=torch.uint8, device="cuda")
"""


def test_segments_from_an_allocator_of_the_pool(tool, programs):
    """They are the cache's, like all others; what that library takes by itself is not."""
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", programs.folder / "own.so", "-x", "c", "-"], input=ALLOCATOR, text=True, check=True)
    file = programs.traced("-c", WITH_ALLOCATOR)
    taken = {e["size"] >> 20: e["flags"] & 2 for e in tool.events(file) if e["kind"] == "mem_alloc" and e["memory"] == "device"}
    assert taken == {50: 2, 30: 2, 7: 0}
    assert [line.split()[1:3] for line in tool("report", file).splitlines() if line.strip().startswith("own.so")] == [["7.0", "MiB"]]


KEPT_APART = """
import torch
pool = torch.cuda.MemPool()
with torch.cuda.use_mem_pool(pool):
    x = torch.empty(500 << 20, dtype=torch.uint8, device="cuda")
{drop}
kept = []
try:
    while True:
        kept.append(torch.empty(100 << 20, dtype=torch.uint8, device="cuda"))
except torch.cuda.OutOfMemoryError:
    pass
"""


@pytest.mark.parametrize("drop", [True, False])
def test_a_refusal_beside_cached_memory_of_a_pool(tool, programs, drop):
    file = programs.traced("-c", KEPT_APART.format(drop="del x" if drop else ""), card="card=2GiB")
    said = tool.json("oom", file)
    assert said["cause"] == ("fragmentation" if drop else "unknown")
    assert ("Memory is in private pools" in said["text"] and "500.0 MiB" in said["text"]) == drop
    assert [(p["kind"], p["bytes"] >> 20, p["allocated_bytes"] >> 20) for p in said["pools"]] == [("mem_pool", 500, 0 if drop else 500)]
