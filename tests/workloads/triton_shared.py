# SPDX-License-Identifier: Apache-2.0
"""A product in tiles that need 192 KiB of shared memory: more than consumer cards have."""
import torch
import triton
import triton.language as tl


@triton.jit
def product(a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, columns, at = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for i in range(0, k, K):
        total = tl.dot(tl.load(a + rows[:, None] * k + at[None, :] + i), tl.load(b + (at[:, None] + i) * N + columns[None, :]), total)
    tl.store(c + rows[:, None] * N + columns[None, :], total)


a, b, c = (torch.empty(n, device="cuda", dtype=t) for n, t in ((128 * 1024, torch.float16), (1024 * 256, torch.float16), (128 * 256, torch.float32)))
try:
    product[(1,)](a, b, c, 1024, 128, 256, 64, num_stages=4, num_warps=8)
except Exception:
    import traceback
    traceback.print_exc()
    raise SystemExit("the last line is another")
torch.cuda.synchronize()
