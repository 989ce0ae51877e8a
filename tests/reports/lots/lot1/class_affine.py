# SPDX-License-Identifier: Apache-2.0
"""Semantic image synthesis: normalization with a scale and an offset for each class of a label map."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

MODE = sys.argv[1]
CLASSES = 96


class ClassAffine(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.channels = channels
        self.norm = nn.InstanceNorm2d(channels)
        self.weight = nn.Parameter(torch.rand(CLASSES, channels))
        self.bias = nn.Parameter(torch.zeros(CLASSES, channels))

    def lookup(self, table, labels):
        n, h, w = labels.shape
        if MODE == "fixed":
            return F.embedding(labels, table).permute(0, 3, 1, 2)
        index = labels.view(n, 1, h * w).expand(n, self.channels, h * w)
        wide = table.unsqueeze(2).expand(CLASSES, self.channels, h * w)
        return torch.gather(wide, 0, index).view(n, self.channels, h, w)

    def forward(self, x, labels):
        labels = F.interpolate(labels[:, None].float(), size=x.shape[2:], mode="nearest")[:, 0].long()
        return self.norm(x) * self.lookup(self.weight, labels) + self.lookup(self.bias, labels)


class Block(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.affine = ClassAffine(n_in)
        self.conv = nn.Conv2d(n_in, n_out, 3, padding=1)

    def forward(self, x, labels):
        return self.conv(F.leaky_relu(self.affine(x, labels), 0.2))


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.start = nn.Linear(128, 256 * 8 * 8)
        self.blocks = nn.ModuleList([Block(256, 128), Block(128, 64), Block(64, 64), Block(64, 64), Block(64, 32)])
        self.image = nn.Conv2d(32, 3, 3, padding=1)

    def forward(self, z, labels):
        x = self.start(z).view(-1, 256, 8, 8)
        for block in self.blocks:
            x = F.interpolate(block(x, labels), scale_factor=2)
        return self.image(x).tanh()


def main():
    model = Generator().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-4, betas=(0.0, 0.9))
    for step in range(4):
        labels = torch.randint(CLASSES, (4, 256, 256), device="cuda")
        real = torch.rand(4, 3, 256, 256, device="cuda")
        fake = model(torch.randn(4, 128, device="cuda"), labels)
        loss = F.l1_loss(fake, real)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
