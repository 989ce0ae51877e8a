# SPDX-License-Identifier: Apache-2.0
"""A vision transformer fed by a data loader from pinned memory, an evaluation after each step whose results
are collected in a list, a scheduler, clipped gradients."""
import torch
from torch.nn import functional as F
from torchvision.models import VisionTransformer

import runner
import truth

model = VisionTransformer(image_size=64, patch_size=8, num_layers=4, num_heads=8, hidden_dim=512, mlp_dim=1600, num_classes=100,
                          dropout=0.1).to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
runner.declare(model, optimizer)
data = torch.utils.data.TensorDataset(torch.randn(96, 3, 64, 64), torch.zeros(96, dtype=torch.long))
loader = iter(torch.utils.data.DataLoader(data, batch_size=32, pin_memory=True))
collected = []


def batch():
    return [t.to("cuda", non_blocking=True) for t in next(loader)]


@torch.no_grad()
def evaluate():
    scheduler.step()
    model.eval()
    with truth.phase("data"):
        x = torch.randn(250, 3, 64, 64).to("cuda")
    held.now = [x]
    with truth.phase("forward"):
        collected.append(model.conv_proj(x))
        collected.append(model(x))
    model.train()
    truth.mark("evaluated")


held = runner.Batches(None)
runner.train(model, optimizer, batch, lambda m, xy: F.cross_entropy(m(xy[0]), xy[1], label_smoothing=0.1),
             inside=model.encoder.layers[2], before_step=lambda: torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0),
             after_step=evaluate)
