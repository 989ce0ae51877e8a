# SPDX-License-Identifier: Apache-2.0
"""torch.compile: one node of the graph saves for a whole model."""
import torch

import runner

model = runner.gpt(layers=2)
optimizer = torch.optim.AdamW(model.parameters())
runner.declare(model, optimizer)
runner.train(torch.compile(model), optimizer, lambda: model.batch(8))
