# SPDX-License-Identifier: Apache-2.0
"""Land cover is segmented in satellite images; a trainer collects what the steps of an epoch return."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

CLASSES, BANDS, SIZE, BATCH = 11, 6, 384, 4


def conv(c_in, c_out):
    return nn.Sequential(nn.Conv2d(c_in, c_out, 3, padding=1), nn.BatchNorm2d(c_out), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.enc = nn.ModuleList(conv(a, b) for a, b in [(BANDS, width), (width, 2 * width), (2 * width, 4 * width)])
        self.dec = nn.ModuleList(conv(a, b) for a, b in [(6 * width, 2 * width), (3 * width, width)])
        self.head = nn.Conv2d(width, CLASSES, 1)

    def forward(self, x):
        skips = []
        for i, block in enumerate(self.enc):
            x = block(F.max_pool2d(x, 2) if i else x)
            skips.append(x)
        for block, skip in zip(self.dec, skips[-2::-1]):
            x = block(torch.cat([F.interpolate(x, scale_factor=2), skip], 1))
        return self.head(x)


class LandCover(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net, self.losses = net, []

    def step(self, batch):
        x, y = batch
        logits = self.net(x)
        return F.cross_entropy(logits, y), torch.argmax(logits, dim=1), y

    def training_step(self, batch, batch_idx):
        loss, preds, targets = self.step(batch)
        self.losses.append(loss.item())
        if sys.argv[1] == "fixed":
            return {"loss": loss}
        return {"loss": loss, "preds": preds, "targets": targets}

    def training_epoch_end(self, outputs):
        print(len(outputs), "steps", sum(self.losses) / len(self.losses), torch.cuda.max_memory_allocated() >> 20, "MiB")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


class Trainer:
    def __init__(self, max_epochs):
        self.max_epochs = max_epochs

    def fit(self, model, dataloader):
        optimizer = model.to("cuda").configure_optimizers()
        for epoch in range(self.max_epochs):
            outputs = []
            for batch_idx, batch in enumerate(dataloader()):
                output = model.training_step([t.to("cuda") for t in batch], batch_idx)
                optimizer.zero_grad()
                output["loss"].backward()
                optimizer.step()
                outputs.append({key: value.detach() for key, value in output.items()})
            model.training_epoch_end(outputs)


def tiles():
    for _ in range(40):
        yield torch.rand(BATCH, BANDS, SIZE, SIZE), torch.randint(0, CLASSES, (BATCH, SIZE, SIZE))


torch.manual_seed(0)
Trainer(max_epochs=2).fit(LandCover(UNet()), tiles)
