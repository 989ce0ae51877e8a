# SPDX-License-Identifier: Apache-2.0
"""Adafactor: states of rows and columns, far smaller than the weights, and large temporaries."""
import torch

import runner

model = runner.gpt(on_device=False, layers=5)
optimizer = torch.optim.Adafactor(model.parameters(), lr=1e-2)
runner.declare(model, optimizer)
runner.train(model, optimizer, model.batch, inside=model.middle())
