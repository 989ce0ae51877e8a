# SPDX-License-Identifier: Apache-2.0
"""Small and large blocks mixed, with lives that overlap in waves."""
import random

import torch

random.seed(29)
waves = []
for wave in range(14):
    waves.append([torch.empty(int(2 ** random.uniform(8, 24)), device="cuda") for _ in range(30)])
    if len(waves) > 3:
        waves.pop(random.randrange(3))
