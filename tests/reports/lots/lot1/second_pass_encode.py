# SPDX-License-Identifier: Apache-2.0
"""Text to image in two passes: the first result is enlarged, encoded again and refined."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

MODE = sys.argv[1]


class Res(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(32, n_in), nn.GroupNorm(32, n_out)
        self.conv1, self.conv2 = nn.Conv2d(n_in, n_out, 3, padding=1), nn.Conv2d(n_out, n_out, 3, padding=1)
        self.skip = nn.Conv2d(n_in, n_out, 1) if n_in != n_out else nn.Identity()

    def forward(self, x):
        h = self.conv1(F.silu(self.norm1(x)))
        return self.skip(x) + self.conv2(F.silu(self.norm2(h)))


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, 128, 3, padding=1), Res(128, 128), nn.Conv2d(128, 128, 3, 2, 1), Res(128, 256),
                                     nn.Conv2d(256, 256, 3, 2, 1), Res(256, 256), nn.Conv2d(256, 256, 3, 2, 1), nn.Conv2d(256, 4, 1))
        self.decoder = nn.Sequential(nn.Conv2d(4, 256, 3, padding=1), Res(256, 256), nn.Upsample(scale_factor=2), Res(256, 256),
                                     nn.Upsample(scale_factor=2), Res(256, 128), nn.Upsample(scale_factor=2), nn.Conv2d(128, 3, 3, padding=1))


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(4, 320, 3, padding=1), Res(320, 320), Res(320, 320), nn.Conv2d(320, 4, 3, padding=1))

    def forward(self, x, t):
        return self.body(x) * t


def sample(denoiser, latent, steps):
    for i in range(steps):
        latent = latent - denoiser(latent, 1 / (i + 1)) / steps
    return latent


def decode(vae, latents):
    return torch.cat([vae.decoder(x[None]) for x in latents])


def encode(vae, images):
    if MODE == "fixed":
        return torch.cat([vae.encoder(x[None]) for x in images])
    return vae.encoder(images)


@torch.inference_mode()
def main():
    vae, denoiser = Autoencoder().cuda().half(), Denoiser().cuda().half()
    latent = sample(denoiser, torch.randn(4, 4, 64, 64, device="cuda", dtype=torch.half), 6)
    images = F.interpolate(decode(vae, latent), scale_factor=1.5, mode="bicubic")
    latent = encode(vae, images)
    latent = sample(denoiser, latent + torch.randn_like(latent) * 0.5, 4)
    images = decode(vae, latent).clamp(-1, 1)
    print(images.float().mean().cpu())


main()
