# SPDX-License-Identifier: Apache-2.0
"""Blocks that are a little less than whole pages of 2 MiB, in an order that leaves holes."""
import random

import torch

random.seed(11)
held = {}
for i in range(400):
    if held and random.random() < 0.47:
        held.pop(random.choice(list(held)))
    else:
        mib = random.choice([1.3, 2.9, 5.4, 9.7, 11.1, 18.8, 23.7, 41.6, 77.77])
        held[i] = torch.empty(int(mib * 2**20) - random.choice([0, 512, 100_000]), dtype=torch.uint8, device="cuda")
