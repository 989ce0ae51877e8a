# SPDX-License-Identifier: Apache-2.0
"""All organs of a whole-body scan are segmented: a network runs at half the resolution, its output is brought back to the scan's."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

ORGANS = 105


class SegResNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.enter = nn.Conv3d(1, width, 3, 2, 1)
        self.body = nn.Sequential(nn.GroupNorm(8, width), nn.ReLU(), nn.Conv3d(width, width, 3, padding=1),
                                  nn.GroupNorm(8, width), nn.ReLU(), nn.Conv3d(width, width, 3, padding=1))
        self.leave = nn.Conv3d(width, ORGANS, 1)

    def forward(self, x):
        h = self.enter(x)
        return self.leave(h + self.body(h))


def logits2pred(logits, sigmoid=False, dim=1):
    if isinstance(logits, (list, tuple)):
        logits = logits[0]
    if sigmoid:
        return torch.sigmoid(logits) >= 0.5
    if sys.argv[1] == "fixed":
        return torch.argmax(logits, dim=dim, keepdim=True).to(dtype=torch.uint8)
    pred = torch.softmax(logits, dim=dim)
    return torch.argmax(pred, dim=dim, keepdim=True).to(dtype=torch.uint8)


@torch.no_grad()
def segment(model, scan):
    logits = model(scan)
    logits = F.interpolate(logits, size=scan.shape[2:], mode="trilinear")
    return logits2pred(logits).cpu()


model = SegResNet().half().cuda().eval()
for patient, depth in enumerate((96, 160)):
    scan = torch.rand(1, 1, 224, 224, depth).half().cuda()
    print(patient, segment(model, scan).shape, torch.cuda.max_memory_allocated() >> 20, "MiB")
