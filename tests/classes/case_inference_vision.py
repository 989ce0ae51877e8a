# SPDX-License-Identifier: Apache-2.0
"""Inference over images that come as bytes and are made ready on the device; results are gathered there."""
import torch
from torchvision.models import resnet50

import runner
import truth

model = resnet50().cuda().half().eval()
truth.model(model)
mean = torch.tensor([0.485, 0.456, 0.406], device="cuda").view(1, 3, 1, 1)
std = torch.tensor([0.229, 0.224, 0.225], device="cuda").view(1, 3, 1, 1)
batch, results = [], []
truth.holds("inputs", "images", lambda: [mean, std, batch])
with torch.inference_mode():
    for _ in range(7):
        with truth.phase("data"):
            raw = torch.randint(0, 255, (32, 3, 256, 256), dtype=torch.uint8).pin_memory().cuda(non_blocking=True)
            x = raw.half().div_(255)
            x = ((x - mean) / std).half()
            x = torch.nn.functional.interpolate(x, size=224, mode="bilinear")
        batch[:] = [raw, x]
        with truth.phase("forward"):
            out = model(x)
            flipped = model(x.flip(-1))
            results.append(((out + flipped) / 2).softmax(-1))
        truth.mark("batch")
truth.finish()
