# SPDX-License-Identifier: Apache-2.0
"""Photographs of leaves are classified by a network of inverted bottlenecks, after EfficientNet."""
import sys

import torch
import torch.nn.functional as F
from torch import nn


class SwishFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad * (s * (1 + x * (1 - s)))


class Swish(nn.Module):
    def forward(self, x):
        if sys.argv[1] == "fixed":
            return SwishFunction.apply(x)
        return x * torch.sigmoid(x)


class MBConv(nn.Module):
    def __init__(self, a, b, expand, stride):
        super().__init__()
        wide = a * expand
        self.expand = nn.Sequential(nn.Conv2d(a, wide, 1, bias=False), nn.BatchNorm2d(wide), Swish())
        self.depthwise = nn.Sequential(nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), nn.BatchNorm2d(wide), Swish())
        self.squeeze = nn.Sequential(nn.Conv2d(wide, max(a // 4, 1), 1), Swish(), nn.Conv2d(max(a // 4, 1), wide, 1))
        self.project = nn.Sequential(nn.Conv2d(wide, b, 1, bias=False), nn.BatchNorm2d(b))
        self.skip = a == b and stride == 1

    def forward(self, x):
        h = self.depthwise(self.expand(x))
        h = h * torch.sigmoid(self.squeeze(F.adaptive_avg_pool2d(h, 1)))
        h = self.project(h)
        return x + h if self.skip else h


class EfficientNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        layers, a = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), Swish()], 32
        for width, repeats, stride, expand in ((16, 1, 1, 1), (24, 2, 2, 6), (40, 2, 2, 6), (80, 3, 2, 6), (112, 3, 1, 6), (192, 4, 2, 6)):
            for i in range(repeats):
                layers.append(MBConv(a, width, expand, stride if i == 0 else 1))
                a = width
        self.features = nn.Sequential(*layers)
        self.head = nn.Sequential(nn.Conv2d(a, 1280, 1, bias=False), nn.BatchNorm2d(1280), Swish())
        self.classify = nn.Linear(1280, classes)

    def forward(self, x):
        return self.classify(self.head(self.features(x)).mean((2, 3)))


model = EfficientNet(38).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for step in range(4):
    images, labels = torch.rand(44, 3, 256, 256).cuda(), torch.randint(0, 38, (44,)).cuda()
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, torch.cuda.max_memory_allocated() >> 20, "MiB")
