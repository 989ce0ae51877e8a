# SPDX-License-Identifier: Apache-2.0
"""A diffusion model with averaged weights; a callback records from the start of training on and writes at the end. A run that goes on has its state already."""
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

FOLDER, FIXED = Path(sys.argv[1]), sys.argv[2:] == ["fixed"]


class MemoryProfileCallback:
    def on_train_start(self):
        torch.cuda.memory._record_memory_history(max_entries=100000)

    def on_train_end(self):
        torch.cuda.memory._dump_snapshot(str(FOLDER / "memory_profile_rank0.pickle"))
        torch.cuda.memory._record_memory_history(enabled=None)


class Down(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.conv, self.time, self.norm, self.skip = nn.Conv2d(a, b, 3, 1, 1), nn.Linear(64, b), nn.GroupNorm(8, b), nn.Conv2d(a, b, 1)

    def forward(self, x, t):
        return F.silu(self.norm(self.conv(x)) + self.time(t)[:, :, None, None]) + self.skip(x)


class UNet(nn.Module):
    def __init__(self, widths=(64, 256, 768, 1280)):
        super().__init__()
        pairs = list(zip(widths, widths[1:]))
        self.enter, self.leave = nn.Conv2d(4, widths[0], 3, 1, 1), nn.Conv2d(widths[0], 4, 3, 1, 1)
        self.down, self.up = nn.ModuleList(Down(a, b) for a, b in pairs), nn.ModuleList(Down(2 * b, a) for a, b in reversed(pairs))

    def forward(self, x, t):
        x, t, kept = self.enter(x), torch.sin(t[:, None] * torch.arange(64, device="cuda")), []
        for block in self.down:
            x = block(x, t)
            kept.append(x)
            x = F.avg_pool2d(x, 2)
        for block in self.up:
            x = block(torch.cat([F.interpolate(x, scale_factor=2), kept.pop()], 1), t)
        return self.leave(x)


def fit(callback):
    model = UNet().cuda()
    average = torch.optim.swa_utils.AveragedModel(model, device="cpu" if FIXED else None, avg_fn=torch.optim.swa_utils.get_ema_avg_fn(0.999))
    optimizer = torch.optim.AdamW(model.parameters())
    for p in model.parameters():  # what load_state_dict of a checkpoint leaves
        optimizer.state[p] = {"step": torch.zeros(()), "exp_avg": torch.zeros_like(p), "exp_avg_sq": torch.zeros_like(p)}
    callback.on_train_start()
    for _ in range(3):
        latents, t = torch.randn(4, 4, 32, 32).cuda(), torch.rand(4).cuda()
        noise = torch.randn_like(latents)
        F.mse_loss(model(latents + noise * t[:, None, None, None], t), noise).backward()
        optimizer.step()
        optimizer.zero_grad()
        average.update_parameters(model)
    callback.on_train_end()
    print("truth", {"parameters": sum(p.nbytes for p in model.parameters()), "average": sum(p.nbytes for p in average.parameters() if p.is_cuda),
                    "optimizer_state": sum(t.nbytes for s in optimizer.state.values() for t in s.values() if t.is_cuda)},
          torch.cuda.max_memory_allocated())


fit(MemoryProfileCallback())
