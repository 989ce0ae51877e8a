# SPDX-License-Identifier: Apache-2.0
"""Detection: a pyramid on a frozen-norm backbone of channels-last convolutions, heads shared by the levels, anchors
made for each image size, targets of another length for each image, a sum of several losses, SGD in two groups."""
import torch
from torch import nn
from torch.nn import functional as F
from torchvision.models import resnet18
from torchvision.models._utils import IntermediateLayerGetter
from torchvision.ops import FeaturePyramidNetwork, FrozenBatchNorm2d

import runner
import truth


class Detector(nn.Module):
    def __init__(self, classes=20):
        super().__init__()
        self.body = IntermediateLayerGetter(resnet18(norm_layer=FrozenBatchNorm2d), {"layer2": "p3", "layer3": "p4", "layer4": "p5"})
        for name, p in self.body.named_parameters():
            p.requires_grad_(name.startswith("layer"))
        self.fpn = FeaturePyramidNetwork([128, 256, 512], 128)
        tower = [m for _ in range(2) for m in (nn.Conv2d(128, 128, 3, padding=1), nn.GroupNorm(16, 128), nn.ReLU())]
        self.tower = nn.Sequential(*tower)
        self.classify, self.box = nn.Conv2d(128, classes, 3, padding=1), nn.Conv2d(128, 4, 3, padding=1)
        self.scales = nn.ParameterList([nn.Parameter(torch.tensor(1.0)) for _ in range(3)])
        self.register_buffer("mean", torch.tensor([0.48, 0.45, 0.4]).view(1, 3, 1, 1))

    def anchors(self, features):
        out = []
        for f in features:
            h, w = f.shape[-2:]
            y, x = torch.meshgrid(torch.arange(h, device=f.device), torch.arange(w, device=f.device), indexing="ij")
            out.append(torch.stack([x, y], -1).reshape(-1, 2).float())
        return torch.cat(out)

    def forward(self, images, targets):
        features = list(self.fpn(self.body(images - self.mean)).values())
        said, boxes = [], []
        for scale, f in zip(self.scales, features):
            t = self.tower(f)
            said.append(self.classify(t).flatten(2).transpose(1, 2))
            boxes.append(F.relu(self.box(t) * scale).flatten(2).transpose(1, 2))
        return self.losses(torch.cat(said, 1), torch.cat(boxes, 1), self.anchors(features), targets)

    def losses(self, said, boxes, anchors, targets):
        losses = {"class": said.new_zeros(()), "box": said.new_zeros(())}
        for s, b, t in zip(said, boxes, targets):
            distance = torch.cdist(anchors, t["boxes"][:, :2])
            matched = distance.argmin(1)
            wanted = F.one_hot(t["labels"][matched], s.shape[1]).float()
            losses["class"] = losses["class"] + F.binary_cross_entropy_with_logits(s, wanted, reduction="mean")
            losses["box"] = losses["box"] + F.smooth_l1_loss(b, t["boxes"][matched])
        return losses


model = Detector().to("cuda", memory_format=torch.channels_last)
trained = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.SGD([{"params": [p for p in trained if p.ndim > 1], "weight_decay": 1e-4},
                             {"params": [p for p in trained if p.ndim <= 1]}], lr=0.01, momentum=0.9, nesterov=True)
runner.declare(model, optimizer)
runner.mark_inside_backward(model.tower)


def load():
    images = torch.randn(8, 3, 192, 192).pin_memory().to("cuda", non_blocking=True, memory_format=torch.channels_last)
    return images, [{"boxes": torch.rand(3 + i, 4).to("cuda"), "labels": torch.zeros(3 + i, dtype=torch.long).to("cuda")} for i in range(8)]


batches = runner.Batches(load)
for _ in range(3):
    images, targets = batches.next()
    with truth.phase("forward"):
        found = model(images, targets)
        loss = sum(found.values())
    truth.mark("forward")
    optimizer.zero_grad()
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("step"):
        optimizer.step()
    truth.mark("step")
truth.mark("end")
truth.finish()
