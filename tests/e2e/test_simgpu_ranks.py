# SPDX-License-Identifier: Apache-2.0
"""Ranks of one node on the simulated device: what they exchange is what gloo exchanges on the host; one that dies
ends the others; nothing is left behind."""
import os
import subprocess
import sys
import time

import pytest

from conftest import BUILD, REAL

pytestmark = pytest.mark.skipif(REAL or not (BUILD / "libsimgpu.so").exists(), reason="for the simulated device")


def torchrun(programs, ranks, *args, **kw):
    return programs("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", *args, traced=False, count=ranks, **kw)


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.more)])
def test_as_on_the_host(programs, ranks):
    done = torchrun(programs, ranks, programs.workload("ranks.py"))
    assert done.returncode == 0, done.stderr[-4000:]


def start_each(programs, ranks, code, count=None, **more):
    """Each rank by itself, so that nobody ends the others when one fails."""
    env = programs.environment(traced=False, count=count or ranks, **more)
    store = programs.folder / "store"
    code = (f"import os, signal, sys, time, torch, torch.distributed as dist\nrank = int(sys.argv[1])\n"
            f"torch.cuda.set_device(rank % torch.cuda.device_count())\n"
            f"dist.init_process_group('nccl', store=dist.FileStore({str(store)!r}, {ranks}), rank=rank, world_size={ranks})\n"
            f"t = torch.tensor([rank + 1.0]).cuda()\n" + code)
    return [subprocess.Popen([sys.executable, "-c", code, str(i)], env=env, cwd=programs.folder, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE) for i in range(ranks)]


DIES = """
dist.all_reduce(t)
assert t.item() == 3, t
if rank == 1:
    HOW
dist.all_reduce(t)
t.item()
"""


@pytest.mark.parametrize("how", ["os.kill(os.getpid(), signal.SIGKILL)", "raise ValueError('mine')"])
def test_a_rank_that_dies_ends_the_others(programs, how):
    shared = set(os.listdir("/dev/shm"))
    began = time.monotonic()
    first, second = start_each(programs, 2, DIES.replace("HOW", how), TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC=1000)  # else a minute
    said = first.communicate(timeout=300)[1]
    assert first.returncode not in (0, None) and second.wait(100) != 0
    assert "rank 1 (process %d) has left before it took part" % second.pid in said, said[-3000:]
    assert time.monotonic() - began < 300  # PyTorch itself waits ten minutes
    second.communicate()
    assert {n for n in os.listdir("/dev/shm") if "simgpu" in n} <= shared


def test_two_ranks_of_one_device(programs):
    """As NCCL: a device is of one rank."""
    for rank in start_each(programs, 2, "torch.cuda.set_device(0)\ndist.all_reduce(t.to('cuda:0'))", count=2):
        said = rank.communicate(timeout=300)[1]
        assert rank.returncode != 0 and "Duplicate GPU detected" in said, said[-2000:]


ASKS = """
dist.all_reduce(t)
t.item()
if rank == 0:
    dist.all_reduce(t)
    done = torch.cuda.Event()
    done.record()
    early = done.query()
    began = time.monotonic()
    time.sleep(0.1)
    print(early, done.query(), time.monotonic() - began > 1)
else:
    REST
    dist.all_reduce(t)
t.item()
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.parametrize("rest,reached", [("end = time.monotonic() + 4\n    while time.monotonic() < end: pass", True), ("time.sleep(12)", False)])
def test_asking_for_the_end_of_a_collective(programs, rest, reached):
    """By the device's clock it has ended: whether another rank is behind really decides nothing, while it does something."""
    ranks = start_each(programs, 2, ASKS.replace("REST", rest))
    said = [r.communicate(timeout=300) for r in ranks]
    assert all(r.returncode == 0 for r in ranks), said
    assert said[0][0] == f"False {reached} True\n", said


@pytest.mark.parametrize("ranks,setting", [(8, {}), (2, {"SIMGPU_RANKS": "alone"})])
@pytest.mark.plain
def test_one_rank_of_many(programs, ranks, setting):
    """More ranks than the node has devices, or so asked: it waits for nobody."""
    code = (f"import torch, torch.distributed as dist\n"
            f"dist.init_process_group('nccl', store=dist.HashStore(), rank=0, world_size={ranks})\n"
            f"t = torch.tensor([5.0]).cuda()\ndist.all_reduce(t)\n"
            f"parts = [torch.zeros(1).cuda() for _ in range({ranks})]\ndist.all_gather(parts, t)\n"
            f"print([p.item() for p in parts])\ndist.destroy_process_group()\n")
    done = programs("-c", code, traced=False, count=2, timeout=300, **setting)
    assert done.returncode == 0 and done.stdout == f"{[5.0 * ranks] * ranks}\n", done.stdout + done.stderr[-3000:]
