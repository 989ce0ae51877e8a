# SPDX-License-Identifier: Apache-2.0
"""Activation checkpointing without reentrance: what a layer saves is computed again in the backward pass."""
import torch
from torch.utils.checkpoint import checkpoint

import runner

model = runner.gpt(wrap=lambda layer, x: checkpoint(layer, x, use_reentrant=False))
optimizer = torch.optim.AdamW(model.parameters())
runner.declare(model, optimizer)
# A moment in the middle of a layer's backward, when recomputed tensors wait for their nodes.
runner.train(model, optimizer, lambda: model.batch(8), inside=model.middle().proj)
