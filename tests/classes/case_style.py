# SPDX-License-Identifier: Apache-2.0
"""An image is what is trained: a frozen network, losses at several of its layers, total variation, no batch."""
import torch
from torch.nn import functional as F
from torchvision.models import vgg11

import runner
import truth

features = vgg11(weights=None).features.cuda().eval()
for p in features.parameters():
    p.requires_grad_(False)
truth.model(features)
content = torch.rand(1, 3, 320, 320).cuda()
style = torch.rand(1, 3, 320, 320, device="cuda")
image = content.clone().requires_grad_(True)
optimizer = torch.optim.Adam([image], lr=0.02)
truth.holds("parameters", "the image", lambda: [image])
truth.holds("gradients", "its gradient", lambda: [image.grad])
truth.optimizer(optimizer)
truth.holds("inputs", "images", lambda: [content, style])


def walk(x):
    out = []
    for i, layer in enumerate(features):
        x = layer(x)
        if i in (0, 3, 6, 11, 16):
            out.append(x)
    return out


def gram(f):
    f = f.flatten(2)
    return f @ f.transpose(1, 2) / f.shape[-1]


with truth.phase("forward"), torch.no_grad():
    wanted_content = walk(content)[3]
    wanted_style = [gram(f) for f in walk(style)]
for _ in range(4):
    optimizer.zero_grad()
    with truth.phase("forward"):
        found = walk(image)
        loss = F.mse_loss(found[3], wanted_content) + sum(F.mse_loss(gram(f), w) for f, w in zip(found, wanted_style))
        loss = loss + (image[..., 1:, :] - image[..., :-1, :]).abs().mean()
    truth.mark("forward")
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("step"):
        optimizer.step()
    truth.mark("step")
truth.finish()
