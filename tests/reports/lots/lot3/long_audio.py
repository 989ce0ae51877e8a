# SPDX-License-Identifier: Apache-2.0
"""Separating a long recording into stems: windows that overlap go through the model, and their results are added up."""
import sys

import torch
from torch import nn

RATE, STEMS = 44100, 4


class Layer(nn.Module):
    def __init__(self, width, dilation):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(width, 2 * width, 1), nn.PReLU(), nn.GroupNorm(1, 2 * width),
                                  nn.Conv1d(2 * width, 2 * width, 3, padding=dilation, dilation=dilation, groups=2 * width), nn.PReLU(),
                                  nn.Conv1d(2 * width, width, 1))

    def forward(self, x):
        return x + self.body(x)


class Separator(nn.Module):
    def __init__(self, filters=256, width=128, stride=64):
        super().__init__()
        self.encoder = nn.Conv1d(2, filters, 2 * stride, stride, stride // 2)
        self.narrow = nn.Conv1d(filters, width, 1)
        self.layers = nn.ModuleList(Layer(width, 2 ** i) for i in range(8))
        self.masks = nn.Conv1d(width, STEMS * filters, 1)
        self.decoder = nn.ConvTranspose1d(filters, 2, 2 * stride, stride, stride // 2)

    def forward(self, mix):
        features = self.encoder(mix)
        h = self.narrow(features)
        for layer in self.layers:
            h = layer(h)
        masks = self.masks(h).sigmoid().unflatten(1, (STEMS, -1))
        out = self.decoder((masks * features[:, None]).flatten(0, 1))
        return nn.functional.pad(out, (0, mix.shape[-1] - out.shape[-1])).unflatten(0, (len(mix), STEMS))


class Runner:
    def __init__(self, model, segment=6, overlap=2):
        self.model, self.size, self.step = model, segment * RATE, segment * RATE // overlap
        self.fade = torch.hamming_window(self.size)

    def overlap_add(self, result, part, weights, start, length):
        result[..., start:start + length] += part[..., :length] * weights[:length]
        return result

    def demix(self, mix):
        device = next(self.model.parameters()).device
        keep = torch.device("cpu") if sys.argv[1] == "fixed" else device
        weights = self.fade.to(keep)
        result = torch.zeros(STEMS, *mix.shape, device=keep)
        counter = torch.zeros(STEMS, *mix.shape, device=keep)
        with torch.no_grad():
            for start in range(0, mix.shape[-1] - self.size + 1, self.step):
                part = mix[None, :, start:start + self.size].to(device)
                x = self.model(part)[0].to(keep)
                self.overlap_add(result, x, weights, start, self.size)
                counter[..., start:start + self.size] += weights
        return (result / counter.clamp(min=1e-10)).cpu()


runner = Runner(Separator().cuda().eval())
for minutes in (2, 9):
    stems = runner.demix(torch.rand(2, minutes * 60 * RATE))
    print(minutes, stems.shape, torch.cuda.max_memory_allocated() >> 20, "MiB")
