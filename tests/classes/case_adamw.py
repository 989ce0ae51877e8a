# SPDX-License-Identifier: Apache-2.0
"""A transformer with AdamW, as plain as it gets; a moment inside the step as well."""
import torch

import runner

model = runner.gpt(on_device=False)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
runner.declare(model, optimizer)
runner.mark_inside_step()
runner.train(model, optimizer, model.batch, inside=model.middle())
