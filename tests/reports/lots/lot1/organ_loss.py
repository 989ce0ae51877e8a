# SPDX-License-Identifier: Apache-2.0
"""Segmentation of many structures in a volume, with the sum of a Dice and a focal loss."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

MODE = sys.argv[1]
STRUCTURES = 48


def one_hot(labels, classes):
    shape = list(labels.shape)
    shape[1] = classes
    return torch.zeros(shape, device=labels.device).scatter_(1, labels, 1)


class DiceLoss(nn.Module):
    def __init__(self, to_onehot=True):
        super().__init__()
        self.to_onehot = to_onehot

    def forward(self, logits, target):
        if self.to_onehot:
            target = one_hot(target, logits.shape[1])
        p = torch.softmax(logits, 1)
        axes = (2, 3, 4)
        inter = (p * target).sum(axes)
        return (1 - (2 * inter + 1e-5) / (p.sum(axes) + target.sum(axes) + 1e-5)).mean()


class FocalLoss(nn.Module):
    def __init__(self, to_onehot=True):
        super().__init__()
        self.to_onehot = to_onehot

    def forward(self, logits, target):
        if self.to_onehot:
            target = one_hot(target, logits.shape[1])
        ce = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
        return (ce * (1 - torch.exp(-ce)) ** 2).mean()


class DiceFocalLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.once = MODE == "fixed"
        self.dice, self.focal = DiceLoss(not self.once), FocalLoss(not self.once)

    def forward(self, logits, target):
        if self.once:
            target = one_hot(target, logits.shape[1])
        return self.dice(logits, target) + self.focal(logits, target)


class SmallUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1 = nn.Sequential(nn.Conv3d(1, 16, 3, padding=1), nn.InstanceNorm3d(16), nn.ReLU())
        self.down2 = nn.Sequential(nn.Conv3d(16, 32, 3, 2, 1), nn.InstanceNorm3d(32), nn.ReLU())
        self.up = nn.ConvTranspose3d(32, 16, 2, 2)
        self.out = nn.Conv3d(32, STRUCTURES, 1)

    def forward(self, x):
        a = self.down1(x)
        return self.out(torch.cat([a, self.up(self.down2(a))], 1))


def main():
    model, criterion = SmallUNet().cuda(), DiceFocalLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(4):
        image = torch.randn(1, 1, 96, 96, 96, device="cuda")
        label = torch.randint(STRUCTURES, (1, 1, 96, 96, 96), device="cuda")
        loss = criterion(model(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
