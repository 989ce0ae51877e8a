# SPDX-License-Identifier: Apache-2.0
"""What a language model thinks, taken apart: hooks harvest the hidden states of a frozen model into a buffer on the device, a
sparse autoencoder with normed columns learns from shuffled rows of it, dead features are made anew, the state too."""
import torch
from torch import nn
from torch.nn import functional as F

import runner
import truth

device = "cuda"


class Autoencoder(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.W_enc = nn.Parameter(torch.nn.init.kaiming_uniform_(torch.empty(d, h)))
        self.W_dec = nn.Parameter(torch.nn.init.kaiming_uniform_(torch.empty(h, d)))
        self.b_enc, self.b_dec = nn.Parameter(torch.zeros(h)), nn.Parameter(torch.zeros(d))
        self.W_dec.data[:] = self.W_dec / self.W_dec.norm(dim=-1, keepdim=True)
        self.to(device)

    def forward(self, x):
        acts = F.relu((x - self.b_dec) @ self.W_enc + self.b_enc)
        x_hat = acts @ self.W_dec + self.b_dec
        l2, l1 = (x_hat.float() - x.float()).pow(2).sum(-1).mean(0), acts.float().abs().sum()
        return l2 + 3e-4 * l1, x_hat, acts

    @torch.no_grad()
    def remove_parallel(self):
        normed = self.W_dec / self.W_dec.norm(dim=-1, keepdim=True)
        proj = (self.W_dec.grad * normed).sum(-1, keepdim=True) * normed
        self.W_dec.grad -= proj

    @torch.no_grad()
    def normalise(self):
        self.W_dec.data = self.W_dec / self.W_dec.norm(dim=-1, keepdim=True)


class Buffer:
    def __init__(self, lm, rows, width):
        self.buffer = torch.zeros((rows, width), dtype=torch.bfloat16, device=device)
        self.lm, self.pointer, self.cache = lm, 0, {}
        lm.middle().register_forward_hook(lambda m, i, o: self.cache.__setitem__("resid", o))

    @torch.no_grad()
    def refresh(self):
        self.pointer = 0
        while self.pointer < len(self.buffer):
            with truth.phase("data"):
                tokens = torch.randint(0, 12000, (8, 256)).to(device)
            with truth.phase("forward"), torch.autocast("cuda", dtype=torch.bfloat16):
                self.lm(tokens)
                acts = self.cache["resid"].reshape(-1, self.buffer.shape[1])
            n = min(len(acts), len(self.buffer) - self.pointer)
            self.buffer[self.pointer:self.pointer + n] = acts[:n]
            self.pointer += n
        self.pointer = 0
        with truth.phase("data"):
            self.buffer = self.buffer[torch.randperm(len(self.buffer)).to(device)]

    @torch.no_grad()
    def next(self):
        with truth.phase("data"):
            out = self.buffer[self.pointer:self.pointer + 4096].float()
        self.pointer += 4096
        if self.pointer > len(self.buffer) // 2:
            self.refresh()
        return out


lm = runner.gpt(on_device=False).eval()
for p in lm.parameters():
    p.requires_grad = False
truth.model(lm)
store = Buffer(lm, 16384, 512)
truth.holds("inputs", "hidden states", lambda: [store.buffer], or_else=["forward_temporaries"])
truth.holds("inputs", "the hook's", lambda: list(store.cache.values()), or_else=["forward_temporaries"])
sae = Autoencoder(512, 8192)
optimizer = torch.optim.Adam(sae.parameters(), lr=1e-4, betas=(0.9, 0.99))
runner.declare(sae, optimizer)
store.refresh()
truth.mark("harvested")
batches = runner.Batches(store.next)
for step in range(4):
    x = batches.next()
    with truth.phase("forward"):
        loss, x_hat, acts = sae(x)
    truth.mark("forward")
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    sae.remove_parallel()
    with truth.phase("step"):
        optimizer.step()
    truth.mark("step")
    sae.normalise()
    optimizer.zero_grad()
    if step == 2:
        with torch.no_grad():
            dead = torch.arange(100, device=device)
            sae.W_enc.data[:, dead] = torch.randn(512, 100, device=device)
            optimizer.state[sae.W_enc]["exp_avg"][:, dead] = 0
    truth.mark("end")
truth.finish()
