# SPDX-License-Identifier: Apache-2.0
"""Weights and states come from a checkpoint: the optimizer's state is born in load_state_dict."""
import io

import torch

import runner
import truth

model = runner.gpt(on_device=False)
optimizer = torch.optim.AdamW(model.parameters())
saved = io.BytesIO()
host = runner.Gpt()
before = torch.optim.AdamW(host.parameters())
for p in host.parameters():
    p.grad = torch.zeros_like(p)
before.step()
torch.save({"model": host.state_dict(), "optimizer": before.state_dict()}, saved)
saved.seek(0)
runner.declare(model, optimizer)
state = torch.load(saved)
model.load_state_dict(state["model"])
optimizer.load_state_dict(state["optimizer"])
del state, host, before
truth.mark("loaded")
runner.train(model, optimizer, model.batch, inside=model.middle())
