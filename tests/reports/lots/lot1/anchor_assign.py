# SPDX-License-Identifier: Apache-2.0
"""An anchor-based detector on aerial images with hundreds of objects each."""
import sys

import torch
from torch import nn
from torchvision.models import resnet18

MODE = sys.argv[1]
STRIDES = [8, 16, 32]
SIZE = 640


def make_anchors(device):
    found = []
    for stride in STRIDES:
        n = SIZE // stride
        ys, xs = torch.meshgrid(torch.arange(n), torch.arange(n), indexing="ij")
        centers = torch.stack([xs, ys, xs, ys], -1).reshape(-1, 1, 4) * stride
        sides = torch.tensor([[-s, -s * r, s, s * r] for s in (2, 2.5, 3.2) for r in (0.5, 1, 2)]) * stride
        found.append((centers + sides).reshape(-1, 4))
    return torch.cat(found).float().to(device)


def bbox_overlaps(a, b):
    lt = torch.max(a[:, None, :2], b[None, :, :2])
    rb = torch.min(a[:, None, 2:], b[None, :, 2:])
    wh = (rb - lt).clamp(min=0)
    overlap = wh[..., 0] * wh[..., 1]
    area_a = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1])
    area_b = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    return overlap / (area_a[:, None] + area_b[None] - overlap).clamp(min=1e-6)


class MaxIoUAssigner:
    def assign(self, anchors, boxes):
        device = anchors.device
        if MODE == "fixed":
            anchors, boxes = anchors.cpu(), boxes.cpu()
        best, index = bbox_overlaps(anchors, boxes).max(1)
        return (best > 0.5).float().to(device), boxes[index].to(device)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        trunk = resnet18()
        self.stem = nn.Sequential(trunk.conv1, trunk.bn1, trunk.relu, trunk.maxpool, trunk.layer1)
        self.stages = nn.ModuleList([trunk.layer2, trunk.layer3, trunk.layer4])
        self.heads = nn.ModuleList(nn.Conv2d(c, 9 * 5, 3, padding=1) for c in (128, 256, 512))

    def forward(self, x):
        x, out = self.stem(x), []
        for stage, head in zip(self.stages, self.heads):
            x = stage(x)
            out.append(head(x).permute(0, 2, 3, 1).reshape(len(x), -1, 5))
        return torch.cat(out, 1)


def main():
    model = Detector().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    anchors, assigner = make_anchors("cuda"), MaxIoUAssigner()
    for objects in (40, 120, 900, 60):
        images = torch.randn(2, 3, SIZE, SIZE, device="cuda")
        out = model(images)
        loss = 0
        for i in range(len(images)):
            xy = torch.rand(objects, 2) * SIZE
            boxes = torch.cat([xy, xy + 24], 1).cuda()
            positive, target = assigner.assign(anchors, boxes)
            loss = loss + nn.functional.binary_cross_entropy_with_logits(out[i, :, 4], positive)
            loss = loss + ((out[i, :, :4] - target).abs().sum(1) * positive).mean() / SIZE
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
