# SPDX-License-Identifier: Apache-2.0
"""The manner of sharded training without communication in the first of two batches: whole gradients wait for the second one's
backward pass, where a hook keeps a part of each and gives up the rest."""
import torch

import runner
import truth

model = runner.gpt()
truth.model(model)
parts = {}
truth.holds("gradients", "this rank's part of a gradient", lambda: list(parts.values()), ("backward_temporaries",))


def keep_part(p):
    if batches % 2 == 0:
        parts[p] = p.grad.flatten()[:p.numel() // 2].clone()
        p.grad = None


for p in model.parameters():
    p.register_post_accumulate_grad_hook(keep_part)
runner.mark_inside_backward(model.middle())
batch = runner.Batches(model.batch)
for batches in range(1, 7):
    x = batch.next()
    with truth.phase("forward"):
        loss = runner.language_loss(model, x)
    truth.mark("forward")
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("step"), torch.no_grad():
        for p, part in parts.items():
            p.view(-1)[:part.numel()].add_(part, alpha=-0.01)
        parts.clear()
    truth.mark("step")
truth.finish()
