# SPDX-License-Identifier: Apache-2.0
"""Two batches to a step, and gradients that are zeroed, not given up."""
import torch

import runner

model = runner.gpt()
optimizer = torch.optim.AdamW(model.parameters())
runner.declare(model, optimizer)
runner.train(model, optimizer, model.batch, inside=model.middle(), parts=2, set_to_none=False)
