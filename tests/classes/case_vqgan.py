# SPDX-License-Identifier: Apache-2.0
"""Images in words of a codebook, sharpened by a discriminator: a frozen network compares, the weight of the adversarial
part comes from the gradients of the last layer, the codebook is an average kept in buffers, two optimizers."""
import torch
from torch import nn
from torch.nn import functional as F
from torchvision.models import vgg11

import runner
import truth


class ResnetBlock(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(16, cin), nn.GroupNorm(16, cout)
        self.conv1, self.conv2 = nn.Conv2d(cin, cout, 3, padding=1), nn.Conv2d(cout, cout, 3, padding=1)
        self.short = nn.Conv2d(cin, cout, 1) if cin != cout else None

    def forward(self, x):
        h = self.conv1(self.norm1(x) * torch.sigmoid(self.norm1(x)))
        h = self.conv2(self.norm2(h) * torch.sigmoid(self.norm2(h)))
        return (x if self.short is None else self.short(x)) + h


class Quantizer(nn.Module):
    def __init__(self, n=2048, dim=128, decay=0.99):
        super().__init__()
        self.decay = decay
        embed = torch.randn(dim, n)
        self.register_buffer("embed", embed)
        self.register_buffer("cluster_size", torch.zeros(n))
        self.register_buffer("embed_avg", embed.clone())

    def forward(self, z):
        z = z.permute(0, 2, 3, 1)
        flat = z.reshape(-1, z.shape[-1])
        dist = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ self.embed + self.embed.pow(2).sum(0, keepdim=True)
        ind = (-dist).max(1).indices
        onehot = F.one_hot(ind, self.embed.shape[1]).type(flat.dtype)
        quantize = F.embedding(ind.view(z.shape[:-1]), self.embed.t())
        if self.training:
            with torch.no_grad():
                self.cluster_size.data.mul_(self.decay).add_(onehot.sum(0), alpha=1 - self.decay)
                self.embed_avg.data.mul_(self.decay).add_(flat.t() @ onehot, alpha=1 - self.decay)
                n = self.cluster_size.sum()
                size = (self.cluster_size + 1e-5) / (n + 1e-2) * n
                self.embed.data.copy_(self.embed_avg / size.unsqueeze(0))
        diff = (quantize.detach() - z).pow(2).mean()
        return (z + (quantize - z).detach()).permute(0, 3, 1, 2), diff


class VQ(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), ResnetBlock(64, 64), nn.Conv2d(64, 64, 4, 2, 1),
                                     ResnetBlock(64, 128), nn.Conv2d(128, 128, 4, 2, 1), ResnetBlock(128, 128))
        self.quantize = Quantizer()
        self.decoder = nn.Sequential(ResnetBlock(128, 128), nn.Upsample(scale_factor=2), nn.Conv2d(128, 128, 3, padding=1),
                                     ResnetBlock(128, 64), nn.Upsample(scale_factor=2), nn.Conv2d(64, 64, 3, padding=1), ResnetBlock(64, 64))
        self.last = nn.Conv2d(64, 3, 3, padding=1)

    def forward(self, x):
        q, diff = self.quantize(self.encoder(x))
        return self.last(self.decoder(q)), diff


class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("shift", torch.randn(1, 3, 1, 1))
        self.perceptual = vgg11(weights=None).features[:11].eval().requires_grad_(False)
        self.discriminator = nn.Sequential(nn.Conv2d(3, 64, 4, 2, 1), nn.LeakyReLU(0.2, True), nn.Conv2d(64, 128, 4, 2, 1),
                                           nn.BatchNorm2d(128), nn.LeakyReLU(0.2, True), nn.Conv2d(128, 1, 4, 1, 1))

    def weight(self, nll, g, last):
        a = torch.autograd.grad(nll, last, retain_graph=True)[0]
        b = torch.autograd.grad(g, last, retain_graph=True)[0]
        return torch.clamp(torch.norm(a) / (torch.norm(b) + 1e-4), 0.0, 1e4).detach()

    def forward(self, diff, x, y, turn, last):
        if turn:
            return 0.5 * (F.relu(1 - self.discriminator(x.detach())).mean() + F.relu(1 + self.discriminator(y.detach())).mean())
        rec = (x - y).abs() + 0.1 * F.mse_loss(self.perceptual(x - self.shift), self.perceptual(y - self.shift))
        g = -self.discriminator(y).mean()
        nll = rec.mean()
        return nll + self.weight(nll, g, last) * g + diff


vq, criterion = VQ().cuda(), Loss().cuda()
opt_ae = torch.optim.Adam(vq.parameters(), lr=4.5e-6, betas=(0.5, 0.9))
opt_disc = torch.optim.Adam(criterion.discriminator.parameters(), lr=4.5e-6, betas=(0.5, 0.9))
runner.declare(vq, opt_ae)
runner.declare(criterion, opt_disc)
runner.mark_inside_backward(vq.decoder[3])
images = runner.Batches(lambda: torch.randn(6, 3, 96, 96).cuda())
logged = []
for step in range(3):
    x = images.next()
    with truth.phase("forward"):
        y, diff = vq(x)
        loss = criterion(diff, x, y, 0, vq.last.weight)
    truth.mark("forward")
    opt_ae.zero_grad()
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("step"):
        opt_ae.step()
    truth.mark("step")
    opt_disc.zero_grad()
    with truth.phase("forward"):
        d_loss = criterion(diff, x, y, 1, vq.last.weight)
    truth.mark("forward")
    with truth.phase("backward"):
        d_loss.backward()
    truth.mark("backward")
    with truth.phase("step"):
        opt_disc.step()
    truth.mark("step")
    logged.append((loss.detach(), d_loss.detach()))
truth.finish()
