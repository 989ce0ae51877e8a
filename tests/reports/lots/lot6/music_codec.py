# SPDX-License-Identifier: Apache-2.0
"""Songs are compressed by a neural codec and written as codes."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

RATE, STRIDES, CODES, DIM = 16_000, (2, 4, 5), 1024, 32


class ResidualUnit(nn.Module):
    def __init__(self, width, dilation):
        super().__init__()
        self.block = nn.Sequential(nn.ELU(), nn.Conv1d(width, width, 7, dilation=dilation, padding=3 * dilation), nn.ELU(), nn.Conv1d(width, width, 1))

    def forward(self, x):
        return x + self.block(x)


class Encoder(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        layers = [nn.Conv1d(1, width, 7, padding=3)]
        for stride in STRIDES:
            layers += [ResidualUnit(width, 1), ResidualUnit(width, 3), nn.Conv1d(width, 2 * width, 2 * stride, stride, stride // 2)]
            width *= 2
        self.net = nn.Sequential(*layers, nn.Conv1d(width, DIM, 3, padding=1))

    def forward(self, audio):
        return self.net(audio)


class Codec(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.codebooks = Encoder(), nn.Parameter(torch.randn(4, CODES, DIM))

    def quantize(self, z):
        residual, codes = z.transpose(1, 2), []
        for book in self.codebooks:
            distance = residual.square().sum(-1, keepdim=True) - 2 * residual @ book.t() + book.square().sum(-1)
            index = distance.argmin(-1)
            residual = residual - F.embedding(index, book)
            codes.append(index)
        return torch.stack(codes)

    @torch.no_grad()
    def compress(self, song, win_duration=None):
        if win_duration is None:
            return self.quantize(self.encoder(song.cuda())).cpu()
        window = int(win_duration * RATE)
        return torch.cat([self.quantize(self.encoder(part.cuda())).cpu() for part in song.split(window, dim=-1)], dim=-1)


codec = Codec().cuda().eval()
for name, seconds in {"jingle": 12, "single": 150, "symphony": 420}.items():
    song = torch.zeros(1, 1, seconds * RATE)
    codes = codec.compress(song, win_duration=5.0 if sys.argv[1] == "fixed" else None)
    print(name, tuple(codes.shape), torch.cuda.max_memory_allocated() >> 20, "MiB")
