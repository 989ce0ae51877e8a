# SPDX-License-Identifier: Apache-2.0
"""Instances of a street scene are segmented by 200 queries: training on small crops, validation in the size of the photographs."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

QUERIES, CLASSES, WIDTH, CROP = 200, 80, 192, 320
PHOTOS = [(700, 1400), (720, 960), (1080, 1440)]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attn = nn.MultiheadAttention(WIDTH, 6, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attn(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class MaskTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, WIDTH, 16, 16)
        self.query = nn.Parameter(torch.randn(1, QUERIES, WIDTH) * 0.02)
        self.blocks = nn.ModuleList(Block() for _ in range(6))
        self.upscale = nn.ConvTranspose2d(WIDTH, WIDTH, 4, 4)
        self.class_head, self.mask_head = nn.Linear(WIDTH, CLASSES + 1), nn.Linear(WIDTH, WIDTH)

    def forward(self, images):
        x = self.patch(images)
        height, width = x.shape[2:]
        x = torch.cat([self.query.expand(len(images), -1, -1), x.flatten(2).transpose(1, 2)], dim=1)
        for block in self.blocks:
            x = block(x)
        queries, grid = x[:, :QUERIES], x[:, QUERIES:].transpose(1, 2).unflatten(2, (height, width))
        masks = torch.einsum("bqc,bchw->bqhw", self.mask_head(queries), self.upscale(grid))
        return masks, self.class_head(queries)


def get_labels_masks_scores(mask_logits, class_logits):
    scores, labels = class_logits.softmax(dim=-1)[..., :-1].max(dim=-1)
    masks = mask_logits > 0
    masks_fp32 = masks.float()
    quality = (mask_logits.sigmoid() * masks_fp32).flatten(1).sum(1) / (masks_fp32.flatten(1).sum(1) + 1e-6)
    return labels, masks, scores * quality


@torch.no_grad()
def validate(model):
    results = []
    for size in PHOTOS:
        image = torch.rand(1, 3, *size).cuda()
        mask_logits, class_logits = model(F.interpolate(image, (CROP, CROP), mode="bilinear"))
        step = 20 if sys.argv[1] == "fixed" else QUERIES
        for i in range(0, QUERIES, step):
            logits = F.interpolate(mask_logits[:, i:i + step], size, mode="bilinear")
            labels, masks, scores = get_labels_masks_scores(logits[0], class_logits[0, i:i + step])
            results.append((labels.cpu(), masks.cpu(), scores.cpu()))
    return results


model = MaskTransformer().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for epoch in range(2):
    for step in range(3):
        images, targets = torch.rand(2, 3, CROP, CROP).cuda(), torch.rand(2, QUERIES, CROP // 4, CROP // 4).cuda().round()
        masks, classes = model(images)
        loss = F.binary_cross_entropy_with_logits(masks, targets) + F.cross_entropy(classes.flatten(0, 1), torch.zeros(2 * QUERIES, dtype=torch.long).cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("trained", torch.cuda.max_memory_allocated() >> 20, "MiB")
    print("validated", len(validate(model)), torch.cuda.max_memory_allocated() >> 20, "MiB")
