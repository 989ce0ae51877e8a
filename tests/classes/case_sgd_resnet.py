# SPDX-License-Identifier: Apache-2.0
"""A convolutional network with batch normalisation, SGD with momentum, images and labels copied from the host."""
import torch
from torch.nn import functional as F
from torchvision.models import resnet18

import runner

model = resnet18(num_classes=100).to("cuda", memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
runner.declare(model, optimizer)


def batch():
    return torch.randn(24, 3, 96, 96).cuda(), torch.zeros(24, dtype=torch.long).cuda()


runner.train(model, optimizer, batch, lambda m, xy: F.cross_entropy(m(xy[0]), xy[1]), inside=model.layer3)
