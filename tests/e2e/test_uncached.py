# SPDX-License-Identifier: Apache-2.0
"""Without PyTorch's cache there are no reports of its allocator: the runtime's calls must tell the same."""
import json

import pytest

from conftest import blocks_of

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
