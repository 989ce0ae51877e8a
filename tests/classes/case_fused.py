# SPDX-License-Identifier: Apache-2.0
"""Fused Adam, gradients clipped, the model made on the device."""
import torch

import runner

model = runner.gpt(width=480, layers=5, heads=6)
optimizer = torch.optim.Adam(model.parameters(), fused=True)
runner.declare(model, optimizer)
runner.train(model, optimizer, model.batch, inside=model.middle(),
             before_step=lambda: torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0))
