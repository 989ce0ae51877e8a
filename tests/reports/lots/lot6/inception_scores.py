# SPDX-License-Identifier: Apache-2.0
"""Pictures of a generator are compared with photographs by the distance of their features (FID)."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

FEATURES, BATCH, BATCHES = 768, 256, 60


class Inception(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 32, 3, 2), nn.ReLU(), nn.Conv2d(32, 64, 3, 2), nn.ReLU(), nn.Conv2d(64, FEATURES, 3, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten())

    def forward(self, images):
        return self.net(F.interpolate(images, 32))


class FrechetDistance(nn.Module):
    def __init__(self):
        super().__init__()
        self.inception = Inception().eval()
        self.real_features, self.fake_features = [], []

    def update(self, images, real):
        with torch.no_grad():
            features = self.inception(images)
        (self.real_features if real else self.fake_features).append(features)

    def compute(self):
        real, fake = torch.cat(self.real_features).double(), torch.cat(self.fake_features).double()
        return ((real.mean(0) - fake.mean(0)) ** 2).sum() + torch.trace(torch.cov(real.t()) + torch.cov(fake.t()))


class OnlineFrechetDistance(FrechetDistance):
    def __init__(self):
        super().__init__()
        for kind in ("real", "fake"):
            self.register_buffer(f"{kind}_sum", torch.zeros(FEATURES).double())
            self.register_buffer(f"{kind}_cov", torch.zeros(FEATURES, FEATURES).double())
        self.count = {"real": 0, "fake": 0}

    def update(self, images, real):
        with torch.no_grad():
            features = self.inception(images).double()
        kind = "real" if real else "fake"
        getattr(self, f"{kind}_sum").add_(features.sum(0))
        getattr(self, f"{kind}_cov").addmm_(features.t(), features)
        self.count[kind] += len(features)

    def compute(self):
        means = {k: getattr(self, f"{k}_sum") / n for k, n in self.count.items()}
        trace = sum(torch.trace(getattr(self, f"{k}_cov") / n - torch.outer(means[k], means[k])) for k, n in self.count.items())
        return ((means["real"] - means["fake"]) ** 2).sum() + trace


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 128 * 4 * 4), nn.Unflatten(1, (128, 4, 4)), nn.ConvTranspose2d(128, 64, 4, 2, 1), nn.ReLU(),
                                 nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh())

    def forward(self, z):
        return self.net(z)


generator = Generator().cuda().eval()
fid = (OnlineFrechetDistance() if sys.argv[1] == "fixed" else FrechetDistance()).cuda()
for step in range(BATCHES):
    with torch.no_grad():
        fid.update(torch.rand(BATCH, 3, 16, 16).cuda(), real=True)
        fid.update(generator(torch.randn(BATCH, 64, device="cuda")), real=False)
    if step % 20 == 0:
        print(step, torch.cuda.memory_allocated() >> 20, "MiB")
print(fid.compute().item(), torch.cuda.max_memory_allocated() >> 20, "MiB")
