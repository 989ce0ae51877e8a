# SPDX-License-Identifier: Apache-2.0
"""A gradient penalty: the backward pass builds a graph of its own, which is walked back as well."""
import torch
from torch import nn

import runner
import truth

critic = nn.Sequential(nn.Conv2d(3, 64, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(64, 128, 4, 2, 1), nn.LeakyReLU(0.2),
                       nn.Flatten(), nn.Linear(128 * 16 * 16, 256), nn.SiLU(), nn.Linear(256, 1)).cuda()
optimizer = torch.optim.Adam(critic.parameters(), betas=(0.0, 0.9))
runner.declare(critic, optimizer)
images = runner.Batches(lambda: torch.randn(64, 3, 64, 64).cuda().requires_grad_())
# The images are leaves of the graph: PyTorch gathers a gradient for them too, which nobody asked for.
truth.holds("gradients", "gradient of the images", lambda: [images.now.grad], or_else=["backward_temporaries"])

for _ in range(3):
    x = images.next()
    with truth.phase("forward"):
        score = critic(x)
    truth.mark("forward")
    with truth.phase("backward"):
        slope, = torch.autograd.grad(score.sum(), x, create_graph=True)
    truth.mark("slope")
    with truth.phase("forward"):
        loss = score.mean() + 10 * (slope.flatten(1).norm(dim=1) - 1).square().mean()
    truth.mark("penalty")
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("step"):
        optimizer.step()
    truth.mark("step")
    optimizer.zero_grad()
truth.finish()
