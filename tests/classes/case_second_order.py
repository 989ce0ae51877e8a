# SPDX-License-Identifier: Apache-2.0
"""A clipped second-order optimizer: every other step the diagonal of the Hessian is sampled by a product with a random
vector, its averages are dictionaries of the script by the parameters' names."""
import torch
from torch.nn import functional as F

import runner
import truth

model = runner.gpt(vocabulary=10000, width=384, layers=3, length=128)
names = dict(model.named_parameters())
exp_avg = {n: torch.zeros_like(p) for n, p in names.items()}
hessian = {n: torch.zeros_like(p) for n, p in names.items()}
truth.model(model)
truth.holds("optimizer_state", "averages", lambda: [exp_avg, hessian])
asked, probes = [], []
truth.holds("inputs", "random vectors", lambda: probes, or_else=("optimizer_temporaries", "backward_temporaries"))
truth.holds("gradients", "autograd.grad", lambda: asked, or_else=("backward_temporaries", "activations"))
batches = runner.Batches(lambda: model.batch(4))


def sample_hessian(x):
    with truth.phase("forward"), torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), x.flatten())
    truth.mark("hessian_forward")
    with truth.phase("backward"):
        params = list(names.values())
        grads = torch.autograd.grad(loss, params, create_graph=True)
        us = [torch.randint_like(p, 2) * 2 - 1 for p in params]
        gu = sum((g * u).sum() for g, u in zip(grads, us))
        asked[:] = grads
        probes[:] = us
        truth.mark("first_order")
        hvps = torch.autograd.grad(gu, params)
        asked[:] = [*grads, *hvps]
    truth.mark("second_order")
    with truth.phase("step"), torch.no_grad():
        for (n, h), u, hv in zip(hessian.items(), us, hvps):
            h.mul_(0.99).add_(u * hv, alpha=0.01)
    asked.clear()
    probes.clear()


@torch.no_grad()
def update(lr=1e-3):
    for n, p in names.items():
        exp_avg[n].lerp_(p.grad, 0.04)
        p.mul_(1 - lr * 0.1)
        ratio = (exp_avg[n].abs() / (0.05 * hessian[n] + 1e-15)).clamp(max=1)
        p.addcmul_(exp_avg[n].sign(), ratio, value=-lr)


for step in range(4):
    x = batches.next()
    with truth.phase("forward"):
        loss = runner.language_loss(model, x)
    truth.mark("forward")
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("step"):
        update()
    truth.mark("step")
    model.zero_grad(set_to_none=True)
    if step % 2 == 0:
        sample_hessian(x)
truth.finish()
