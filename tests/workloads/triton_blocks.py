# SPDX-License-Identifier: Apache-2.0
"""Milliseconds by the device's events of a kernel that Triton compiles: for blocks of 64 and 1,024 elements, then for four times the elements."""
import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, scale, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n) + scale * tl.load(y + at, at < n), at < n)


def milliseconds(n, block):
    x, y, out = (torch.empty(n, device="cuda") for _ in range(3))
    add[(triton.cdiv(n, block),)](x, y, out, 0.5, n, BLOCK=block)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(10):
        add[(triton.cdiv(n, block),)](x, y, out, 0.5, n, BLOCK=block)
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 10


print(milliseconds(10 << 20, 64), milliseconds(10 << 20, 1024), milliseconds(40 << 20, 1024))
