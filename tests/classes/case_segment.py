# SPDX-License-Identifier: Apache-2.0
"""Volumes in medicine: a 3-D U-net with deep supervision, patches augmented on the device, Dice and cross entropy, Nesterov's
momentum with a loss scaler, then a whole volume by a sliding window whose answers are weighted and added up."""
import torch
from torch import nn
from torch.nn import functional as F

import runner
import truth

CLASSES = 4


def block(cin, cout, stride=1):
    return nn.Sequential(nn.Conv3d(cin, cout, 3, stride, 1), nn.InstanceNorm3d(cout, affine=True), nn.LeakyReLU(0.01),
                         nn.Conv3d(cout, cout, 3, 1, 1), nn.InstanceNorm3d(cout, affine=True), nn.LeakyReLU(0.01))


class UNet(nn.Module):
    def __init__(self, widths=(24, 48, 96, 192)):
        super().__init__()
        self.down = nn.ModuleList(block(a, b, 1 if i == 0 else 2) for i, (a, b) in enumerate(zip((1, *widths), widths)))
        self.up = nn.ModuleList(nn.ConvTranspose3d(b, a, 2, 2) for a, b in zip(widths, widths[1:]))
        self.merge = nn.ModuleList(block(2 * a, a) for a in widths[:-1])
        self.heads = nn.ModuleList(nn.Conv3d(a, CLASSES, 1) for a in widths[:-1])

    def forward(self, x):
        skips, out = [], []
        for stage in self.down:
            x = stage(x)
            skips.append(x)
        for i in reversed(range(len(self.up))):
            x = self.merge[i](torch.cat((self.up[i](x), skips[i]), 1))
            out.insert(0, self.heads[i](x))
        return out if self.training else out[0]


def dice_and_ce(logits, target):
    p = torch.softmax(logits, 1)
    onehot = torch.zeros_like(p).scatter_(1, target.long(), 1)
    axes = (2, 3, 4)
    dice = (2 * (p * onehot).sum(axes) + 1e-5) / (p.sum(axes) + onehot.sum(axes) + 1e-5)
    return F.cross_entropy(logits, target[:, 0].long()) - dice.mean()


device = torch.device("cuda")
network = UNet().to(device)
optimizer = torch.optim.SGD(network.parameters(), 1e-2, momentum=0.99, nesterov=True, weight_decay=3e-5)
scaler = torch.amp.GradScaler("cuda")
runner.declare(network, optimizer)
runner.mark_inside_backward(network.merge[1])
data = target = volume = None
result, counted, weights = [], [], []
truth.holds("inputs", "patches and their labels", lambda: [data, target, volume])
truth.holds("inputs", "the window's weights", lambda: weights, or_else=["forward_temporaries", "buffers"])
truth.holds("inputs", "what the windows are added up in", lambda: [result, counted], or_else=["forward_temporaries"])


def augment(x):
    x = x * (1 + 0.1 * torch.randn(x.shape[0], 1, 1, 1, 1, device=device)) + 0.1 * torch.randn_like(x)
    return torch.flip(x, (2,))


for step in range(3):
    for group in optimizer.param_groups:
        group["lr"] = 1e-2 * (1 - step / 1000) ** 0.9
    with truth.phase("data"):
        data = augment(torch.randn(2, 1, 64, 64, 64).to(device, non_blocking=True))
        label = torch.randint(0, CLASSES, (2, 1, 64, 64, 64)).to(device, non_blocking=True)
        target = [label.float(), *(F.interpolate(label.float(), scale_factor=0.5 ** i) for i in (1, 2))]
        label = None
    optimizer.zero_grad(set_to_none=True)
    with truth.phase("forward"), torch.autocast("cuda", dtype=torch.float16):
        output = network(data)
        loss = sum(w * dice_and_ce(o, t) for w, o, t in zip((1.0, 0.5, 0.25), output, target))
    truth.mark("forward")
    with truth.phase("backward"):
        scaler.scale(loss).backward()
    truth.mark("backward")
    with truth.phase("step"):
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(network.parameters(), 12)
        scaler.step(optimizer)
        scaler.update()
    truth.mark("step")
network.eval()
with torch.no_grad():
    with truth.phase("data"):
        volume = torch.randn(1, 1, 128, 64, 64).to(device)
        gauss = torch.ones(64, 64, 64, device=device).mul_(0.5)
    weights.append(gauss)
    with truth.phase("forward"):
        result.append(torch.zeros(CLASSES, 128, 64, 64, device=device))
        counted.append(torch.zeros(1, 128, 64, 64, device=device))
    for at in (0, 32, 64):
        with truth.phase("forward"), torch.autocast("cuda", dtype=torch.float16):
            answer = network(volume[:, :, at:at + 64])[0]
            result[0][:, at:at + 64] += answer * gauss
            counted[0][:, at:at + 64] += gauss
        truth.mark("window")
    with truth.phase("forward"):
        probabilities = torch.softmax(result[0] / counted[0], 0)
truth.mark("end")
truth.finish()
