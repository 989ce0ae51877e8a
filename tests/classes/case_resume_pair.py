# SPDX-License-Identifier: Apache-2.0
"""Two networks, each with an optimizer of its own, go on from one file that was read onto the device; the file has each optimizer behind
its network, and its weights become the networks' memory without a copy."""
import tempfile

import torch
from torch import nn

import runner
import truth


def build():
    generator = nn.Sequential(nn.Linear(256, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 3072))
    critic = nn.Sequential(nn.Linear(3072, 2048), nn.LeakyReLU(), nn.Linear(2048, 2048), nn.LeakyReLU(), nn.Linear(2048, 1))
    return [generator, critic], [torch.optim.RMSprop(generator.parameters(), 1e-4), torch.optim.Adam(critic.parameters(), 1e-4)]


file = tempfile.NamedTemporaryFile()
models, optimizers = build()
for model, optimizer in zip(models, optimizers):
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    optimizer.step()
torch.save([(m.state_dict(), o.state_dict()) for m, o in zip(models, optimizers)], file.name)
del model, optimizer, models, optimizers, p

models, optimizers = build()
generator, critic = models
for m, o, (weights, state) in zip(models, optimizers, torch.load(file.name, map_location="cuda")):
    m.load_state_dict(weights, assign=True)
    o.param_groups[0]["params"] = list(m.parameters())
    o.load_state_dict(state)
    runner.declare(m, o)
del weights, state, m, o
truth.mark("loaded")

for _ in range(3):
    noise, real = torch.randn(512, 256, device="cuda"), torch.randn(512, 3072, device="cuda")
    with truth.phase("forward"):
        made = generator(noise)
        loss = critic(made.detach()).mean() - critic(real).mean()
    truth.mark("critic")
    optimizers[1].zero_grad()
    with truth.phase("backward"):
        loss.backward()
    with truth.phase("step"):
        optimizers[1].step()
    with truth.phase("forward"):
        loss = -critic(generator(noise)).mean()
    optimizers[0].zero_grad()
    truth.mark("forward")
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("step"):
        optimizers[0].step()
    truth.mark("step")
truth.finish()
