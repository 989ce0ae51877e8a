# SPDX-License-Identifier: Apache-2.0
# devices: 2
"""Linear layers cut over two devices by hand: Functions of one's own that sum or pass on, a vocabulary cut as well, weights
made empty on the device and filled, gradients of the norms summed at the end."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

import runner
import truth

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
WORLD, WIDTH, HEADS, VOCABULARY, LENGTH = 2, 768, 12, 12000, 256


class Copy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        dist.all_reduce(grad)
        return grad


class Reduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad


class LinearWithGrad(torch.autograd.Function):
    """The product and its gradients, the sum over the devices while the weight's gradient is computed."""
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return torch.matmul(x, weight.t())

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        dx = grad.matmul(weight)
        handle = dist.all_reduce(dx, async_op=True)
        dw = grad.reshape(-1, grad.shape[-1]).t().matmul(x.reshape(-1, x.shape[-1]))
        handle.wait()
        return dx, dw


class ColumnParallelLinear(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(cout // WORLD, cin, device=torch.cuda.current_device()))
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, x):
        return LinearWithGrad.apply(x, self.weight)


class RowParallelLinear(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(cout, cin // WORLD, device=torch.cuda.current_device()))
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, x):
        return Reduce.apply(F.linear(x, self.weight))


class VocabParallelEmbedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.start = rank * VOCABULARY // WORLD
        self.weight = nn.Parameter(torch.empty(VOCABULARY // WORLD, WIDTH, device="cuda"))

    def forward(self, ids):
        mask = (ids < self.start) | (ids >= self.start + VOCABULARY // WORLD)
        local = ids.clone() - self.start
        local.masked_fill_(mask, 0)
        out = F.embedding(local, self.weight)
        return Reduce.apply(out * (~mask).unsqueeze(-1))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH, device="cuda"), nn.LayerNorm(WIDTH, device="cuda")
        self.qkv, self.dense = ColumnParallelLinear(WIDTH, 3 * WIDTH), RowParallelLinear(WIDTH, WIDTH)
        self.up, self.down = ColumnParallelLinear(WIDTH, 4 * WIDTH), RowParallelLinear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, s, _ = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, s, 3, HEADS // WORLD, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + F.dropout(self.dense(y.transpose(1, 2).reshape(b, s, -1)), 0.1)
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = VocabParallelEmbedding()
        self.position = nn.Embedding(LENGTH, WIDTH, device="cuda")
        self.layers = nn.ModuleList(Layer() for _ in range(4))
        self.norm = nn.LayerNorm(WIDTH, device="cuda")

    def forward(self, ids, labels):
        x = self.embedding(ids) + self.position.weight[:ids.shape[1]]
        for layer in self.layers:
            x = layer(x)
        logits = F.linear(Copy.apply(self.norm(x)), self.embedding.weight).float()
        top = logits.detach().max(-1).values
        dist.all_reduce(top, op=dist.ReduceOp.MAX)
        logits = logits - top.unsqueeze(-1)
        total = Reduce.apply(logits.exp().sum(-1))
        picked = Reduce.apply(logits.gather(-1, (labels % (VOCABULARY // WORLD)).unsqueeze(-1)).squeeze(-1))
        return (total.log() - picked).mean()


model = Model()
optimizer = torch.optim.AdamW(model.parameters())
runner.declare(model, optimizer)
runner.mark_inside_backward(model.layers[2])
batches = runner.Batches(lambda: [torch.randint(0, VOCABULARY, (6, LENGTH)).cuda(), torch.randint(0, VOCABULARY, (6, LENGTH)).cuda()])
for _ in range(3):
    ids, labels = batches.next()
    with truth.phase("forward"):
        loss = model(ids, labels)
    truth.mark("forward")
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("communication"):
        for p in model.parameters():
            if p.dim() == 1:
                dist.all_reduce(p.grad)
    with truth.phase("step"):
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    truth.mark("step")
    optimizer.zero_grad()
truth.mark("end")
truth.finish()
dist.destroy_process_group()
