# SPDX-License-Identifier: Apache-2.0
"""torch.func: functional calls, gradients of each sample by vmap, noise on their clipped mean, an update by hand."""
import gc

import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional as F

import runner
import truth

model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)).cuda()
params = {k: v.detach() for k, v in model.named_parameters()}
truth.model(model)
truth.holds("parameters", "functional parameters", lambda: params)
batches = runner.Batches(lambda: (torch.randn(64, 784).cuda(), torch.zeros(64, dtype=torch.long).cuda()))
current = {}
truth.holds("gradients", "gradients of samples", lambda: current, or_else=["backward_temporaries"])


def loss_of(p, x, y):
    return F.cross_entropy(functional_call(model, p, (x.unsqueeze(0),)), y.unsqueeze(0))


each = vmap(grad(loss_of), in_dims=(None, 0, 0))
for _ in range(4):
    x, y = batches.next()
    with truth.phase("backward"):
        current.update(each(params, x, y))
    gc.collect()
    truth.mark("gradients")
    with truth.phase("step"):
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in current.values()]).norm(dim=0)
        factor = (1.0 / (norms + 1e-6)).clamp(max=1.0)
        for k, g in current.items():
            clipped = torch.einsum("n,n...->...", factor, g)
            params[k].sub_(0.1 * (clipped + 0.01 * torch.randn_like(clipped)) / len(x))
    truth.mark("step")
    current.clear()
    truth.mark("end")
truth.finish()
