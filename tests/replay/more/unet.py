# SPDX-License-Identifier: Apache-2.0
"""A network of convolutions up and down with skips, channels last, gradient accumulation, sizes that differ."""
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList(nn.Conv2d(c, d, 3, padding=1) for c, d in ((3, 40), (40, 80), (80, 160)))
        self.up = nn.ModuleList(nn.ConvTranspose2d(c, d, 2, 2) for c, d in ((160, 80), (160, 40)))
        self.last = nn.Conv2d(80, 2, 1)

    def forward(self, x):
        skips = []
        for i, layer in enumerate(self.down):
            x = nn.functional.silu(layer(x if not i else nn.functional.max_pool2d(x, 2)))
            skips.append(x)
        for layer, skip in zip(self.up, (skips[1], skips[0])):
            x = torch.cat([layer(x), skip], 1)
        return self.last(x)


model = Net().cuda().to(memory_format=torch.channels_last)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
for step in range(5):
    for part in range(2):
        side = 96 + 32 * ((step + part) % 4)
        x = torch.randn(5, 3, side, side, device="cuda").to(memory_format=torch.channels_last)
        (model(x).square().mean() / 2).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
