# SPDX-License-Identifier: Apache-2.0
"""Decoding the latents of a video: parts of some frames each go through the decoder and become one video."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

FRAMES = 2  # latents in a part


class Up(nn.Module):
    def __init__(self, a, b, stretch):
        super().__init__()
        self.stretch = stretch
        self.body = nn.Sequential(nn.GroupNorm(8, a), nn.SiLU(), nn.Conv3d(a, b, 3, padding=1))

    def forward(self, x):
        return self.body(F.interpolate(x, scale_factor=self.stretch))


class VideoVAE(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.enter = nn.Conv3d(16, 2 * width, 3, padding=1)
        self.up = nn.ModuleList([Up(2 * width, width, (2, 2, 2)), Up(width, width // 2, (2, 2, 2)), Up(width // 2, width // 2, (1, 2, 2))])
        self.leave = nn.Conv3d(width // 2, 3, 3, padding=1)

    def decode_part(self, z):
        h = self.enter(z)
        for up in self.up:
            h = up(h)
        return self.leave(h)

    def parts(self, z):
        for start in range(0, z.shape[2], FRAMES):
            yield start, self.decode_part(z[:, :, start:start + FRAMES])

    def decode(self, z):
        out = []
        for _, part in self.parts(z):
            out.append(part)
        return torch.cat(out, dim=2).float()

    def decode_into(self, z, output):
        for start, part in self.parts(z):
            output[:, :, 4 * start:4 * start + part.shape[2]] = part.float().add_(1).div_(2).clamp_(0, 1).to(output.device)


class Wrapper:
    def __init__(self, vae):
        self.vae = vae

    def process_output(self, video):
        return video.add_(1.0).div_(2.0).clamp_(0.0, 1.0)

    def decode(self, samples):
        z = samples.to("cuda", torch.float16)
        if sys.argv[1] == "fixed":
            b, _, t, h, w = samples.shape
            pixels = torch.empty(b, 3, 4 * t, 8 * h, 8 * w)
            self.vae.decode_into(z, pixels)
        else:
            pixels = self.process_output(self.vae.decode(z)).cpu()
        return pixels.movedim(1, -1)


wrapper = Wrapper(VideoVAE().half().cuda().eval())
with torch.inference_mode():
    for length in (8, 120):
        video = wrapper.decode(torch.randn(1, 16, length, 32, 56))
        print(length, video.shape, torch.cuda.max_memory_allocated() >> 20, "MiB")
