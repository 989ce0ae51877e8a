# SPDX-License-Identifier: Apache-2.0
"""Saved tensors wait in the host's memory: on the device they are nothing until they come back."""
import torch

import runner


def loss_of(model, x):
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        return runner.language_loss(model, x)


model = runner.gpt(layers=2, vocabulary=4000)
optimizer = torch.optim.AdamW(model.parameters())
runner.declare(model, optimizer)
runner.train(model, optimizer, model.batch, loss_of, inside=model.middle())
