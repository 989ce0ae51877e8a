# SPDX-License-Identifier: Apache-2.0
"""The load of a power grid is forecast from minutes of history: windows of the series are sampled for each step."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

HISTORY, HORIZON, FEATURES = 192, 48, 9


class Forecaster(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(HISTORY * FEATURES, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.head = nn.Linear(width, HORIZON)

    def forward(self, x):
        return self.head(self.body(x.flatten(1)))


class WindowsTrainer:
    def __init__(self, model, windows_batch_size=1024):
        self.model, self.windows_batch_size = model, windows_batch_size
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def create_windows(self, temporal):
        windows = temporal.unfold(-1, HISTORY + HORIZON, 1)
        if sys.argv[1] == "fixed":
            series = torch.randint(0, windows.shape[0], (self.windows_batch_size,), device=temporal.device)
            start = torch.randint(0, windows.shape[2], (self.windows_batch_size,), device=temporal.device)
            return windows.permute(0, 2, 3, 1)[series, start]
        windows = windows.permute(0, 2, 3, 1).contiguous()
        windows = windows.reshape(-1, HISTORY + HORIZON, FEATURES)
        chosen = torch.randperm(len(windows), device=temporal.device)[:self.windows_batch_size]
        return windows[chosen]

    def training_step(self, temporal):
        windows = self.create_windows(temporal)
        insample, outsample = windows[:, :HISTORY], windows[:, HISTORY:, 0]
        loss = F.l1_loss(self.model(insample), outsample)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss


trainer = WindowsTrainer(Forecaster().cuda())
temporal = torch.rand(1, FEATURES, 350000).cuda()
for step in range(5):
    loss = trainer.training_step(temporal)
    print(step, torch.cuda.max_memory_allocated() >> 20, "MiB")
