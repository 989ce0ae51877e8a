# SPDX-License-Identifier: Apache-2.0
"""Outputs and losses kept in a list: alive, but saved by nobody once their graph has been through backward."""
import torch
from torch.nn import functional as F

import runner
import truth

model = runner.gpt(layers=2)
optimizer = torch.optim.AdamW(model.parameters())
runner.declare(model, optimizer)
outputs, losses = [], []


def loss_of(m, x):
    y = m(x)
    loss = F.cross_entropy(y.flatten(0, 1), x.flatten())
    outputs.append(y)
    losses.append(loss)
    return loss


def evaluate():
    """A result kept whole with its graph, which nobody ever walks back, and one without a graph."""
    with truth.phase("forward"):
        outputs.append(model(batch_of_now[0]))
        with torch.no_grad():
            outputs.append(model(batch_of_now[0]))


batch_of_now = [model.batch(2)]
truth.holds("inputs", "the batch for evaluation", lambda: batch_of_now)
runner.train(model, optimizer, model.batch, loss_of, inside=model.middle(), after_step=evaluate)
