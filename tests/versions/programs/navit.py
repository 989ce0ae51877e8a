# SPDX-License-Identifier: Apache-2.0
# A training on images of several sizes.
import torch
from vit_pytorch.na_vit import NaViT
torch.manual_seed(0)
model = NaViT(image_size=256, patch_size=16, num_classes=100, dim=256, depth=4, heads=8, mlp_dim=512, token_dropout_prob=0.1).cuda().train()
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(3):
    images = [[torch.randn(3, *size, device="cuda") for size in ((256, 256), (128, 256), (256, 192))] for _ in range(8)]
    model(images).square().mean().backward()
    opt.step(); opt.zero_grad()
