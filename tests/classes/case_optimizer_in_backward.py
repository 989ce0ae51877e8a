# SPDX-License-Identifier: Apache-2.0
"""Each parameter is stepped as soon as its gradient is there; the gradient is gone before the next one."""
import torch

import runner
import truth

model = runner.gpt()
optimizers = {p: torch.optim.Adam([p]) for p in model.parameters()}
runner.declare(model)
for optimizer in optimizers.values():
    truth.optimizer(optimizer)


def step(p):
    with truth.phase("step"):
        optimizers[p].step()
        optimizers[p].zero_grad()


for p in model.parameters():
    p.register_post_accumulate_grad_hook(step)
runner.train(model, None, model.batch, inside=model.middle())
