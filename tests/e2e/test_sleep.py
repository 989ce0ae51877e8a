# SPDX-License-Identifier: Apache-2.0
"""Sleep modes: allocations whose physical memory is given back while they live. What is in use never exceeds the card, what sleeps has a
row, and the peak is what the program itself computes from its tensors; two programs in two styles, with the calls of the driver that
inference engines use."""
import json
import subprocess

import pytest

pytestmark = pytest.mark.forks

ALLOCATOR = """
#include <stddef.h>
#include <stdint.h>
typedef struct { int type, handles; int where, id; void *win32; unsigned char flags[8]; } prop_t;
typedef struct { int where, id; int flags; } access_t;
int cuMemAddressReserve(uint64_t *, size_t, size_t, uint64_t, uint64_t);
int cuMemCreate(uint64_t *, size_t, const prop_t *, uint64_t);
int cuMemMap(uint64_t, size_t, size_t, uint64_t, uint64_t);
int cuMemSetAccess(uint64_t, size_t, const access_t *, size_t);
int cuMemUnmap(uint64_t, size_t);
int cuMemRelease(uint64_t);
int cuMemAddressFree(uint64_t, size_t);
static struct { uint64_t at, handle; size_t size; int group, there; } all[256];
static int count, group;
static int back(int i)
{
	const prop_t prop = { 1, 0, 1, 0, 0, { 0 } };
	const access_t access = { 1, 0, 3 };
	int rc = cuMemCreate(&all[i].handle, all[i].size, &prop, 0);
	rc = rc ? rc : cuMemMap(all[i].at, all[i].size, 0, all[i].handle, 0);
	all[i].there = !rc;
	return rc ? rc : cuMemSetAccess(all[i].at, all[i].size, &access, 1);
}
static void away(int i)
{
	cuMemUnmap(all[i].at, all[i].size);
	cuMemRelease(all[i].handle);
	all[i].there = 0;
}
void use_group(int g) { group = g; }
void sleep_group(int g) { for (int i = 0; i < count; i++) if (all[i].there && all[i].group == g) away(i); }
void wake_group(int g) { for (int i = 0; i < count; i++) if (!all[i].there && all[i].at && all[i].group == g) back(i); }
void *take(ptrdiff_t n, int device, void *stream)
{
	int i = count++;
	all[i].size = ((size_t)n + (2 << 20) - 1) & ~(size_t)((2 << 20) - 1);
	all[i].group = group;
	if (cuMemAddressReserve(&all[i].at, all[i].size, 0, 0, 0) || back(i))
		return 0;
	return (void *)all[i].at;
}
void give(void *p, ptrdiff_t n, int device, void *stream)
{
	for (int i = 0; i < count; i++)
		if (all[i].at == (uint64_t)p) {
			if (all[i].there)
				away(i);
			cuMemAddressFree(all[i].at, all[i].size);
			all[i].at = 0;
		}
}
"""

SETUP = """
import ctypes, json, torch
lib = ctypes.CDLL("./own.so")
GB = 1 << 30
peak = now = asleep = most = 0
def count(resident, sleeping=0):
    global peak, now, asleep, most
    now += resident
    asleep += sleeping
    peak, most = max(peak, now), max(most, asleep)
def write():
    json.dump({"peak": peak, "asleep": most, "allocated": torch.cuda.max_memory_allocated()}, open("truth.json", "w"))
pool = torch.cuda.MemPool(torch.cuda.memory.CUDAPluggableAllocator("./own.so", "take", "give").allocator())
"""

# Two models take turns on a card that holds one.
TURNS = """
def load(group, sizes):
    lib.use_group(group)
    with torch.cuda.use_mem_pool(pool):
        made = [torch.empty(n, dtype=torch.uint8, device="cuda") for n in sizes]
    count(sum(sizes))
    return made
a = load(1, [GB, GB // 2, GB])
lib.sleep_group(1); count(-sum(t.numel() for t in a), sum(t.numel() for t in a))
b = load(2, [GB, GB, GB])
for _ in range(2):
    lib.sleep_group(2); count(-3 * GB, 3 * GB)
    lib.wake_group(1); count(5 * GB // 2, -5 * GB // 2)
    extra = torch.empty(GB // 4, dtype=torch.uint8, device="cuda"); count(GB // 4)
    del extra; count(-GB // 4)
    lib.sleep_group(1); count(-5 * GB // 2, 5 * GB // 2)
    lib.wake_group(2); count(3 * GB, -3 * GB)
write()
"""

# Weights and a cache of an engine sleep, a training takes the card, the engine wakes and drops its cache asleep the next time.
ENGINE = """
class Engine:
    def __init__(self):
        self.weights, self.cache = self.make(1, 2 * GB), self.make(2, GB)
    def make(self, group, n):
        lib.use_group(group)
        with torch.cuda.use_mem_pool(pool):
            t = torch.empty(n, dtype=torch.uint8, device="cuda")
        count(n)
        return t
    def sleep(self):
        for group, t in ((1, self.weights), (2, self.cache)):
            lib.sleep_group(group)
            count(-t.numel(), t.numel())
    def wake(self):
        for group, t in ((1, self.weights), (2, self.cache)):
            lib.wake_group(group)
            count(t.numel(), -t.numel())
def train():
    x = torch.zeros(3 * GB // 4, device="cuda")
    count(3 * GB)
    del x
    torch.cuda.empty_cache()
    count(-3 * GB)
engine = Engine()
for _ in range(2):
    engine.sleep()
    train()
    engine.wake()
engine.sleep()
del engine.cache; count(0, -GB)
train()
write()
"""


AWAKE = """
lib.use_group(7)
with torch.cuda.use_mem_pool(pool):
    arena = [torch.empty(GB // 2, dtype=torch.uint8, device="cuda") for _ in range(4)]
count(2 * GB)
lib.sleep_group(7); count(-2 * GB, 2 * GB)
batch = torch.empty(5 * GB // 2, dtype=torch.uint8, device="cuda"); count(5 * GB // 2)
more = torch.empty(GB // 2, dtype=torch.uint8, device="cuda"); count(GB // 2)
del batch; count(-5 * GB // 2)
torch.cuda.empty_cache()
lib.wake_group(7); count(2 * GB, -2 * GB)
most_now = torch.empty(3 * GB // 4, dtype=torch.uint8, device="cuda"); count(3 * GB // 4)
later = torch.empty(1 << 20, dtype=torch.uint8, device="cuda"); count(1 << 20)
del arena; count(-2 * GB)
write()
"""


@pytest.mark.parametrize("program", [TURNS, ENGINE, AWAKE], ids=["turns", "engine", "awake"])
def test_what_sleeps_takes_no_room(tool, programs, program):
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-o", programs.folder / "own.so", "-x", "c", "-"], input=ALLOCATOR, text=True, check=True)
    script = programs.folder / "engine.py"
    script.write_text(SETUP + program)
    file = programs.traced(script, card="card=4GiB")
    truth = json.loads((programs.folder / "truth.json").read_text())
    device = tool.json("report", file)["devices"][0]
    assert truth["allocated"] > 4 << 30 > truth["peak"]
    assert device["peak_bytes"] == device["resident_peak_bytes"] == truth["peak"]
    assert device["asleep_bytes"] == truth["asleep"]
    assert sum(device["categories_at_peak"].values()) == truth["peak"]
    assert device["peak_reserved_bytes"] <= 4 << 30
    # What was woken is the framework's as before, not a library's own.
    assert "allocated by that library itself" not in tool("report", file)
    awake = tool.json("live", file, "--at", "peak")
    assert awake["reserved_bytes"] == awake["bytes"] + awake["cached_bytes"] + sum(p["bytes"] - p["allocated_bytes"] for p in awake["pools"])
    assert awake["bytes"] == truth["peak"]
    assert "asleep" in tool("report", file) and "of 4.0 GiB" in tool("report", file)


# An engine in its own words: weights and a cache that sleep, what stays, and the account of both moments.
ACCOUNT = """
lib.use_group(1)
with torch.cuda.use_mem_pool(pool):
    model = torch.nn.Sequential(*(torch.nn.Linear(4096, 4096, bias=False, device="cuda") for _ in range(8)))
stays = torch.zeros(64 << 20, dtype=torch.uint8, device="cuda")
with torch.inference_mode():
    model(torch.zeros(64, 4096, device="cuda"))
    lib.use_group(2)
    with torch.cuda.use_mem_pool(pool):
        kv_cache = torch.zeros(2, GB // 2, dtype=torch.uint8, device="cuda")
    for i in range(4):
        kv_cache[0, i] = model(torch.zeros(64, 4096, device="cuda"))[0, 0] > 0
    for level in range(2):
        lib.sleep_group(1); lib.sleep_group(2)
        torch.cuda.empty_cache()
        free, total = torch.cuda.mem_get_info()
        lib.wake_group(1); lib.wake_group(2)
        model(torch.zeros(64, 4096, device="cuda"))
json.dump({"used": total - free, "weights": sum(p.numel() * 4 for p in model.parameters()), "cache": kv_cache.numel()}, open("truth.json", "w"))
"""


def test_the_account_of_an_engine_asleep(tool, programs):
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-o", programs.folder / "own.so", "-x", "c", "-"], input=ALLOCATOR, text=True, check=True)
    script = programs.folder / "engine.py"
    script.write_text(SETUP + ACCOUNT)
    file = programs.traced(script, card="card=4GiB")
    truth = json.loads((programs.folder / "truth.json").read_text())
    account = tool.json("report", file)["devices"][0]["engine"]
    parts = {part["part"]: part for part in account["parts"]}
    assert (parts["weights"]["bytes"], parts["kv_cache"]["bytes"]) == (truth["weights"], truth["cache"])
    assert parts["weights"]["asleep_bytes"] == parts["kv_cache"]["asleep_bytes"] == 0
    assert parts["other"]["asleep_bytes"] >= 64 << 20 and "engine.py" in parts["other"]["file"]
    assert account["total_bytes"] == sum(part["asleep_bytes"] for part in parts.values())
    assert account["total_bytes"] - parts["free"]["asleep_bytes"] == pytest.approx(truth["used"], rel=0.01)
    assert " asleep  mostly allocated at" in tool("report", file)
