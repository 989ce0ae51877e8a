# SPDX-License-Identifier: Apache-2.0
"""Weights and gradients in bf16; the optimizer works on a copy in fp32."""
import torch

import runner
import truth

model = runner.gpt(on_device=False).bfloat16()
masters = [p.detach().clone().float() for p in model.parameters()]
optimizer = torch.optim.AdamW(masters)
runner.declare(model, optimizer)
truth.holds("optimizer_state", "master weights in fp32", lambda: masters)


def widen():
    with truth.phase("step"):
        for p, m in zip(model.parameters(), masters):
            m.grad = p.grad.float()
    truth.mark("wide_gradients")


@torch.no_grad()
def narrow():
    for p, m in zip(model.parameters(), masters):
        p.copy_(m)
    model.zero_grad()


runner.train(model, optimizer, model.batch, inside=model.middle(), before_step=widen, after_step=narrow)
