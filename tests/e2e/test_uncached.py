# SPDX-License-Identifier: Apache-2.0
"""Without PyTorch's cache there are no reports of its allocator: the runtime's calls must tell the same."""
import json

import pytest

from conftest import REAL, blocks_of

pytestmark = pytest.mark.forks

OF_A_HANDLE = [1 << 10, 128 << 10]  # libcublas 13 on an H100, beside 64 MiB


def run(programs, tool, **env):
    recording = programs.traced("uncached.py", "truth.json", **env)
    truth = json.loads((programs.folder / "truth.json").read_text())
    assert not [e for e in tool.events(recording) if e.get("kind") == "block_alloc"]
    lives = [tool.json("live", recording, "--at", f"mark:mark_step#{k}") for k in (1, 2, 3)]
    for live, said in zip(lives, truth):
        sizes = dict(blocks_of(live))
        assert len(said["storages"]) >= 4 * 4  # parameters, gradients, two states
        assert {a: sizes.get(a) for a, _ in said["storages"]} == dict(said["storages"])
    return lives, truth


@pytest.mark.real
@pytest.mark.matrix
def test_no_caching(programs, tool):
    """Each storage is one cudaMalloc of its size. The others are workspaces of cuBLAS's two handles; on a card also what each handle keeps."""
    lives, truth = run(programs, tool, PYTORCH_NO_CUDA_MEMORY_CACHING=1)
    for live, said in zip(lives, truth):
        known = {a for a, _ in said["storages"]}
        others = [size for addr, size in blocks_of(live) if addr not in known]
        small = [size for size in others if size < 1 << 20]
        assert len(others) - len(small) <= 5 and sorted(small) in ([], sorted(2 * OF_A_HANDLE))


@pytest.mark.real
@pytest.mark.matrix
def test_async_backend(programs, tool):
    """PyTorch counts what the driver's pool hands out: rounded, never less than what was asked."""
    lives, truth = run(programs, tool, PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")
    for live, said in zip(lives, truth):
        assert live["bytes"] <= said["allocated"] <= live["bytes"] + 512 * len(live["blocks"])


POOL = """
import torch
kept = [torch.empty(28 << 20, dtype=torch.uint8, device="cuda") for _ in range(20)]
assert torch.cuda.memory_reserved() - torch.cuda.memory_allocated() >= 20 * (4 << 20)
try:
    while FULL:
        kept.append(torch.empty(28 << 20, dtype=torch.uint8, device="cuda"))
except torch.OutOfMemoryError:
    pass
"""


@pytest.mark.skipif(REAL, reason="for the simulated device")
def test_free_memory_of_the_drivers_pool(programs, tool):
    """The recorder does not see how much the pool keeps: the report names it with the context, and a failure says what was free then."""
    program = programs.folder / "pool.py"
    program.write_text(POOL.replace("FULL", "False"))
    recording = programs.traced(str(program), PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")
    assert "context and free pool" in tool("report", recording) and "context and modules" not in tool("report", recording)
    program.write_text(POOL.replace("FULL", "True"))
    full = programs.traced(str(program), output="full.gmt", card="small=2GiB", PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")
    assert tool.json("oom", full)["free_bytes"] < 28 << 20
    assert "context and free pool" in tool("oom", full) and "cached, not in use" not in tool("oom", full)


MANAGED = """
import ctypes, torch
kept = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
address = ctypes.c_void_p()
assert ctypes.CDLL(None).cudaMallocManaged(ctypes.byref(address), ctypes.c_size_t(1 << 30), 1) == 0
more = torch.empty(32 << 20, dtype=torch.uint8, device="cuda")
"""


@pytest.mark.skipif(REAL, reason="for the simulated device")
def test_managed_memory_has_a_row_of_its_own(programs, tool):
    """It is on the device as far as it is used there, so that no library holds it on the device."""
    (programs.folder / "managed.py").write_text(MANAGED)
    text = tool("report", programs.traced(str(programs.folder / "managed.py")))
    assert "  managed memory           1.0 GiB  on the device or the host" in text and "allocated by that library itself" not in text
