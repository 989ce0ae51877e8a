# SPDX-License-Identifier: Apache-2.0
"""A U-Net learns the next states of smoke (density and velocity); the losses of both are collected for the statistics of the epoch."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

SCALARS, VECTORS, HISTORY, FUTURE, GRID, BATCH, HIDDEN = 1, 2, 4, 2, 64, 16, 32


class CustomMSELoss(nn.Module):
    def forward(self, pred, target):
        return F.mse_loss(pred, target, reduction="none").mean(dim=(0, 1, 3, 4)).sum()


def conv(n_in, n_out):
    return nn.Sequential(nn.Conv2d(n_in, n_out, 3, padding=1), nn.GroupNorm(8, n_out), nn.GELU())


class Unet(nn.Module):
    def __init__(self, fields=SCALARS + VECTORS):
        super().__init__()
        self.fields, h = fields, HIDDEN
        self.image_proj = conv(HISTORY * fields, h)
        self.down = nn.ModuleList([conv(h, 2 * h), conv(2 * h, 4 * h)])
        self.up = nn.ModuleList([conv(6 * h, 2 * h), conv(3 * h, h)])
        self.final = nn.Conv2d(h, FUTURE * fields, 3, padding=1)

    def forward(self, x):
        x = self.image_proj(x.flatten(1, 2))
        skips = []
        for down in self.down:
            skips.append(x)
            x = down(F.avg_pool2d(x, 2))
        for up in self.up:
            x = up(torch.cat([F.interpolate(x, scale_factor=2), skips.pop()], 1))
        return self.final(x).unflatten(1, (FUTURE, self.fields))


class PDEModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.model, self.train_criterion = Unet(), CustomMSELoss()

    def training_step(self, batch):
        x, y = batch
        preds = self.model(x)
        loss = self.train_criterion(preds, y)
        scalar_loss = self.train_criterion(preds[:, :, :SCALARS], y[:, :, :SCALARS])
        vector_loss = self.train_criterion(preds[:, :, SCALARS:], y[:, :, SCALARS:])
        if sys.argv[1] == "fixed":
            scalar_loss, vector_loss = scalar_loss.detach(), vector_loss.detach()
        return {"loss": loss, "scalar_loss": scalar_loss, "vector_loss": vector_loss}

    def training_epoch_end(self, outputs):
        for key in outputs[0]:
            losses = torch.stack([output[key] for output in outputs])
            draws = losses[torch.randint(0, len(losses), (64, len(losses)), device=losses.device)].mean(1)
            print(key, "mean", draws.mean().item(), "std", draws.std().item())


class Trainer:
    def __init__(self, epochs):
        self.epochs = epochs

    def fit(self, module, dataloader):
        optimizer = torch.optim.Adam(module.parameters(), lr=2e-4)
        for epoch in range(self.epochs):
            epoch_outputs = []
            for batch_idx, batch in enumerate(dataloader()):
                output = module.training_step([t.cuda() for t in batch])
                optimizer.zero_grad()
                output["loss"].backward()
                optimizer.step()
                epoch_outputs.append({**output, "loss": output["loss"].detach()})
                if batch_idx % 30 == 29:
                    print(epoch, batch_idx, torch.cuda.memory_allocated() >> 20, "MiB")
            module.training_epoch_end(epoch_outputs)


def trajectories():
    for _ in range(120):
        yield torch.randn(BATCH, HISTORY, SCALARS + VECTORS, GRID, GRID), torch.randn(BATCH, FUTURE, SCALARS + VECTORS, GRID, GRID)


Trainer(epochs=2).fit(PDEModel().cuda(), trajectories)
print(torch.cuda.max_memory_allocated() >> 20, "MiB")
