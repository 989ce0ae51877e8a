# SPDX-License-Identifier: Apache-2.0
"""Self-distillation without labels: a vision transformer sees many crops, a teacher that follows it sees the large ones; the
loss keeps a centre, drop path, clipping parameter by parameter, half precision with a scaler, schedules by hand."""
import copy

import torch
from torch import nn
from torch.nn import functional as F

import runner
import truth


class DropPath(nn.Module):
    def forward(self, x):
        if not self.training:
            return x
        keep = torch.rand((x.shape[0], 1, 1), dtype=x.dtype, device=x.device).add_(0.9).floor_()
        return x.div(0.9) * keep


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.num_heads, self.scale = heads, (dim // heads) ** -0.5
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, self.num_heads, C // self.num_heads).permute(2, 0, 3, 1, 4)
        attn = ((q @ k.transpose(-2, -1)) * self.scale).softmax(dim=-1)
        return self.proj((attn @ v).transpose(1, 2).reshape(B, N, C)), attn


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2, self.attn, self.drop_path = nn.LayerNorm(dim), nn.LayerNorm(dim), Attention(dim, heads), DropPath()
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        y, attn = self.attn(self.norm1(x))
        x = x + self.drop_path(y)
        return x + self.drop_path(self.mlp(self.norm2(x)))


class ViT(nn.Module):
    def __init__(self, dim=384, depth=4, heads=6):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, 16, 16)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, 197, dim))
        self.blocks = nn.ModuleList([Block(dim, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Sequential(nn.Linear(dim, 1024), nn.GELU(), nn.Linear(1024, 256), nn.utils.parametrizations.weight_norm(nn.Linear(256, 16384, bias=False)))

    def places(self, n):
        if n == 196:
            return self.pos_embed
        side = int(n ** 0.5)
        grid = self.pos_embed[:, 1:].reshape(1, 14, 14, -1).permute(0, 3, 1, 2)
        grid = F.interpolate(grid, size=(side, side), mode="bilinear")
        return torch.cat((self.pos_embed[:, :1], grid.permute(0, 2, 3, 1).view(1, n, -1)), dim=1)

    def one(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1) + self.places(x.shape[1])
        for b in self.blocks:
            x = b(x)
        return self.norm(x)[:, 0]

    def forward(self, crops):
        sizes = torch.cumsum(torch.unique_consecutive(torch.tensor([c.shape[-1] for c in crops]), return_counts=True)[1], 0)
        start, output = 0, torch.empty(0).to(crops[0].device)
        for end in sizes.tolist():
            output = torch.cat((output, self.one(torch.cat(crops[start:end]))))
            start = end
        return self.head(F.normalize(output, dim=-1))


class CentredLoss(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("center", torch.zeros(1, dim))

    def forward(self, student, teacher):
        views = (student / 0.1).chunk(6)
        wanted = F.softmax((teacher - self.center) / 0.04, dim=-1).detach().chunk(2)
        parts = [torch.sum(-q * F.log_softmax(v, dim=-1), dim=-1).mean() for i, q in enumerate(wanted) for k, v in enumerate(views) if i != k]
        with torch.no_grad():
            self.center = self.center * 0.9 + torch.sum(teacher, dim=0, keepdim=True) / len(teacher) * 0.1
        return sum(parts) / len(parts)


student = ViT().cuda()
teacher = ViT().cuda()
teacher.load_state_dict(student.state_dict())
for p in teacher.parameters():
    p.requires_grad = False
criterion = CentredLoss(16384).cuda()
regular = [p for p in student.parameters() if p.dim() > 1]
others = [p for p in student.parameters() if p.dim() <= 1]
optimizer = torch.optim.AdamW([{"params": regular}, {"params": others, "weight_decay": 0.0}])
runner.declare(student, optimizer)
truth.model(teacher)
truth.model(criterion)
runner.mark_inside_backward(student.blocks[2])
scaler = torch.amp.GradScaler("cuda")
loader = runner.Batches(lambda: [torch.randn(8, 3, s, s).cuda(non_blocking=True) for s in (224, 224, 96, 96, 96, 96)])
for it in range(3):
    for i, group in enumerate(optimizer.param_groups):
        group["lr"] = 1e-4 * (it + 1)
    images = loader.next()
    with truth.phase("forward"), torch.autocast("cuda", dtype=torch.float16):
        teacher_output = teacher(images[:2])
        student_output = student(images)
        loss = criterion(student_output, teacher_output)
    truth.mark("forward")
    optimizer.zero_grad()
    with truth.phase("backward"):
        scaler.scale(loss).backward()
    truth.mark("backward")
    with truth.phase("step"):
        scaler.unscale_(optimizer)
        for p in student.parameters():
            if p.grad is not None:
                coef = 3.0 / (p.grad.data.norm(2) + 1e-6)
                p.grad.data.mul_(coef.clamp(max=1))
        scaler.step(optimizer)
        scaler.update()
    truth.mark("step")
    with torch.no_grad():
        for q, k in zip(student.parameters(), teacher.parameters()):
            k.data.mul_(0.996).add_((1 - 0.996) * q.detach().data)
    truth.mark("end")
truth.finish()
