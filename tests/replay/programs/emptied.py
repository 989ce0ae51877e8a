# SPDX-License-Identifier: Apache-2.0
"""Phases with an emptied cache between them: with blocks in it, and with none."""
import torch

kept = []
for phase in range(6):
    work = [torch.empty((3 + 5 * i + phase) << 18, device="cuda") for i in range(12)]
    kept.append(torch.empty((7 + phase) * 301_000, device="cuda"))
    small = [torch.empty(900 * (i + 1), device="cuda") for i in range(40)]
    del work[::2]
    torch.cuda.empty_cache()
    more = [torch.empty((2 + 3 * i) << 18, device="cuda") for i in range(9)]
    del work, small
    torch.cuda.empty_cache()
    torch.cuda.empty_cache()
    del more
    if phase == 3:
        kept.clear()
        torch.cuda.empty_cache()
