# SPDX-License-Identifier: Apache-2.0
"""A small network learns the feature maps of a large one, which stays in training mode for its batch norms."""
import sys

import torch
import torch.nn.functional as F
from torch import nn


class BasicBlock(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        self.shortcut = nn.Conv2d(inputs, width, 1, stride, bias=False)

    def forward(self, x):
        h = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(h)) + self.shortcut(x))


class WideResNet(nn.Module):
    def __init__(self, depth, factor, classes=100):
        super().__init__()
        widths = [16, 16 * factor, 32 * factor, 64 * factor]
        self.conv = nn.Conv2d(3, 16, 3, 1, 1)
        self.stages = nn.ModuleList()
        for stage in range(3):
            inputs, width = widths[stage], widths[stage + 1]
            blocks = [BasicBlock(inputs if i == 0 else width, width, 2 if stage and i == 0 else 1) for i in range(depth)]
            self.stages.append(nn.Sequential(*blocks))
        self.fc = nn.Linear(widths[3], classes)

    def extract_feature(self, x):
        x, features = self.conv(x), []
        for stage in self.stages:
            x = stage(x)
            features.append(x)
        return features, self.fc(x.mean((2, 3)))


class Distiller(nn.Module):
    def __init__(self, teacher, student):
        super().__init__()
        self.teacher, self.student = teacher, student
        self.connectors = nn.ModuleList(nn.Conv2d(16 * 2 ** i, 16 * 2 ** i * 4, 1) for i in range(3))

    def forward(self, images):
        features, logits = self.student.extract_feature(images)
        if sys.argv[1] == "fixed":
            with torch.no_grad():
                targets, _ = self.teacher.extract_feature(images)
        else:
            targets, _ = self.teacher.extract_feature(images)
        loss = sum(F.mse_loss(c(f), t.detach()) / 2 ** (2 - i) for i, (c, f, t) in enumerate(zip(self.connectors, features, targets)))
        return logits, loss


distiller = Distiller(WideResNet(4, 4), WideResNet(2, 1)).cuda().train()
optimizer = torch.optim.SGD([*distiller.student.parameters(), *distiller.connectors.parameters()], lr=0.1, momentum=0.9)
for step in range(5):
    images, labels = torch.rand(128, 3, 32, 32).cuda(), torch.randint(0, 100, (128,)).cuda()
    logits, distill_loss = distiller(images)
    loss = F.cross_entropy(logits, labels) + distill_loss / 1000
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, torch.cuda.max_memory_allocated() >> 20, "MiB")
