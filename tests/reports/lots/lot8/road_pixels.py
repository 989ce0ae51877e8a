# SPDX-License-Identifier: Apache-2.0
"""Roads are segmented in aerial photographs; the validation computes the average precision of all pixels at 200 thresholds."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

BATCH, SIZE, WIDTH = 4, 288, 24


def block(n_in, n_out):
    return nn.Sequential(nn.Conv2d(n_in, n_out, 3, padding=1), nn.BatchNorm2d(n_out), nn.ReLU(inplace=True))


class RoadNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter, self.down, self.deep = block(3, WIDTH), block(WIDTH, 2 * WIDTH), block(2 * WIDTH, 4 * WIDTH)
        self.up, self.leave, self.head = block(6 * WIDTH, 2 * WIDTH), block(3 * WIDTH, WIDTH), nn.Conv2d(WIDTH, 1, 1)

    def forward(self, x):
        first = self.enter(x)
        second = self.down(F.max_pool2d(first, 2))
        x = self.deep(F.max_pool2d(second, 2))
        x = self.up(torch.cat([F.interpolate(x, scale_factor=2), second], 1))
        return self.head(self.leave(torch.cat([F.interpolate(x, scale_factor=2), first], 1))).squeeze(1)


def update_vectorized(preds, target, thresholds):
    above = (preds.unsqueeze(-1) >= thresholds).long()
    mapping = above + 2 * target.long().unsqueeze(-1) + 4 * torch.arange(len(thresholds), device=preds.device)
    return torch.bincount(mapping.flatten(), minlength=4 * len(thresholds)).reshape(-1, 2, 2)


def update_loop(preds, target, thresholds):
    confusion, target = [], target.float()
    for threshold in thresholds:
        above = (preds >= threshold).float()
        hits, said = above @ target, above.sum()
        missed = target.sum() - hits
        confusion.append(torch.stack([len(preds) - said - missed, said - hits, missed, hits]))
    return torch.stack(confusion).long().reshape(-1, 2, 2)


class BinaryAveragePrecision(nn.Module):
    def __init__(self, thresholds):
        super().__init__()
        self.register_buffer("thresholds", torch.linspace(0, 1, thresholds))
        self.register_buffer("confusion", torch.zeros(thresholds, 2, 2, dtype=torch.long))

    def update(self, preds, target):
        update = update_loop if sys.argv[1] == "fixed" else update_vectorized
        self.confusion += update(preds.flatten(), target.flatten(), self.thresholds)

    def compute(self):
        hits, false, missed = self.confusion[:, 1, 1], self.confusion[:, 0, 1], self.confusion[:, 1, 0]
        precision, recall = hits / (hits + false).clamp(min=1), hits / (hits + missed).clamp(min=1)
        return -torch.sum((recall[1:] - recall[:-1]) * precision[:-1])


def loader(batches):
    for _ in range(batches):
        yield torch.rand(BATCH, 3, SIZE, SIZE).cuda(), (torch.rand(BATCH, SIZE, SIZE) > 0.9).cuda()


model, metric = RoadNet().cuda(), BinaryAveragePrecision(thresholds=200).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(2):
    model.train()
    for images, roads in loader(5):
        loss = F.binary_cross_entropy_with_logits(model(images), roads.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for images, roads in loader(3):
            metric.update(model(images).sigmoid(), roads)
    print(epoch, loss.item(), metric.compute().item(), torch.cuda.max_memory_allocated() >> 20, "MiB")
