# SPDX-License-Identifier: Apache-2.0
"""A compiled model whose logits a variable and a list keep over the step, and an evaluation that forgets to turn gradients off."""
import torch
from torch.nn import functional as F

import runner
import truth

model = runner.gpt(layers=2)
compiled = torch.compile(model, backend="aot_eager")
optimizer = torch.optim.AdamW(model.parameters())
runner.declare(model, optimizer)
history = []
batches = runner.Batches(model.batch)
for step in range(4):
    x = batches.next()
    with truth.phase("forward"):
        logits = torch.sigmoid(compiled(x))
        loss = F.cross_entropy(logits.flatten(0, 1), x.flatten())
    truth.mark("forward")
    optimizer.zero_grad()
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("step"):
        optimizer.step()
    truth.mark("step")
    history.append(logits.detach())
    if step % 2:
        with truth.phase("forward"):
            logits = compiled(x)
            wrong = F.cross_entropy(logits.flatten(0, 1), x.flatten())
        truth.mark("evaluated")
        wrong = None
        truth.mark("forgotten")
truth.finish()
