# SPDX-License-Identifier: Apache-2.0
"""An optimizer that brings the weights to the host and back, so that they lie in one piece, and works on a copy in twice the
precision."""
import torch

import runner
import truth


class Wide(torch.optim.Optimizer):
    """AdamW on a flat copy of the weights in float32."""

    def __init__(self, model):
        parameters = list(model.parameters())
        super().__init__(parameters, {})
        host = torch.cat([p.data.flatten().cpu() for p in parameters])
        for p in parameters:
            p.data, p.shape_of = torch.empty(0, dtype=p.dtype, device=p.device), p.shape
        torch.cuda.empty_cache()
        self.flat = host.to(runner.CUDA)
        at = 0
        for p in parameters:
            p.data = self.flat[at:at + p.shape_of.numel()].view(p.shape_of)
            at += p.shape_of.numel()
        self.wide = torch.nn.Parameter(self.flat.float())
        self.inner = torch.optim.AdamW([self.wide])

    @torch.no_grad()
    def step(self):
        parameters = self.param_groups[0]["params"]
        self.wide.grad = torch.cat([p.grad.flatten() for p in parameters]).float()
        self.inner.step()
        self.wide.grad = None
        self.flat.copy_(self.wide)


model = runner.gpt().bfloat16()
optimizer = Wide(model)
truth.model(model)
truth.holds("optimizer_state", "the optimizer's own copy of weights", lambda: [optimizer.wide, list(optimizer.inner.state.values())], ("parameters",))
truth.holds("gradients", "gradient of the copy", lambda: [optimizer.wide.grad], ("optimizer_temporaries",))
runner.train(model, optimizer, model.batch, inside=model.middle())
