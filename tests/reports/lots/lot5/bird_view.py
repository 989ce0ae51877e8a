# SPDX-License-Identifier: Apache-2.0
"""Six cameras of a car see obstacles: features of the pictures are lifted by a depth distribution and splatted on a plan."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

BATCH, CAMERAS, BINS, CHANNELS, ROWS, COLUMNS, PLAN = 2, 6, 96, 64, 16, 44, 128


class BevPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx, depth, context, cells, size):
        ctx.save_for_backward(depth, context, cells)
        plan = context.new_zeros(size, context.shape[-1])
        for d in range(depth.shape[1]):
            plan.index_add_(0, cells[:, d].flatten(), (depth[:, d, :, None] * context).flatten(0, 1))
        return plan

    @staticmethod
    def backward(ctx, grad):
        depth, context, cells = ctx.saved_tensors
        to_depth, to_context = torch.empty_like(depth), torch.zeros_like(context)
        for d in range(depth.shape[1]):
            here = grad[cells[:, d]]
            to_depth[:, d] = (here * context).sum(-1)
            to_context.addcmul_(here, depth[:, d, :, None])
        return to_depth, to_context, None, None


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 64, 7, 4, 3), nn.ReLU(), nn.Conv2d(64, 128, 3, 2, 1), nn.ReLU(),
                                      nn.Conv2d(128, 256, 3, 2, 1), nn.ReLU())
        self.depth_net = nn.Conv2d(256, BINS + CHANNELS, 1)
        self.head = nn.Sequential(nn.Conv2d(CHANNELS, 128, 3, 1, 1), nn.ReLU(), nn.Conv2d(128, 10, 1))

    def view_transform(self, depth, context, cells):
        if sys.argv[1] == "fixed":
            return BevPool.apply(depth, context, cells, BATCH * PLAN * PLAN)
        volume = depth.unsqueeze(-1) * context.unsqueeze(1)
        return torch.zeros(BATCH * PLAN * PLAN, CHANNELS, device="cuda").index_add(0, cells.flatten(), volume.flatten(0, 2))

    def forward(self, images, cells):
        x = self.depth_net(self.backbone(images.flatten(0, 1))).flatten(2)
        depth, context = x[:, :BINS].softmax(1), x[:, BINS:].transpose(1, 2)
        plan = self.view_transform(depth, context, cells)
        return self.head(plan.view(BATCH, PLAN, PLAN, CHANNELS).permute(0, 3, 1, 2))


model = Detector().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4)
cells = torch.randint(0, PLAN * PLAN, (BATCH, CAMERAS, BINS, ROWS * COLUMNS))
cells = (cells + PLAN * PLAN * torch.arange(BATCH).view(-1, 1, 1, 1)).flatten(0, 1).cuda()
for step in range(4):
    images = torch.rand(BATCH, CAMERAS, 3, 16 * ROWS, 16 * COLUMNS).cuda()
    heatmap = torch.zeros(BATCH, 10, PLAN, PLAN, device="cuda")
    loss = F.binary_cross_entropy_with_logits(model(images, cells), heatmap)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, torch.cuda.max_memory_allocated() >> 20, "MiB")
