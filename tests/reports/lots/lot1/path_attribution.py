# SPDX-License-Identifier: Apache-2.0
"""Integrated gradients of an image classifier."""
import sys

import torch
from torchvision.models import densenet121

MODE = sys.argv[1]


class IntegratedGradients:
    def __init__(self, forward_func):
        self.forward_func = forward_func

    def gradients(self, inputs, target):
        inputs = inputs.detach().requires_grad_()
        with torch.enable_grad():
            outputs = self.forward_func(inputs)[:, target]
            return torch.autograd.grad(torch.unbind(outputs), inputs)[0]

    def attribute(self, image, baseline, target, n_steps=50, internal_batch_size=None):
        alphas = torch.linspace(0, 1, n_steps, device=image.device).view(-1, 1, 1, 1)
        path = baseline + alphas * (image - baseline)
        if internal_batch_size is None:
            grads = self.gradients(path, target)
        else:
            grads = torch.cat([self.gradients(part, target) for part in path.split(internal_batch_size)])
        return (image - baseline) * grads.mean(0, keepdim=True)


def main():
    model = densenet121().cuda().eval()
    explainer = IntegratedGradients(model)
    size = 10 if MODE == "fixed" else None
    for i in range(2):
        image = torch.rand(1, 3, 224, 224, device="cuda")
        heat = explainer.attribute(image, torch.zeros_like(image), i, internal_batch_size=size)
        print(i, heat.abs().sum(1).max().item())


main()
