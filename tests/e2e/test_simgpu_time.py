# SPDX-License-Identifier: Apache-2.0
"""Time on the simulated device: streams and events are busy for as long as the card would be, and what that decides
(which blocks are free again, what NCCL's watchdog has seen) does not depend on how fast the machine is."""
import json
import shutil
import subprocess
import sys

import pytest

from conftest import BUILD, REAL

pytestmark = [pytest.mark.forks, pytest.mark.skipif(REAL or not (BUILD / "libsimgpu.so").exists(), reason="for the simulated device")]

STREAMS = """
import time, torch
cuda, MIB = torch.cuda, 1 << 20
side, start, end, plain = cuda.Stream(), cuda.Event(enable_timing=True), cuda.Event(enable_timing=True), cuda.Event()
now = cuda.current_stream()

def ms(work, times=4):
    work(); start.record()
    for _ in range(times): work()
    end.record(); end.synchronize()
    return start.elapsed_time(end) / times

# A kernel that spins for a given number of cycles, at the card's clock of 1.98 GHz.
cuda._sleep(1)
start.record(); cuda._sleep(50_000_000); end.record()
assert not end.query() and not now.query()
try: start.elapsed_time(end); assert False
except RuntimeError as e: assert "completed" in str(e), e
end.synchronize()
assert end.query() and now.query() and 25.2 < start.elapsed_time(end) < 25.4, start.elapsed_time(end)

# One who asks and does nothing else gets on; a sleep counts as long as it was asked for.
cuda._sleep(2_000_000_000); plain.record()
while not plain.query(): pass
cuda._sleep(200_000_000); plain.record(); assert not plain.query()
time.sleep(0.15); assert plain.query()

# Streams side by side, and one that waits for another.
with cuda.stream(side): cuda._sleep(20_000_000); plain.record()
assert now.query() and not side.query()
now.wait_event(plain)
assert not now.query()
now.synchronize(); assert side.query()

# What a block was used for on another stream keeps it, and no longer.
x = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda"); at = x.data_ptr()
with cuda.stream(side): cuda._sleep(50_000_000)
x.record_stream(side); del x
y = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda"); assert y.data_ptr() != at
side.synchronize()
z = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda"); assert z.data_ptr() == at

# Pinned memory is not used again while a copy reads it; a copy from plain memory is not waited for on the device.
p = torch.ones(16 * MIB, dtype=torch.uint8, pin_memory=True); at = p.data_ptr()
cuda._sleep(50_000_000); g = p.to("cuda", non_blocking=True); assert not now.query()
del p
assert torch.ones(16 * MIB, dtype=torch.uint8, pin_memory=True).data_ptr() != at
cuda.synchronize()
g.cpu(); assert now.query()

# Products take what the data sheet says they must, and not many times that (TFLOP/s: 989 of 16 bits, 67 of float32).
a, h = torch.empty(8192, 8192, device="cuda"), torch.empty(8192, 8192, device="cuda", dtype=torch.bfloat16)
work = 2 * 8192**3 / 1e9
assert work / 989 < ms(lambda: h @ h) < 3 * work / 989 and work / 67 < ms(lambda: a @ a) < 3 * work / 67
c, i = torch.nn.Conv2d(256, 256, 3, padding=1, device="cuda"), torch.empty(64, 256, 56, 56, device="cuda")
work = 2 * 64 * 56 * 56 * 256 * 256 * 9 / 1e9
assert work / 67 < ms(lambda: c(i)) < 4 * work / 67
d = torch.empty(256 * MIB, dtype=torch.uint8, device="cuda"); p = torch.empty(256 * MIB, dtype=torch.uint8, pin_memory=True)
assert 0.25 * 1.07 / 64 * 1000 < ms(lambda: d.copy_(p, non_blocking=True)) < 2 * 0.25 * 1.07 / 64 * 1000

# Two devices have no time in common.
with cuda.device(1): other = cuda.Event(enable_timing=True); other.record(); other.synchronize()
end.synchronize()
try: end.elapsed_time(other); assert False
except RuntimeError as e: pass

# A graph takes its longest path.
graph = cuda.CUDAGraph(keep_graph=True)
with cuda.graph(graph):
    fork = cuda.current_stream()
    cuda._sleep(2_000_000)
    side.wait_stream(fork)
    with cuda.stream(side): cuda._sleep(20_000_000)
    cuda._sleep(10_000_000)
    fork.wait_stream(side)
graph.instantiate()
assert 11.1 < ms(graph.replay) < 11.3

# Part of the multiprocessors.
from torch.cuda.green_contexts import GreenContext
green = GreenContext.create(num_sms=16, device_id=0)
green.set_context(); torch.ones(4, device="cuda").add_(1); green.pop_context()

# Memory that is mapped page by page takes its time as cudaMalloc does.
cuda.memory._set_allocator_settings("expandable_segments:True")
with cuda.stream(side): cuda._sleep(500_000)
assert not side.query()
e = torch.empty(512 * MIB, dtype=torch.uint8, device="cuda"); assert side.query()
print("ok")
"""


def test_streams_and_events(programs):
    done = programs("-c", STREAMS, traced=False, count=2)
    assert done.returncode == 0 and done.stdout == "ok\n", done.stdout + done.stderr[-3000:]


def test_switched_off(programs):
    code = ("import torch; torch.cuda._sleep(10**9); e = torch.cuda.Event(); e.record(); "
            "print(e.query(), torch.cuda.current_stream().query())")
    assert programs("-c", code, traced=False, SIMGPU_TIME="off").stdout == "True True\n"


# ---- peaks ----

TRAINING = """
import torch, torch.distributed as dist
dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(16)]).cuda()
model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, side, peaks = torch.randn(BATCH, 2048, device="cuda"), torch.cuda.Stream(), []
for step in range(6):
    torch.cuda.reset_peak_memory_stats()
    model(x).square().mean().backward()
    optimizer.step(); optimizer.zero_grad()
    with torch.cuda.stream(side):  # what another stream still uses
        used = torch.empty(8 << 20, device="cuda"); used.record_stream(torch.cuda.default_stream()); del used
    peaks.append(torch.cuda.max_memory_allocated())
print(peaks, torch.cuda.max_memory_reserved(), flush=True)
dist.destroy_process_group()
"""


def test_peaks_do_not_depend_on_the_machine(programs):
    """NCCL's watchdog decides when the first buckets of DDP are freed: by the device's clock, not by the machine's."""
    said, load = set(), []
    for turn in range(3):
        if turn == 2:  # a busy machine
            load = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
        try:
            done = programs("-c", TRAINING.replace("BATCH", "65536"), traced=False)
        finally:
            for p in load:
                p.kill()
                p.wait()
        assert done.returncode == 0, done.stderr[-3000:]
        said.add(done.stdout)
    assert len(said) == 1, said
    peaks = json.loads(said.pop().rsplit(" ", 1)[0])
    weights = 16 * (2048 + 1) * 2048 * 4
    # Both sets of buckets are there for a while, then one.
    assert max(peaks) - peaks[-1] < 2 * weights


# ---- NVIDIA's own runtime ----

STATIC = """
#include <cuda_runtime_api.h>
int main(void) { void *p; return cudaMalloc(&p, 1 << 20) ? 3 : 0; }
"""


def test_programs_with_their_own_runtime_are_named(tool, tmp_path):
    """As nvcc links them; JAX and CuPy bring the same runtime."""
    runtimes = sorted(p for p in __import__("pathlib").Path(sys.prefix).glob("lib/python*/site-packages/nvidia/cu*/lib/libcudart_static.a"))
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not runtimes or not compiler:
        pytest.skip("no libcudart_static.a or no compiler")
    (tmp_path / "own.c").write_text(STATIC)
    subprocess.run([compiler, "-I", str(runtimes[0].parents[1] / "include"), "own.c", str(runtimes[0]), "-o", "own",
                    "-ldl", "-lpthread", "-lrt", "-lstdc++"], check=True, cwd=tmp_path)
    command = [str(BUILD / "gpumemtrace"), "run", "--sim", "h100-80g", "-o", str(tmp_path / "x.gmt")]
    done = subprocess.run([*command, "--", str(tmp_path / "own")], capture_output=True, text=True)
    assert done.returncode == 3 and "no CUDA memory" not in done.stderr, done.stderr
    assert f"{tmp_path}/own has NVIDIA's own CUDA runtime inside" in done.stderr
    done = subprocess.run([*command, "--json", "--", str(tmp_path / "own")], capture_output=True, text=True)
    assert json.loads(done.stderr)["runtime_inside"] == f"{tmp_path}/own" and done.returncode == 3
    done = subprocess.run([*command, "--", "/bin/true"], capture_output=True, text=True)
    assert "runtime inside" not in done.stderr and done.returncode == 0


def test_triton_by_the_bytes_of_its_tensors(programs):
    """However a kernel is cut into blocks: a tuner that doubles them finds nothing faster."""
    small, large, more, from_file = map(float, programs("triton_blocks.py", traced=False).stdout.split())
    assert small == large == from_file and 3.9 < more / small < 4.1
    assert 0.8 < small / (3 * (40 << 20) / (0.8 * 3352e6)) < 1.2  # an H100's bandwidth
