# SPDX-License-Identifier: Apache-2.0
"""Fine-tuning a vision transformer: weights of a file are assigned, not copied, the trunk is frozen at first and joins
the optimizer later with a rate of its own, half of the layers are checkpointed, mixed images under a loss scaler, the
best weights are kept as a state dictionary."""
import copy
import io

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from torchvision.models.vision_transformer import VisionTransformer

import runner
import truth


def make():
    return VisionTransformer(image_size=96, patch_size=16, num_layers=6, num_heads=8, hidden_dim=512, mlp_dim=2048, num_classes=1000)


def pretrained():
    file = io.BytesIO()
    torch.save(make().state_dict(), file)
    file.seek(0)
    return torch.load(file, map_location="cuda", weights_only=True)


with torch.device("meta"):
    model = make()
model.load_state_dict(pretrained(), assign=True)
model.heads = nn.Sequential(nn.Dropout(0.1), nn.Linear(512, 100)).cuda()
for i, layer in enumerate(model.encoder.layers):
    if i % 2:
        layer.forward = (lambda f: lambda x: checkpoint(f, x, use_reentrant=False) if torch.is_grad_enabled() else f(x))(layer.forward)


def set_trainable(module, yes):
    for p in module.parameters():
        p.requires_grad = yes


set_trainable(model, False)
set_trainable(model.heads, True)
optimizer = torch.optim.AdamW(model.heads.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cuda")
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-3, total_steps=10)
runner.declare(model, optimizer)
best = {}
truth.holds("parameters", "the best weights", lambda: best, or_else=("optimizer_state",))
batches = runner.Batches(lambda: [torch.rand(24, 3, 96, 96, device="cuda"), torch.randint(0, 100, (24,), device="cuda")])


def train_step(x, y):
    with truth.phase("data"):
        order = torch.randperm(len(x), device="cuda")
        x = 0.7 * x + 0.3 * x[order]
        batches.now = [x, y, order]
    with truth.phase("forward"), torch.autocast("cuda", dtype=torch.float16):
        out = model(x)
        loss = 0.7 * F.cross_entropy(out, y, label_smoothing=0.1) + 0.3 * F.cross_entropy(out, y[order], label_smoothing=0.1)
    truth.mark("forward")
    with truth.phase("backward"):
        scaler.scale(loss).backward()
    truth.mark("backward")
    with truth.phase("step"):
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
        optimizer.zero_grad()
    truth.mark("step")


@torch.no_grad()
def evaluate():
    model.eval()
    hits = 0
    for _ in range(2):
        x, y = batches.next()
        with truth.phase("forward"), torch.autocast("cuda", dtype=torch.float16):
            hits += (model(x).argmax(1) == y).sum()
        truth.mark("eval")
    model.train()
    return hits.item()


for step in range(4):
    if step == 2:
        set_trainable(model, True)
        optimizer.add_param_group({"params": [p for n, p in model.named_parameters() if not n.startswith("heads")], "lr": 1e-5,
                                   "initial_lr": 1e-5, "max_lr": 1e-5, "min_lr": 1e-9, "max_momentum": 0.95, "base_momentum": 0.85})
    train_step(*batches.next())
    if step % 2:
        evaluate()
        with truth.phase("step"):
            best = copy.deepcopy(model.state_dict())
        truth.mark("best")
truth.finish()
