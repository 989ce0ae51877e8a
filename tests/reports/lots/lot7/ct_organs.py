# SPDX-License-Identifier: Apache-2.0
"""A network marks organs in CT scans: it is trained on crops, and validated on whole scans in sliding windows."""
import itertools
import sys

import torch
import torch.nn.functional as F
from torch import nn

ORGANS, CROP, SCAN, OVERLAP = 14, (64, 64, 64), (160, 160, 128), 0.25


def block(n_in, n_out):
    return nn.Sequential(nn.Conv3d(n_in, n_out, 3, padding=1), nn.InstanceNorm3d(n_out), nn.LeakyReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.enc1, self.enc2, self.enc3 = block(1, width), block(width, 2 * width), block(2 * width, 4 * width)
        self.up2, self.up1 = nn.ConvTranspose3d(4 * width, 2 * width, 2, 2), nn.ConvTranspose3d(2 * width, width, 2, 2)
        self.dec2, self.dec1, self.out = block(4 * width, 2 * width), block(2 * width, width), nn.Conv3d(width, ORGANS, 1)

    def forward(self, x):
        e1 = self.enc1(x)
        e2 = self.enc2(F.max_pool3d(e1, 2))
        d2 = self.dec2(torch.cat([self.up2(self.enc3(F.max_pool3d(e2, 2))), e2], 1))
        return self.out(self.dec1(torch.cat([self.up1(d2), e1], 1)))


def window_starts(size, roi):
    step = int(roi * (1 - OVERLAP))
    return sorted({min(i, size - roi) for i in range(0, size, step)})


def sliding_window_inference(inputs, roi, sw_batch_size, predictor, device=None):
    device = device or inputs.device
    starts = list(itertools.product(*(window_starts(s, r) for s, r in zip(inputs.shape[2:], roi))))
    slices = [tuple(slice(s, s + r) for s, r in zip(start, roi)) for start in starts]
    outputs = []
    for i in range(0, len(slices), sw_batch_size):
        windows = torch.cat([inputs[(slice(None), slice(None), *s)] for s in slices[i:i + sw_batch_size]])
        outputs += predictor(windows).to(device).split(1)
    output_image = torch.zeros(1, ORGANS, *inputs.shape[2:], device=device)
    count_map = torch.zeros(1, ORGANS, *inputs.shape[2:], device=device)
    for s, window in zip(slices, outputs):
        output_image[(slice(None), slice(None), *s)] += window
        count_map[(slice(None), slice(None), *s)] += 1
    return output_image / count_map


def dice(pred, label):
    return [2 * ((pred == c) & (label == c)).sum().item() / max(1, (pred == c).sum().item()) for c in range(1, 4)]


net = UNet().cuda()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
for step in range(4):
    image, label = torch.rand(2, 1, *CROP).cuda(), torch.randint(0, ORGANS, (2, *CROP)).cuda()
    loss = F.cross_entropy(net(image), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
net.eval()
with torch.no_grad():
    for scan in range(2):
        image, label = torch.rand(1, 1, *SCAN).cuda(), torch.randint(0, ORGANS, SCAN)
        logits = sliding_window_inference(image, CROP, 4, net, torch.device("cpu") if sys.argv[1] == "fixed" else None)
        pred = logits.argmax(1)[0].cpu()
        print("scan", scan, dice(pred, label), torch.cuda.max_memory_allocated() >> 20, "MiB")
