# SPDX-License-Identifier: Apache-2.0
"""A talking head: frames are encoded with a mask over the mouth, repainted to the sound, and decoded."""
import contextlib
import sys

import torch
import torch.nn.functional as F
from torch import nn

GUARD = torch.no_grad if sys.argv[1] == "fixed" else contextlib.nullcontext


def conv(a, b, stride=1):
    return nn.Sequential(nn.Conv2d(a, b, 3, stride, 1), nn.GroupNorm(8, b), nn.SiLU())


class Avatar(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.encoder = nn.Sequential(conv(3, width), conv(width, width, 2), conv(width, width, 2), nn.Conv2d(width, 4, 3, 1, 1))
        self.sound = nn.Linear(384, 4 * width)
        self.enter, self.leave = conv(8, 4 * width), nn.Conv2d(4 * width, 4, 3, 1, 1)
        self.middle = nn.ModuleList(conv(4 * width, 4 * width) for _ in range(6))
        self.decoder = nn.Sequential(conv(4, width), nn.Upsample(scale_factor=2), conv(width, width), nn.Upsample(scale_factor=2),
                                     conv(width, width), nn.Conv2d(width, 3, 3, 1, 1))

    def latents(self, frames, half):
        masked = frames.clone()
        masked[:, :, half:] = 0
        return torch.cat([self.encoder(masked), self.encoder(frames)], 1)

    def repaint(self, latents, sound):
        h = self.enter(latents) + self.sound(sound)[..., None, None]
        for block in self.middle:
            h = h + block(h)
        return self.leave(h)


def inference(model, frames, sound, batch):
    out = []
    for i in range(0, len(frames), batch):
        part = frames[i:i + batch].cuda()
        latents = model.repaint(model.latents(part, part.shape[2] // 2), sound[i:i + batch].cuda())
        pictures = model.decoder(latents)
        out.extend(((pictures + 1) * 127.5).clamp(0, 255).byte().detach().cpu())
    return out


model = Avatar().cuda().eval()
frames, sound = torch.rand(24, 3, 256, 256), torch.randn(24, 384)
with GUARD():
    video = inference(model, frames, sound, 8)
print(len(video), torch.cuda.max_memory_allocated() >> 20, "MiB")
