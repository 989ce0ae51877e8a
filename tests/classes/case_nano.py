# SPDX-License-Identifier: Apache-2.0
"""One file that trains a small language model: tied weights, fused AdamW in two groups, micro-steps under autocast with a
loss scaler, the next batch fetched while the device works, losses estimated and a sample drawn between the steps."""
import math

import torch
from torch import nn
from torch.nn import functional as F

import runner
import truth

BATCH, LENGTH, VOCABULARY, MICRO = 6, 192, 16000, 3
device = "cuda"


class CausalSelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.n_head = heads
        self.register_buffer("bias", torch.tril(torch.ones(LENGTH, LENGTH)).view(1, 1, LENGTH, LENGTH))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = (y.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for y in self.c_attn(x).split(C, dim=2))
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = F.softmax(att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf")), dim=-1)
        return self.c_proj((att @ v).transpose(1, 2).contiguous().view(B, T, C))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(width), CausalSelfAttention(width, heads), nn.LayerNorm(width)
        self.mlp = nn.ModuleDict(dict(c_fc=nn.Linear(width, 4 * width), act=nn.GELU(), c_proj=nn.Linear(4 * width, width)))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        m = self.mlp
        return x + m.c_proj(m.act(m.c_fc(self.ln_2(x))))


class GPT(nn.Module):
    def __init__(self, width=512, layers=4, heads=8):
        super().__init__()
        self.transformer = nn.ModuleDict(dict(
            wte=nn.Embedding(VOCABULARY, width), wpe=nn.Embedding(LENGTH, width),
            h=nn.ModuleList([Layer(width, heads) for _ in range(layers)]), ln_f=nn.LayerNorm(width)))
        self.lm_head = nn.Linear(width, VOCABULARY, bias=False)
        self.transformer.wte.weight = self.lm_head.weight

    def forward(self, idx, targets=None):
        pos = torch.arange(0, idx.size(1), dtype=torch.long, device=idx.device)
        x = self.transformer.wte(idx) + self.transformer.wpe(pos)
        for block in self.transformer.h:
            x = block(x)
        x = self.transformer.ln_f(x)
        if targets is None:
            return self.lm_head(x[:, [-1], :]), None
        logits = self.lm_head(x)
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)

    @torch.no_grad()
    def generate(self, idx, new):
        for _ in range(new):
            logits, _ = self(idx[:, -LENGTH:])
            logits = logits[:, -1, :] / 0.8
            v, _ = torch.topk(logits, 20)
            logits[logits < v[:, [-1]]] = -float("inf")
            probs = F.softmax(logits, dim=-1)
            idx = torch.cat((idx, probs.argmax(-1, keepdim=True)), dim=1)
        return idx


model = GPT().to(device)
decay = [p for p in model.parameters() if p.dim() >= 2]
rest = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=6e-4, fused=True)
runner.declare(model, optimizer)
runner.mark_inside_backward(model.transformer.h[2])
scaler = torch.amp.GradScaler("cuda")
ctx = torch.autocast("cuda", dtype=torch.float16)
X = Y = idx = None
truth.holds("inputs", "the batch", lambda: [X, Y])
truth.holds("inputs", "the prompt and what was added to it", lambda: [idx], or_else=["forward_temporaries"])
data = torch.randint(0, VOCABULARY, (200000,))


def get_batch():
    ix = torch.randint(len(data) - LENGTH - 1, (BATCH,))
    with truth.phase("data"):
        return (torch.stack([data[i:i + LENGTH] for i in ix]).pin_memory().to(device, non_blocking=True),
                torch.stack([data[i + 1:i + 1 + LENGTH] for i in ix]).pin_memory().to(device, non_blocking=True))


@torch.no_grad()
def estimate_loss():
    global X, Y
    model.eval()
    losses = torch.zeros(2)
    for k in range(2):
        X, Y = get_batch()
        with truth.phase("forward"), ctx:
            logits, loss = model(X, Y)
        truth.mark("evaluated")
        losses[k] = loss.item()
    model.train()


X, Y = get_batch()
for step in range(3):
    for micro in range(MICRO):
        with truth.phase("forward"), ctx:
            logits, loss = model(X, Y)
            loss = loss / MICRO
        truth.mark("forward")
        X, Y = get_batch()
        with truth.phase("backward"):
            scaler.scale(loss).backward()
        truth.mark("backward")
    with truth.phase("step"):
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    truth.mark("step")
    optimizer.zero_grad(set_to_none=True)
    estimate_loss()
    with truth.phase("data"):
        idx = torch.zeros((1, 1), dtype=torch.long, device=device)
    with truth.phase("forward"), ctx:
        idx = model.generate(idx, 4)
    truth.mark("sampled")
truth.finish()
