# SPDX-License-Identifier: Apache-2.0
"""A generative network whose critic is trained with a gradient penalty."""
import sys

import torch
from torch import nn

MODE = sys.argv[1]


def block(n_in, n_out):
    return nn.Sequential(nn.Conv2d(n_in, n_out, 4, 2, 1), nn.LeakyReLU(0.2))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(block(3, 64), block(64, 128), block(128, 256), block(256, 512))
        self.out = nn.Linear(512 * 16, 1)

    def forward(self, x):
        return self.out(self.body(x).flatten(1))


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.start = nn.Linear(128, 512 * 16)
        ups = [nn.Sequential(nn.ConvTranspose2d(a, b, 4, 2, 1), nn.ReLU()) for a, b in ((512, 256), (256, 128), (128, 64))]
        self.body = nn.Sequential(*ups, nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh())

    def forward(self, z):
        return self.body(self.start(z).view(-1, 512, 4, 4))


class WGAN_GP:
    def __init__(self, critic):
        self.critic = critic

    def penalty(self, real, fake):
        eps = torch.rand(len(real), 1, 1, 1, device="cuda")
        merged = (eps * real + (1 - eps) * fake).requires_grad_()
        score = self.critic(merged)
        if MODE == "fixed":
            gradient = torch.autograd.grad(score, merged, torch.ones_like(score), create_graph=True)[0]
        else:
            score.backward(torch.ones_like(score), create_graph=True)
            gradient = merged.grad
        return 10 * (gradient.flatten(1).norm(dim=1) - 1).pow(2).mean()

    def dis_loss(self, real, fake):
        return self.critic(fake).mean() - self.critic(real).mean() + self.penalty(real, fake)


def main():
    critic, generator = Critic().cuda(), Generator().cuda()
    loss_fn = WGAN_GP(critic)
    opt_d = torch.optim.Adam(critic.parameters(), lr=1e-4, betas=(0.0, 0.99))
    opt_g = torch.optim.Adam(generator.parameters(), lr=1e-4, betas=(0.0, 0.99))
    for step in range(30):
        real = torch.randn(64, 3, 64, 64, device="cuda")
        fake = generator(torch.randn(64, 128, device="cuda")).detach()
        opt_d.zero_grad()
        loss_fn.dis_loss(real, fake).backward()
        opt_d.step()
        opt_g.zero_grad()
        (-critic(generator(torch.randn(64, 128, device="cuda"))).mean()).backward()
        opt_g.step()


main()
