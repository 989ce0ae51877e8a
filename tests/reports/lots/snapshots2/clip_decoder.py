# SPDX-License-Identifier: Apache-2.0
"""Video clips are sampled and decoded. A context manager around the decoding records Python's stacks and writes at its end, also after an error."""
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

FOLDER, FIXED = Path(sys.argv[1]), sys.argv[2:] == ["fixed"]


class MemorySnapshot:
    def __init__(self, filename):
        self.filename = filename

    def __enter__(self):
        torch.cuda.memory._record_memory_history(context="all", stacks="python", max_entries=100_000)

    def __exit__(self, exc_type, exc_val, exc_tb):
        torch.cuda.memory._dump_snapshot(filename=self.filename)
        torch.cuda.memory._record_memory_history(enabled=None)


class Denoiser(nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.enter, self.leave = nn.Linear(8, width), nn.Linear(width, 8)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True) for _ in range(4))

    def forward(self, x):
        x = self.enter(x)
        for layer in self.layers:
            x = layer(x)
        return self.leave(x)


class Decoder(nn.Module):
    def __init__(self, widths=(96, 64, 32)):
        super().__init__()
        self.enter, self.leave = nn.Conv3d(8, widths[0], 1), nn.Conv3d(widths[-1], 3, 1)
        self.convs = nn.ModuleList(nn.Conv3d(a, b, 3, padding=1) for a, b in zip(widths, (*widths[1:], widths[-1])))
        self.refine = nn.ModuleList(nn.Conv3d(widths[-1], widths[-1], 1) for _ in range(4))

    def forward(self, z):
        x = self.enter(z)
        for conv in self.convs:
            x = F.silu(conv(F.interpolate(x, scale_factor=(1, 2, 2))))
        for conv in self.refine:
            x = x + F.silu(conv(x))
        return self.leave(x)


denoiser, decoder = Denoiser().cuda(), Decoder().cuda()
with torch.no_grad():
    z = torch.randn(1, 2048, 8).cuda()
    for t in range(4):
        z = z - 0.1 * denoiser(z)
latents = [torch.randn(1, 8, 12, 20, 32).cuda() for _ in range(3)]
try:
    with MemorySnapshot(FOLDER / "memory_snapshot.pickle"), torch.set_grad_enabled(not FIXED):
        clips = [decoder(z).clamp(-1, 1).detach().cpu() for z in latents]
finally:
    print("truth", {"denoiser": sum(p.nbytes for p in denoiser.parameters()), "decoder": sum(p.nbytes for p in decoder.parameters())},
          torch.cuda.max_memory_allocated())
