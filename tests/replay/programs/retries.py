# SPDX-License-Identifier: Apache-2.0
"""A card that is nearly full: the cache is emptied to make room, and some requests are refused for good."""
import random

import torch

random.seed(5)
total = torch.cuda.get_device_properties(0).total_memory
weights = [torch.empty(int(total * 0.03), dtype=torch.uint8, device="cuda") for _ in range(10)]
for step in range(30):
    sizes = [random.randrange(20, 200) << 18 for _ in range(8)]
    batch = [torch.empty(s, dtype=torch.uint8, device="cuda") for s in sizes]
    del batch[::3]
    try:
        torch.empty(int(total * 1.1), dtype=torch.uint8, device="cuda")
    except torch.cuda.OutOfMemoryError:
        pass
    wide = torch.empty(int(total * 0.2) + (step << 20), dtype=torch.uint8, device="cuda")
    del wide, batch
