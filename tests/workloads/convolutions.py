# SPDX-License-Identifier: Apache-2.0
"""Trains convolutions, first with the plans that cuDNN advises, then with those that a search finds to be the fastest. Writes what
was asked of the allocator to HISTORY, as PyTorch's own record has it: a list of [action, address, bytes]."""
import json
import os

import torch

torch.cuda.memory._record_memory_history(max_entries=1000000, context=None, stacks="python")
model = torch.nn.Sequential(torch.nn.Conv2d(3, 48, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(48, 96, 5, padding=2),
                            torch.nn.ReLU(), torch.nn.ConvTranspose2d(96, 24, 3, stride=2)).cuda()
for fastest in (False, True):
    torch.backends.cudnn.benchmark = fastest
    for size in (96, 112, 90):
        for _ in range(3):
            model(torch.randn(6, 3, size, size, device="cuda")).square().mean().backward()
torch.cuda.synchronize()
trace = torch.cuda.memory._snapshot()["device_traces"][torch.cuda.current_device()]
with open(os.environ["HISTORY"], "w", encoding="utf-8") as f:
    json.dump([[t["action"], t["addr"], t["size"]] for t in trace if t["action"] in ("alloc", "free_completed", "oom")], f)
