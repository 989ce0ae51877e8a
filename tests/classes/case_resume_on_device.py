# SPDX-License-Identifier: Apache-2.0
"""A checkpoint is read onto the device: weights are copied into the model, the optimizer takes the state as it is. What was read is
kept for one step more."""
import tempfile

import torch

import runner
import truth

with tempfile.NamedTemporaryFile() as file:
    host = runner.Gpt()
    before = torch.optim.AdamW(host.parameters())
    for p in host.parameters():
        p.grad = torch.zeros_like(p)
    before.step()
    torch.save({"step": 100, "model": host.state_dict(), "optimizer": before.state_dict()}, file.name)
    del host, before
    model = runner.gpt(on_device=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    runner.declare(model, optimizer)
    checkpoint = torch.load(file.name, map_location="cuda")
model.load_state_dict(checkpoint["model"])
optimizer.load_state_dict(checkpoint["optimizer"])
del checkpoint
truth.mark("loaded")
runner.train(model, optimizer, model.batch, inside=model.middle())
