# SPDX-License-Identifier: Apache-2.0
"""Autocast to half precision with a GradScaler: copies of the weights in fp16 are saved, not parameters."""
import torch

import runner

model = runner.gpt(on_device=False)
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
runner.declare(model, optimizer)
runner.train(model, optimizer, model.batch, inside=model.middle(), scaler=torch.amp.GradScaler("cuda"),
             autocast=lambda: torch.autocast("cuda", dtype=torch.float16))
