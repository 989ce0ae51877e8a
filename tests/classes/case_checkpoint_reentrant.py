# SPDX-License-Identifier: Apache-2.0
"""Activation checkpointing the reentrant way: a backward pass inside the backward pass."""
import torch
from torch.utils.checkpoint import checkpoint

import runner

model = runner.gpt(wrap=lambda layer, x: checkpoint(layer, x, use_reentrant=True))
optimizer = torch.optim.AdamW(model.parameters())
runner.declare(model, optimizer)
runner.train(model, optimizer, lambda: model.batch(8), inside=model.middle().proj)
