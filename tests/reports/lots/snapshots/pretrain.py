# SPDX-License-Identifier: Apache-2.0
"""Pretraining with an observer at the refusal: the older form of the recorder, Python's stacks alone."""
import sys
from pathlib import Path
from pickle import dump

import torch
import torch.nn.functional as F
from torch import nn

FOLDER, VOCABULARY, WIDTH, SEQUENCE = Path(sys.argv[1]), 50304, 512, 1024


class ParallelAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query_key_value, self.dense = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        b, n, w = x.shape
        q, k, v = self.query_key_value(x).view(b, n, 3, 8, -1).permute(2, 0, 3, 1, 4)
        return self.dense(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, n, w))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.input_norm, self.post_norm, self.attention = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), ParallelAttention()
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.input_norm(x))
        return x + self.mlp(self.post_norm(x))


class GPTModel(nn.Module):
    def __init__(self, layers=6):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.decoder = nn.ModuleList(Layer() for _ in range(layers))

    def forward(self, ids, labels):
        x = self.embedding(ids)
        for layer in self.decoder:
            x = layer(x)
        return vocab_cross_entropy(x @ self.embedding.weight.T, labels)


def vocab_cross_entropy(logits, labels):
    logits = logits.float()
    logits = logits - logits.max(dim=-1, keepdim=True).values
    exp = logits.exp()
    return exp.sum(-1).log() - logits.gather(-1, labels[..., None]).squeeze(-1)


def oom_observer(device, alloc, device_alloc, device_free):
    print("saving allocated state during OOM")
    with open(FOLDER / "oom_rank-0_snapshot.pickle", "wb") as file:
        dump(torch.cuda.memory._snapshot(), file)


def model_provider():
    torch.cuda.memory._record_memory_history(True, trace_alloc_max_entries=100000, trace_alloc_record_context=True)
    torch._C._cuda_attach_out_of_memory_observer(oom_observer)
    return GPTModel().cuda().bfloat16()


def train(model, micro_batch=4):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for iteration in range(4):
        for _ in range(2):
            ids = torch.randint(0, VOCABULARY, (micro_batch, SEQUENCE + 1)).cuda()
            loss = model(ids[:, :-1], ids[:, 1:]).mean()
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()


train(model_provider())
