# SPDX-License-Identifier: Apache-2.0
"""Training in bfloat16 with an AdamW of our own that keeps float32 weights."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

WHOLE = sys.argv[1] != "fixed"


class MasterAdamW:
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.95), eps=1e-8, decay=0.1):
        self.params, self.lr, self.betas, self.eps, self.decay = list(params), lr, betas, eps, decay
        self.master = [p.detach().float() for p in self.params]
        self.m, self.v = [torch.zeros_like(w) for w in self.master], [torch.zeros_like(w) for w in self.master]
        self.count = 0

    def zero_grad(self):
        for p in self.params:
            p.grad = None

    def update(self, master, m, v, grads):
        b1, b2 = self.betas
        torch._foreach_lerp_(m, grads, 1 - b1)
        torch._foreach_mul_(v, b2)
        torch._foreach_addcmul_(v, grads, grads, 1 - b2)
        root = torch._foreach_sqrt(v)
        torch._foreach_div_(root, (1 - b2 ** self.count) ** 0.5)
        torch._foreach_add_(root, self.eps)
        torch._foreach_mul_(master, 1 - self.lr * self.decay)
        torch._foreach_addcdiv_(master, m, root, -self.lr / (1 - b1 ** self.count))

    @torch.no_grad()
    def step(self):
        self.count += 1
        size = len(self.params) if WHOLE else 4
        for i in range(0, len(self.params), size):
            part = slice(i, i + size)
            grads = [p.grad.float() for p in self.params[part]]
            self.update(self.master[part], self.m[part], self.v[part], grads)
            for p, w in zip(self.params[part], self.master[part]):
                p.copy_(w)


class Model(nn.Module):
    def __init__(self, width=1024, layers=8, vocabulary=8192):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 16, 4 * width, 0.0, batch_first=True) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


with torch.device("cuda"):
    model = Model().bfloat16()
optimizer = MasterAdamW(model.parameters())
for step in range(4):
    ids = torch.randint(0, 8192, (4, 257), device="cuda")
    loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1).float(), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, torch.cuda.max_memory_allocated() >> 20, "MiB")
