# SPDX-License-Identifier: Apache-2.0
"""Two networks with an optimizer each; the generator's images pass through the discriminator twice."""
import torch
from torch import nn
from torch.nn import functional as F

import runner
import truth

generator = nn.Sequential(
    nn.ConvTranspose2d(100, 512, 4), nn.BatchNorm2d(512), nn.ReLU(True),
    nn.ConvTranspose2d(512, 256, 4, 2, 1), nn.BatchNorm2d(256), nn.ReLU(True),
    nn.ConvTranspose2d(256, 128, 4, 2, 1), nn.BatchNorm2d(128), nn.ReLU(True),
    nn.ConvTranspose2d(128, 64, 4, 2, 1), nn.BatchNorm2d(64), nn.ReLU(True),
    nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh()).cuda()
discriminator = nn.Sequential(
    nn.Conv2d(3, 64, 4, 2, 1), nn.LeakyReLU(0.2),
    nn.Conv2d(64, 128, 4, 2, 1), nn.BatchNorm2d(128), nn.LeakyReLU(0.2),
    nn.Conv2d(128, 256, 4, 2, 1), nn.BatchNorm2d(256), nn.LeakyReLU(0.2),
    nn.Conv2d(256, 512, 4, 2, 1), nn.BatchNorm2d(512), nn.LeakyReLU(0.2),
    nn.Conv2d(512, 1, 4), nn.Flatten(0)).cuda()
runner.mark_inside_backward(generator[6])
optimizers = [torch.optim.Adam(net.parameters(), betas=(0.5, 0.999)) for net in (generator, discriminator)]
for net, optimizer in zip((generator, discriminator), optimizers):
    runner.declare(net, optimizer)
real = runner.Batches(lambda: torch.randn(48, 3, 64, 64).cuda())
noise = runner.Batches(lambda: torch.randn(48, 100, 1, 1, device="cuda"))


def loss_of(logits, wanted):
    return F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, wanted))


for _ in range(3):
    x, z = real.next(), noise.next()
    discriminator.zero_grad()
    with truth.phase("forward"):
        fake = generator(z)
        loss = loss_of(discriminator(x), 1.0) + loss_of(discriminator(fake.detach()), 0.0)
    truth.mark("forward")
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("step"):
        optimizers[1].step()
    truth.mark("step")
    generator.zero_grad()
    with truth.phase("forward"):
        loss = loss_of(discriminator(fake), 1.0)
    truth.mark("forward")
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("step"):
        optimizers[0].step()
    truth.mark("step")
truth.finish()
