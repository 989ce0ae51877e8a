# SPDX-License-Identifier: Apache-2.0
"""Long forecasts of the atmosphere: the state is stepped forward, and decoded at the coordinates of the targets."""
import sys

import torch
from torch import nn

STEPS, POINTS, CELLS, WIDTH = 40, 120_000, 4096, 256


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.coords = nn.Linear(64, WIDTH)
        self.decode = nn.Sequential(nn.GELU(), nn.Linear(WIDTH, 8))

    def predict(self, state, coords):
        cells = torch.arange(len(coords), device=coords.device) % CELLS
        return self.decode(state[cells] + self.coords(coords))

    def forward(self, state, target_coords):
        out = []
        for coords in target_coords:
            state = state + self.step(state)
            out.append(self.predict(state, coords.to(state.device)).cpu())
        return out


def to_device(sample):
    state, coords = sample
    if sys.argv[1] != "fixed":
        coords = [c.cuda(non_blocking=True) for c in coords]
    return state.cuda(), coords


def samples(count):
    pool = torch.rand(POINTS + STEPS, 64)
    for _ in range(count):
        yield torch.randn(CELLS, WIDTH), [pool[i:i + POINTS] for i in range(STEPS)]


model = Forecaster().cuda().eval()
with torch.no_grad():
    for i, sample in enumerate(samples(2)):
        state, coords = to_device(sample)
        forecast = model(state, coords)
        del state, coords
        print(i, len(forecast), forecast[0].shape, torch.cuda.max_memory_allocated() >> 20, "MiB")
