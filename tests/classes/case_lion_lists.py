# SPDX-License-Identifier: Apache-2.0
"""A variational autoencoder whose sign-momentum optimizer is a plain class with its state in lists, an average of the
weights beside it; reconstructions and codes are kept in half precision, then pictures are drawn from noise."""
import torch
from torch import nn
from torch.nn import functional as F

import runner
import truth


class Lion:
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        self.params = [p for p in params if p.requires_grad]
        self.lr, self.betas, self.wd = lr, betas, weight_decay
        self.momenta = [torch.zeros_like(p) for p in self.params]

    @torch.no_grad()
    def apply(self):
        b1, b2 = self.betas
        for p, m in zip(self.params, self.momenta):
            if p.grad is None:
                continue
            p.mul_(1 - self.lr * self.wd)
            update = m * b1 + p.grad * (1 - b1)
            p.add_(update.sign_(), alpha=-self.lr)
            m.mul_(b2).add_(p.grad, alpha=1 - b2)

    def clear(self):
        for p in self.params:
            p.grad = None


class VAE(nn.Module):
    def __init__(self, d=128, z=512):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, d // 2, 4, 2, 1), nn.SiLU(), nn.Conv2d(d // 2, d, 4, 2, 1), nn.SiLU(), nn.Conv2d(d, d, 4, 2, 1), nn.SiLU())
        self.to_mu = nn.Linear(d * 64, z)
        self.to_logvar = nn.Linear(d * 64, z)
        self.from_z = nn.Linear(z, d * 64)
        self.decoder = nn.Sequential(nn.ConvTranspose2d(d, d, 4, 2, 1), nn.SiLU(), nn.ConvTranspose2d(d, d // 2, 4, 2, 1), nn.SiLU(),
                                     nn.ConvTranspose2d(d // 2, 3, 4, 2, 1), nn.Sigmoid())

    def encode(self, x):
        h = self.encoder(x).flatten(1)
        return self.to_mu(h), self.to_logvar(h)

    def decode(self, z):
        return self.decoder(self.from_z(z).view(z.shape[0], -1, 8, 8))

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def forward(self, x):
        mu, logvar = self.encode(x)
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


vae = VAE().to("cuda")
lion = Lion(vae.parameters(), weight_decay=0.01)
truth.model(vae)
truth.holds("optimizer_state", "momenta", lambda: lion.momenta)
batches = runner.Batches(lambda: torch.rand(128, 3, 64, 64).to("cuda", non_blocking=True))
kept, codes, losses = [], [], []
for step in range(4):
    x = batches.next()
    with truth.phase("forward"):
        recon, mu, logvar = vae(x)
        loss = F.mse_loss(recon, x, reduction="sum") / len(x) - 0.5 * torch.mean(1 + logvar - mu.pow(2) - logvar.exp())
    truth.mark("forward")
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("step"):
        lion.apply()
        lion.clear()
    truth.mark("step")
    with truth.phase("forward"):
        kept.append(recon.detach().half())
        codes.append(mu.detach().half())
        losses.append(loss.detach())
    truth.mark("logged")
vae.eval()
with torch.no_grad():
    with truth.phase("data"):
        batches.now = torch.randn(256, 512, device="cuda")
    with truth.phase("forward"):
        samples = vae.decode(batches.now)
        grid = (samples * 255).clamp(0, 255).to(torch.uint8)
    truth.mark("drawn")
truth.finish()
