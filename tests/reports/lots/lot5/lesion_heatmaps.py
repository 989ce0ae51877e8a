# SPDX-License-Identifier: Apache-2.0
"""Heat maps show a doctor which part of each skin photograph spoke for a melanoma."""
import sys

import torch
import torch.nn.functional as F
from torch import nn


class LesionNet(nn.Module):
    def __init__(self):
        super().__init__()
        widths = [3, 32, 64, 128, 256]
        self.features = nn.Sequential(*(layer for a, b in zip(widths, widths[1:])
                                        for layer in (nn.Conv2d(a, b, 3, 2, 1), nn.BatchNorm2d(b), nn.ReLU())))
        self.classifier = nn.Linear(256, 2)

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))


class ActivationsAndGradients:
    def __init__(self, model, target_layers):
        self.model, self.activations, self.gradients = model, [], []
        self.handles = [layer.register_forward_hook(self.save_activation) for layer in target_layers]

    def save_activation(self, module, inputs, output):
        self.activations.append(output.detach())
        output.register_hook(lambda grad: self.gradients.insert(0, grad.detach()))

    def __call__(self, x):
        self.activations, self.gradients = [], []
        return self.model(x)

    def release(self):
        for handle in self.handles:
            handle.remove()


class GradCAM:
    def __init__(self, model, target_layers):
        self.model = model
        self.activations_and_grads = ActivationsAndGradients(model, target_layers)

    def __call__(self, photo, category):
        self.model.zero_grad()
        score = self.activations_and_grads(photo)[:, category].sum()
        score.backward()
        maps = []
        for activation, gradient in zip(self.activations_and_grads.activations, self.activations_and_grads.gradients):
            cam = (gradient.mean((2, 3), keepdim=True) * activation).sum(1, keepdim=True).relu()
            maps.append(F.interpolate(cam, photo.shape[2:], mode="bilinear"))
        return torch.stack(maps).mean(0).cpu()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.activations_and_grads.release()


model = LesionNet().cuda().eval()
layers = [model.features[5], model.features[8]]
for patient in range(32):
    photos = torch.rand(4, 3, 288, 288).cuda()
    if sys.argv[1] == "fixed":
        with GradCAM(model, layers) as cam:
            heatmap = cam(photos, category=1)
    else:
        cam = GradCAM(model, layers)
        heatmap = cam(photos, category=1)
        del cam
    if patient % 8 == 7:
        print(patient, tuple(heatmap.shape), torch.cuda.memory_allocated() >> 20, "MiB")
