# SPDX-License-Identifier: Apache-2.0
"""A GPT learns texts of characters with a small trainer class."""
import sys
from collections import defaultdict

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

VOCAB, WIDTH, HEADS, LAYERS, BLOCK = 6_000, 768, 12, 8, 256


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.c_attn, self.c_proj = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.ln_2, self.resid_dropout = nn.LayerNorm(WIDTH), nn.Dropout(0.1)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH), nn.Dropout(0.1))

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in self.c_attn(self.ln_1(x)).split(WIDTH, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.resid_dropout(self.c_proj(y.transpose(1, 2).flatten(2)))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe, self.h = nn.Embedding(VOCAB, WIDTH), nn.Embedding(BLOCK, WIDTH), nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.ln_f, self.lm_head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCAB, bias=False)

    def forward(self, idx, targets):
        pos = torch.arange(idx.shape[1], device=idx.device)
        logits = self.lm_head(self.ln_f(self.h(self.wte(idx) + self.wpe(pos))))
        return logits, F.cross_entropy(logits.view(-1, VOCAB), targets.view(-1))


class CharDataset(Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        dix = torch.randint(0, VOCAB, (BLOCK + 1,))
        return dix[:-1], dix[1:]


class Trainer:
    def __init__(self, model, train_dataset, max_iters, batch_size):
        self.model, self.train_dataset, self.max_iters, self.batch_size = model.to("cuda"), train_dataset, max_iters, batch_size
        self.callbacks = defaultdict(list)

    def run(self):
        model = self.model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, betas=(0.9, 0.95), weight_decay=0.1)
        sampler = RandomSampler(self.train_dataset, replacement=True, num_samples=self.max_iters * self.batch_size)
        loader = DataLoader(self.train_dataset, sampler=sampler, batch_size=self.batch_size)
        model.train()
        for self.iter_num, batch in enumerate(loader):
            x, y = (t.to("cuda") for t in batch)
            logits, self.loss = model(x, y)
            if sys.argv[1] == "broken":
                model.zero_grad(set_to_none=True)
            self.loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            self.optimizer.step()
            if sys.argv[1] == "fixed":
                model.zero_grad(set_to_none=True)
            for callback in self.callbacks["on_batch_end"]:
                callback(self)


def batch_end_callback(trainer):
    print("iter", trainer.iter_num, trainer.loss.item(), torch.cuda.max_memory_allocated() >> 20, "MiB")


trainer = Trainer(GPT(), CharDataset(), max_iters=10, batch_size=4)
trainer.callbacks["on_batch_end"].append(batch_end_callback)
trainer.run()
